# What test/topology adds to the build.
check_PROGRAMS += test/topology/test_job_map test/topology/test_machine test/topology/test_node_map
test_topology_test_job_map_SOURCES = test/topology/test_job_map.c test/rwk_test.h
test_topology_test_job_map_CPPFLAGS = $(TEST_CPPFLAGS)
test_topology_test_job_map_LDADD = $(TEST_LDADD)
test_topology_test_machine_SOURCES = test/topology/test_machine.c test/rwk_test.h
test_topology_test_machine_CPPFLAGS = $(TEST_CPPFLAGS)
test_topology_test_machine_LDADD = $(TEST_LDADD)
test_topology_test_node_map_SOURCES = test/topology/test_node_map.c test/rwk_test.h
test_topology_test_node_map_CPPFLAGS = $(TEST_CPPFLAGS)
test_topology_test_node_map_LDADD = $(TEST_LDADD)
TESTS += test/topology/test_job_map test/topology/test_machine test/topology/test_node_map
# The cases of test_job_map, with the job files and the machine that they name.
EXTRA_DIST += test/topology/maps

# Job maps under the launchers that are installed.
EXTRA_DIST += test/topology/run_launchers
if HAVE_MPI
check_PROGRAMS += test/topology/guest
test_topology_guest_SOURCES = test/topology/guest.c
test_topology_guest_CPPFLAGS = $(AM_CPPFLAGS)
test_topology_guest_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
test_topology_guest_LDADD = libropewalk-core.la $(MPI_LIBS) -ldl
TESTS += test/topology/run_launchers
endif
