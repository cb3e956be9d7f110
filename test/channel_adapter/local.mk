# What test/channel_adapter adds to the build: programs on ropewalk.h, linked with the library that is installed.
adapter_ends = test/channel_adapter/ends.c test/channel_adapter/ends.h test/rwk_test.h

adapter_udp = test/channel_adapter/world_udp.c test/channel_adapter/world.h $(adapter_ends)
adapter_sim = test/channel_adapter/world_sim.c test/channel_adapter/world.h \
	test/channel_adapter/sim_udp.c test/channel_adapter/sim_udp.h $(adapter_ends)
# On a TCP connection.
adapter_tcp = test/channel_adapter/world_tcp.c test/channel_adapter/world.h $(adapter_ends)
adapter_asleep = test/channel_adapter/asleep.c test/channel_adapter/asleep.h

check_PROGRAMS += test/channel_adapter/test_operations
test_channel_adapter_test_operations_SOURCES = test/channel_adapter/test_operations.c test/watched.h $(adapter_udp)
test_channel_adapter_test_operations_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_operations

check_PROGRAMS += test/channel_adapter/test_atomics
test_channel_adapter_test_atomics_SOURCES = test/channel_adapter/test_atomics.c test/watched.h $(adapter_ends)
test_channel_adapter_test_atomics_LDADD = libropewalk.la $(CMOCKA_LIBS) -lpthread
TESTS += test/channel_adapter/test_atomics

# In a network of its own.
check_PROGRAMS += test/channel_adapter/test_narrow
test_channel_adapter_test_narrow_SOURCES = test/channel_adapter/test_narrow.c $(adapter_ends)
test_channel_adapter_test_narrow_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_narrow

# With packets made by hand, for which it needs the format too.
adapter_by_hand = test/channel_adapter/by_hand.c test/channel_adapter/by_hand.h $(adapter_ends)

check_PROGRAMS += test/channel_adapter/test_packets
test_channel_adapter_test_packets_SOURCES = test/channel_adapter/test_packets.c $(adapter_by_hand)
test_channel_adapter_test_packets_LDADD = $(TEST_LDADD)
TESTS += test/channel_adapter/test_packets

# UC as a whole, by each link.
check_PROGRAMS += test/channel_adapter/test_unreliable
test_channel_adapter_test_unreliable_SOURCES = test/channel_adapter/test_unreliable.c test/repeated.h \
	test/channel_adapter/by_hand.c test/channel_adapter/by_hand.h $(adapter_udp)
test_channel_adapter_test_unreliable_LDADD = $(TEST_LDADD)
TESTS += test/channel_adapter/test_unreliable

check_PROGRAMS += test/channel_adapter/test_unreliable_tcp
test_channel_adapter_test_unreliable_tcp_SOURCES = test/channel_adapter/test_unreliable.c test/repeated.h \
	test/channel_adapter/by_hand.c test/channel_adapter/by_hand.h $(adapter_tcp)
test_channel_adapter_test_unreliable_tcp_LDADD = $(TEST_LDADD)
TESTS += test/channel_adapter/test_unreliable_tcp

check_PROGRAMS += test/channel_adapter/test_unreliable_sim
test_channel_adapter_test_unreliable_sim_SOURCES = test/channel_adapter/test_unreliable.c test/repeated.h \
	test/channel_adapter/by_hand.c test/channel_adapter/by_hand.h $(adapter_sim)
test_channel_adapter_test_unreliable_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_unreliable_sim

check_PROGRAMS += test/channel_adapter/test_order_packets
test_channel_adapter_test_order_packets_SOURCES = test/channel_adapter/test_order_packets.c $(adapter_by_hand)
test_channel_adapter_test_order_packets_LDADD = $(TEST_LDADD)
TESTS += test/channel_adapter/test_order_packets

# SRC: operations; packets by hand.
check_PROGRAMS += test/channel_adapter/test_src
test_channel_adapter_test_src_SOURCES = test/channel_adapter/test_src.c $(adapter_ends)
test_channel_adapter_test_src_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_src

check_PROGRAMS += test/channel_adapter/test_src_packets
test_channel_adapter_test_src_packets_SOURCES = test/channel_adapter/test_src_packets.c $(adapter_by_hand)
test_channel_adapter_test_src_packets_LDADD = $(TEST_LDADD)
TESTS += test/channel_adapter/test_src_packets

# With links/udp replaced by the simulated network.
check_PROGRAMS += test/channel_adapter/test_src_random
test_channel_adapter_test_src_random_SOURCES = test/channel_adapter/test_src_random.c test/seeded.h \
	test/channel_adapter/sim_udp.c test/channel_adapter/sim_udp.h $(adapter_ends)
test_channel_adapter_test_src_random_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_src_random

# A day of the simulated network's time, or some minutes of it.
check_PROGRAMS += test/channel_adapter/test_day
test_channel_adapter_test_day_SOURCES = test/channel_adapter/test_day.c \
	test/channel_adapter/sim_udp.c test/channel_adapter/sim_udp.h $(adapter_ends)
test_channel_adapter_test_day_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_day

# Each over UDP on loopback, with the library that is installed, and on the simulated network.
check_PROGRAMS += test/channel_adapter/test_permissions
test_channel_adapter_test_permissions_SOURCES = test/channel_adapter/test_permissions.c $(adapter_udp)
test_channel_adapter_test_permissions_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_permissions

check_PROGRAMS += test/channel_adapter/test_permissions_sim
test_channel_adapter_test_permissions_sim_SOURCES = test/channel_adapter/test_permissions.c $(adapter_sim)
test_channel_adapter_test_permissions_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_permissions_sim

