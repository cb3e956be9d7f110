# What test/connect adds to the build: programs on ropewalk.h, over UDP and on the simulated network.
connect_sides = test/connect/sides.c test/connect/sides.h

check_PROGRAMS += test/connect/test_connect
test_connect_test_connect_SOURCES = test/connect/test_connect.c $(connect_sides) $(adapter_udp)
test_connect_test_connect_CPPFLAGS = $(TEST_CPPFLAGS)
test_connect_test_connect_LDADD = libropewalk.la $(CMOCKA_LIBS)
TESTS += test/connect/test_connect

check_PROGRAMS += test/connect/test_connect_sim
test_connect_test_connect_sim_SOURCES = test/connect/test_connect.c $(connect_sides) $(adapter_sim)
test_connect_test_connect_sim_CPPFLAGS = $(TEST_CPPFLAGS)
test_connect_test_connect_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/connect/test_connect_sim
