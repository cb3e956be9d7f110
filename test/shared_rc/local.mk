# What test/shared_rc adds to the build.
src_members = test/shared_rc/members.c test/shared_rc/members.h test/rwk_test.h
check_PROGRAMS += test/shared_rc/test_join
test_shared_rc_test_join_SOURCES = test/shared_rc/test_join.c $(src_members)
test_shared_rc_test_join_LDADD = $(TEST_LDADD) $(SODIUM_LIBS)
TESTS += test/shared_rc/test_join

check_PROGRAMS += test/shared_rc/test_join_late
test_shared_rc_test_join_late_SOURCES = test/shared_rc/test_join_late.c $(src_members)
test_shared_rc_test_join_late_LDADD = $(TEST_LDADD) $(SODIUM_LIBS)
TESTS += test/shared_rc/test_join_late

check_PROGRAMS += test/shared_rc/test_join_strangers
test_shared_rc_test_join_strangers_SOURCES = test/shared_rc/test_join_strangers.c $(src_members)
test_shared_rc_test_join_strangers_LDADD = $(TEST_LDADD) $(SODIUM_LIBS)
TESTS += test/shared_rc/test_join_strangers

check_PROGRAMS += test/shared_rc/test_join_death
test_shared_rc_test_join_death_SOURCES = test/shared_rc/test_join_death.c $(src_members)
test_shared_rc_test_join_death_LDADD = $(TEST_LDADD) $(SODIUM_LIBS)
TESTS += test/shared_rc/test_join_death

shared_rc_traffic = test/shared_rc/traffic.c test/shared_rc/traffic.h test/rwk_test.h

check_PROGRAMS += test/shared_rc/test_delivery
test_shared_rc_test_delivery_SOURCES = test/shared_rc/test_delivery.c $(shared_rc_traffic)
test_shared_rc_test_delivery_LDADD = $(TEST_LDADD)
TESTS += test/shared_rc/test_delivery

# Bound at once: the dynamic linker's instructions are not among those that are stepped through.
check_PROGRAMS += test/shared_rc/test_steps
test_shared_rc_test_steps_SOURCES = test/shared_rc/test_steps.c $(shared_rc_traffic)
test_shared_rc_test_steps_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,now
test_shared_rc_test_steps_LDADD = $(TEST_LDADD)
TESTS += test/shared_rc/test_steps

check_PROGRAMS += test/shared_rc/test_processes
test_shared_rc_test_processes_SOURCES = test/shared_rc/test_processes.c $(shared_rc_traffic)
test_shared_rc_test_processes_LDADD = $(TEST_LDADD)
TESTS += test/shared_rc/test_processes

shared_rc_two = test/shared_rc/two.c test/shared_rc/two.h $(shared_rc_traffic)

check_PROGRAMS += test/shared_rc/test_domain
test_shared_rc_test_domain_SOURCES = test/shared_rc/test_domain.c $(shared_rc_two)
test_shared_rc_test_domain_LDADD = $(TEST_LDADD)
TESTS += test/shared_rc/test_domain

check_PROGRAMS += test/shared_rc/test_seats
test_shared_rc_test_seats_SOURCES = test/shared_rc/test_seats.c $(shared_rc_two)
test_shared_rc_test_seats_LDADD = $(TEST_LDADD)
TESTS += test/shared_rc/test_seats

check_PROGRAMS += test/shared_rc/test_targets
test_shared_rc_test_targets_SOURCES = test/shared_rc/test_targets.c $(shared_rc_two)
test_shared_rc_test_targets_LDADD = $(TEST_LDADD)
TESTS += test/shared_rc/test_targets

check_PROGRAMS += test/shared_rc/test_threads
test_shared_rc_test_threads_SOURCES = test/shared_rc/test_threads.c $(shared_rc_traffic)
test_shared_rc_test_threads_LDADD = $(TEST_LDADD) -lpthread
TESTS += test/shared_rc/test_threads

check_PROGRAMS += test/shared_rc/test_hostile
test_shared_rc_test_hostile_SOURCES = test/shared_rc/test_hostile.c $(shared_rc_traffic)
test_shared_rc_test_hostile_LDADD = $(TEST_LDADD)
TESTS += test/shared_rc/test_hostile

check_PROGRAMS += test/shared_rc/test_reach
test_shared_rc_test_reach_SOURCES = test/shared_rc/test_reach.c $(shared_rc_traffic)
test_shared_rc_test_reach_LDADD = $(TEST_LDADD) -lpthread
TESTS += test/shared_rc/test_reach