check_PROGRAMS += test/channel_adapter/test_requests
test_channel_adapter_test_requests_SOURCES = test/channel_adapter/test_requests.c $(adapter_udp)
test_channel_adapter_test_requests_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_requests

check_PROGRAMS += test/channel_adapter/test_requests_sim
test_channel_adapter_test_requests_sim_SOURCES = test/channel_adapter/test_requests.c $(adapter_sim)
test_channel_adapter_test_requests_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_requests_sim

check_PROGRAMS += test/channel_adapter/test_callbacks
test_channel_adapter_test_callbacks_SOURCES = test/channel_adapter/test_callbacks.c $(adapter_asleep) $(adapter_udp)
test_channel_adapter_test_callbacks_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_callbacks

check_PROGRAMS += test/channel_adapter/test_callbacks_sim
test_channel_adapter_test_callbacks_sim_SOURCES = test/channel_adapter/test_callbacks.c $(adapter_asleep) $(adapter_sim)
test_channel_adapter_test_callbacks_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_callbacks_sim

check_PROGRAMS += test/channel_adapter/test_sleep
test_channel_adapter_test_sleep_SOURCES = test/channel_adapter/test_sleep.c $(adapter_asleep) $(adapter_udp)
test_channel_adapter_test_sleep_LDADD = libropewalk.la $(CMOCKA_LIBS) -lpthread
TESTS += test/channel_adapter/test_sleep

check_PROGRAMS += test/channel_adapter/test_sleep_sim
test_channel_adapter_test_sleep_sim_SOURCES = test/channel_adapter/test_sleep.c $(adapter_asleep) $(adapter_sim)
test_channel_adapter_test_sleep_sim_LDADD = librwk_sim.la $(TEST_LDADD) -lpthread
TESTS += test/channel_adapter/test_sleep_sim

check_PROGRAMS += test/channel_adapter/test_events
test_channel_adapter_test_events_SOURCES = test/channel_adapter/test_events.c $(adapter_udp)
test_channel_adapter_test_events_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_events

check_PROGRAMS += test/channel_adapter/test_events_sim
test_channel_adapter_test_events_sim_SOURCES = test/channel_adapter/test_events.c $(adapter_sim)
test_channel_adapter_test_events_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_events_sim

check_PROGRAMS += test/channel_adapter/test_windows
test_channel_adapter_test_windows_SOURCES = test/channel_adapter/test_windows.c $(adapter_udp)
test_channel_adapter_test_windows_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_windows

check_PROGRAMS += test/channel_adapter/test_windows_sim
test_channel_adapter_test_windows_sim_SOURCES = test/channel_adapter/test_windows.c $(adapter_sim)
test_channel_adapter_test_windows_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_windows_sim

check_PROGRAMS += test/channel_adapter/test_order
test_channel_adapter_test_order_SOURCES = test/channel_adapter/test_order.c \
	test/channel_adapter/sim_udp.c test/channel_adapter/sim_udp.h $(adapter_ends)
test_channel_adapter_test_order_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_order

check_PROGRAMS += test/channel_adapter/test_hierarchy
test_channel_adapter_test_hierarchy_SOURCES = test/channel_adapter/test_hierarchy.c $(adapter_udp)
test_channel_adapter_test_hierarchy_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_hierarchy

check_PROGRAMS += test/channel_adapter/test_hierarchy_sim
test_channel_adapter_test_hierarchy_sim_SOURCES = test/channel_adapter/test_hierarchy.c $(adapter_sim)
test_channel_adapter_test_hierarchy_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/channel_adapter/test_hierarchy_sim

# The same on TCP connections.
check_PROGRAMS += test/channel_adapter/test_permissions_tcp
test_channel_adapter_test_permissions_tcp_SOURCES = test/channel_adapter/test_permissions.c $(adapter_tcp)
test_channel_adapter_test_permissions_tcp_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_permissions_tcp

check_PROGRAMS += test/channel_adapter/test_operations_tcp
test_channel_adapter_test_operations_tcp_SOURCES = test/channel_adapter/test_operations.c test/watched.h $(adapter_tcp)
test_channel_adapter_test_operations_tcp_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_operations_tcp

check_PROGRAMS += test/channel_adapter/test_requests_tcp
test_channel_adapter_test_requests_tcp_SOURCES = test/channel_adapter/test_requests.c $(adapter_tcp)
test_channel_adapter_test_requests_tcp_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_requests_tcp

check_PROGRAMS += test/channel_adapter/test_windows_tcp
test_channel_adapter_test_windows_tcp_SOURCES = test/channel_adapter/test_windows.c $(adapter_tcp)
test_channel_adapter_test_windows_tcp_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_windows_tcp

check_PROGRAMS += test/channel_adapter/test_hierarchy_tcp
test_channel_adapter_test_hierarchy_tcp_SOURCES = test/channel_adapter/test_hierarchy.c $(adapter_tcp)
test_channel_adapter_test_hierarchy_tcp_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_hierarchy_tcp

check_PROGRAMS += test/channel_adapter/test_events_tcp
test_channel_adapter_test_events_tcp_SOURCES = test/channel_adapter/test_events.c $(adapter_tcp)
test_channel_adapter_test_events_tcp_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_events_tcp

# Debug builds alone look.
if DEBUG
check_PROGRAMS += test/channel_adapter/test_misuse
test_channel_adapter_test_misuse_SOURCES = test/channel_adapter/test_misuse.c test/channel_adapter/misuse.c \
	test/channel_adapter/misuse.h \
	$(adapter_ends)
test_channel_adapter_test_misuse_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/channel_adapter/test_misuse
endif

TESTS += test/channel_adapter/test_exports test/channel_adapter/test_abi
EXTRA_DIST += test/channel_adapter/test_exports test/channel_adapter/test_abi test/channel_adapter/abi.txt
