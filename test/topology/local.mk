# What test/topology adds to the build.
check_PROGRAMS += test/topology/test_job_key test/topology/test_job_map test/topology/test_machine \
	test/topology/test_node_map
test_topology_test_job_key_SOURCES = test/topology/test_job_key.c test/rwk_test.h
test_topology_test_job_key_LDADD = $(TEST_LDADD)
test_topology_test_job_map_SOURCES = test/topology/test_job_map.c test/rwk_test.h
test_topology_test_job_map_LDADD = $(TEST_LDADD)
test_topology_test_machine_SOURCES = test/topology/test_machine.c test/rwk_test.h
test_topology_test_machine_LDADD = $(TEST_LDADD)
test_topology_test_node_map_SOURCES = test/topology/test_node_map.c test/rwk_test.h
test_topology_test_node_map_LDADD = $(TEST_LDADD)
TESTS += test/topology/test_job_key test/topology/test_job_map test/topology/test_machine test/topology/test_node_map
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

# PMIx's answers for jobs that are not there. The job map finds the stand-in by the library's name, which libtool would
# not give it.
if HAVE_PMIX
check_PROGRAMS += test/topology/test_pmix
test_topology_test_pmix_SOURCES = test/topology/test_pmix.c test/topology/fake_pmix.h test/rwk_test.h
test_topology_test_pmix_LDADD = $(TEST_LDADD) -ldl
test_topology_test_pmix_DEPENDENCIES = libropewalk-core.la test/topology/libpmix-fake.so
TESTS += test/topology/test_pmix
test/topology/libpmix-fake.so: test/topology/fake_pmix.c test/topology/fake_pmix.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) -shared -fPIC -Wl,-soname,libpmix.so.2 -I$(srcdir)/test $(PMIX_CFLAGS) \
		$(RWK_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(srcdir)/test/topology/fake_pmix.c
CLEANFILES += test/topology/libpmix-fake.so
endif
EXTRA_DIST += test/topology/fake_pmix.c
