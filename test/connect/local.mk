# What test/connect adds to the build: programs on ropewalk.h, over UDP and on the simulated network.
connect_sides = test/connect/sides.c test/connect/sides.h
connect_ways = test/connect/ways.c test/connect/ways.h $(connect_sides)

check_PROGRAMS += test/connect/test_connect
test_connect_test_connect_SOURCES = test/connect/test_connect.c $(connect_ways) $(adapter_udp)
test_connect_test_connect_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_connect

check_PROGRAMS += test/connect/test_connect_sim
test_connect_test_connect_sim_SOURCES = test/connect/test_connect.c $(connect_ways) $(adapter_sim)
test_connect_test_connect_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/connect/test_connect_sim

check_PROGRAMS += test/connect/test_connect_addresses
test_connect_test_connect_addresses_SOURCES = test/connect/test_connect_addresses.c $(connect_ways) $(adapter_udp)
test_connect_test_connect_addresses_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_connect_addresses

check_PROGRAMS += test/connect/test_connect_addresses_sim
test_connect_test_connect_addresses_sim_SOURCES = test/connect/test_connect_addresses.c $(connect_ways) $(adapter_sim)
test_connect_test_connect_addresses_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/connect/test_connect_addresses_sim

check_PROGRAMS += test/connect/test_connect_ends
test_connect_test_connect_ends_SOURCES = test/connect/test_connect_ends.c $(connect_ways) $(adapter_udp)
test_connect_test_connect_ends_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_connect_ends

check_PROGRAMS += test/connect/test_connect_ends_sim
test_connect_test_connect_ends_sim_SOURCES = test/connect/test_connect_ends.c $(connect_ways) $(adapter_sim)
test_connect_test_connect_ends_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/connect/test_connect_ends_sim

check_PROGRAMS += test/connect/test_hints
test_connect_test_hints_SOURCES = test/connect/test_hints.c $(connect_ways) $(adapter_udp)
test_connect_test_hints_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_hints

check_PROGRAMS += test/connect/test_hints_sim
test_connect_test_hints_sim_SOURCES = test/connect/test_hints.c $(connect_ways) $(adapter_sim)
test_connect_test_hints_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/connect/test_hints_sim

check_PROGRAMS += test/connect/test_packets
test_connect_test_packets_SOURCES = test/connect/test_packets.c $(connect_ways) $(adapter_udp)
test_connect_test_packets_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_packets

check_PROGRAMS += test/connect/test_packets_sim
test_connect_test_packets_sim_SOURCES = test/connect/test_packets.c $(connect_ways) $(adapter_sim)
test_connect_test_packets_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/connect/test_packets_sim

# Streams, with packets by hand, for which it needs the format too.
check_PROGRAMS += test/connect/test_convert
test_connect_test_convert_SOURCES = test/connect/test_convert.c $(connect_sides) $(adapter_udp) $(FULL_SETS)
test_connect_test_convert_LDADD = $(TEST_LDADD)
test_connect_test_convert_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
TESTS += test/connect/test_convert

check_PROGRAMS += test/connect/test_alone
test_connect_test_alone_SOURCES = test/connect/test_alone.c $(connect_sides) $(adapter_udp)
test_connect_test_alone_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_alone

check_PROGRAMS += test/connect/test_sleep
test_connect_test_sleep_SOURCES = test/connect/test_sleep.c $(connect_sides) $(adapter_udp)
test_connect_test_sleep_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_sleep

check_PROGRAMS += test/connect/test_leave
test_connect_test_leave_SOURCES = test/connect/test_leave.c $(connect_sides) $(adapter_udp)
test_connect_test_leave_LDADD = $(TEST_LDADD) -lpthread
TESTS += test/connect/test_leave

# In a network of its own.
check_PROGRAMS += test/connect/test_route
test_connect_test_route_SOURCES = test/connect/test_route.c $(connect_sides) $(adapter_udp)
test_connect_test_route_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_route

check_PROGRAMS += test/connect/test_message
test_connect_test_message_SOURCES = test/connect/test_message.c test/rwk_test.h
test_connect_test_message_LDADD = $(TEST_LDADD)
TESTS += test/connect/test_message

check_PROGRAMS += test/connect/test_strangers
test_connect_test_strangers_SOURCES = test/connect/test_strangers.c $(connect_sides) $(adapter_udp) $(FULL_SETS)
test_connect_test_strangers_LDADD = $(TEST_LDADD)
TESTS += test/connect/test_strangers

check_PROGRAMS += test/connect/test_processes
test_connect_test_processes_SOURCES = test/connect/test_processes.c $(connect_sides) $(adapter_udp)
test_connect_test_processes_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_processes

# The promises of ropewalk.h on threads: contrib/check runs it with TSan, too.
check_PROGRAMS += test/connect/test_threads
test_connect_test_threads_SOURCES = test/connect/test_threads.c $(connect_sides) $(adapter_udp)
test_connect_test_threads_LDADD = libropewalk.la $(CMOCKA_LIBS) -lpthread
TESTS += test/connect/test_threads

# Debug builds alone look.
if DEBUG
check_PROGRAMS += test/connect/test_connect_misuse
test_connect_test_connect_misuse_SOURCES = test/connect/test_connect_misuse.c test/channel_adapter/misuse.c \
	test/channel_adapter/misuse.h $(connect_sides) $(adapter_udp)
test_connect_test_connect_misuse_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_connect_misuse
endif
