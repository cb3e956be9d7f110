# What test/shm adds to the build.
transfer_pair = test/shm/transfer_pair.c test/shm/transfer_pair.h test/shm/transfer_roles.c test/shm/transfer_roles.h test/rwk_test.h
check_PROGRAMS += test/shm/test_transfer test/shm/test_transfer_faults test/shm/test_transfer_choice
test_shm_test_transfer_SOURCES = test/shm/test_transfer.c $(transfer_pair)
test_shm_test_transfer_CPPFLAGS = $(TEST_CPPFLAGS)
test_shm_test_transfer_LDADD = $(TEST_LDADD)
test_shm_test_transfer_faults_SOURCES = test/shm/test_transfer_faults.c $(transfer_pair)
test_shm_test_transfer_faults_CPPFLAGS = $(TEST_CPPFLAGS)
test_shm_test_transfer_faults_LDADD = $(TEST_LDADD)
test_shm_test_transfer_choice_SOURCES = test/shm/test_transfer_choice.c test/rwk_test.h
test_shm_test_transfer_choice_CPPFLAGS = $(TEST_CPPFLAGS)
test_shm_test_transfer_choice_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer test/shm/test_transfer_faults test/shm/test_transfer_choice

SHM_ENDS = test/shm/ends.c test/shm/ends.h test/rwk_test.h
check_PROGRAMS += test/shm/test_transfer_service
test_shm_test_transfer_service_SOURCES = test/shm/test_transfer_service.c $(SHM_ENDS)
test_shm_test_transfer_service_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_transfer_service_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_service

check_PROGRAMS += test/shm/test_message
test_shm_test_message_SOURCES = test/shm/test_message.c $(SHM_ENDS)
test_shm_test_message_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_message_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_message

check_PROGRAMS += test/shm/test_connect
test_shm_test_connect_SOURCES = test/shm/test_connect.c $(SHM_ENDS)
test_shm_test_connect_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_connect_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_connect

check_PROGRAMS += test/shm/test_sleep
test_shm_test_sleep_SOURCES = test/shm/test_sleep.c $(SHM_ENDS)
test_shm_test_sleep_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_sleep_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_sleep

check_PROGRAMS += test/shm/test_death
test_shm_test_death_SOURCES = test/shm/test_death.c $(SHM_ENDS)
test_shm_test_death_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_death_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_death

check_PROGRAMS += test/shm/test_hostile
test_shm_test_hostile_SOURCES = test/shm/test_hostile.c $(SHM_ENDS)
test_shm_test_hostile_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_hostile_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_hostile

check_PROGRAMS += test/shm/test_many
test_shm_test_many_SOURCES = test/shm/test_many.c $(SHM_ENDS)
test_shm_test_many_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_many_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_many

# The ring and the wake-up protocol as models; skipped where spin is missing.
TESTS += test/models/run
EXTRA_DIST += test/models/run test/models/ring.pml test/models/wake.pml
