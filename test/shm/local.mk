# What test/shm adds to the build.
transfer_pair = test/shm/transfer_pair.c test/shm/transfer_pair.h test/shm/transfer_roles.c test/shm/transfer_roles.h \
	test/rwk_test.h
check_PROGRAMS += test/shm/test_transfer test/shm/test_transfer_choice
test_shm_test_transfer_SOURCES = test/shm/test_transfer.c $(transfer_pair)
test_shm_test_transfer_LDADD = $(TEST_LDADD)
test_shm_test_transfer_choice_SOURCES = test/shm/test_transfer_choice.c test/rwk_test.h
test_shm_test_transfer_choice_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer test/shm/test_transfer_choice

check_PROGRAMS += test/shm/test_transfer_border
test_shm_test_transfer_border_SOURCES = test/shm/test_transfer_border.c $(transfer_pair)
test_shm_test_transfer_border_LDADD = bench/libbench.la $(TEST_LDADD)
TESTS += test/shm/test_transfer_border

check_PROGRAMS += test/shm/test_fill
test_shm_test_fill_SOURCES = test/shm/test_fill.c test/rwk_test.h
test_shm_test_fill_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_fill

check_PROGRAMS += test/shm/test_no_memory
test_shm_test_no_memory_SOURCES = test/shm/test_no_memory.c test/rwk_test.h
test_shm_test_no_memory_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_no_memory

check_PROGRAMS += test/shm/test_transfer_no_memory
test_shm_test_transfer_no_memory_SOURCES = test/shm/test_transfer_no_memory.c $(transfer_pair)
test_shm_test_transfer_no_memory_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_no_memory

check_PROGRAMS += test/shm/test_arrival
test_shm_test_arrival_SOURCES = test/shm/test_arrival.c test/rwk_test.h
test_shm_test_arrival_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_arrival

check_PROGRAMS += test/shm/test_transfer_sides
test_shm_test_transfer_sides_SOURCES = test/shm/test_transfer_sides.c $(transfer_pair)
test_shm_test_transfer_sides_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_sides

check_PROGRAMS += test/shm/test_transfer_stopped
test_shm_test_transfer_stopped_SOURCES = test/shm/test_transfer_stopped.c $(transfer_pair)
test_shm_test_transfer_stopped_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_stopped

check_PROGRAMS += test/shm/test_transfer_denied
test_shm_test_transfer_denied_SOURCES = test/shm/test_transfer_denied.c $(transfer_pair)
test_shm_test_transfer_denied_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_denied

check_PROGRAMS += test/shm/test_transfer_proof
test_shm_test_transfer_proof_SOURCES = test/shm/test_transfer_proof.c $(transfer_pair)
test_shm_test_transfer_proof_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_proof

check_PROGRAMS += test/shm/test_transfer_reach
test_shm_test_transfer_reach_SOURCES = test/shm/test_transfer_reach.c $(transfer_pair)
test_shm_test_transfer_reach_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_reach

check_PROGRAMS += test/shm/test_transfer_death
test_shm_test_transfer_death_SOURCES = test/shm/test_transfer_death.c $(transfer_pair)
test_shm_test_transfer_death_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_death

check_PROGRAMS += test/shm/test_transfer_keys
test_shm_test_transfer_keys_SOURCES = test/shm/test_transfer_keys.c $(transfer_pair)
test_shm_test_transfer_keys_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_keys

check_PROGRAMS += test/shm/test_transfer_hostile
test_shm_test_transfer_hostile_SOURCES = test/shm/test_transfer_hostile.c $(transfer_pair)
test_shm_test_transfer_hostile_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_hostile

check_PROGRAMS += test/shm/test_transfer_huge
test_shm_test_transfer_huge_SOURCES = test/shm/test_transfer_huge.c $(transfer_pair)
test_shm_test_transfer_huge_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_huge

check_PROGRAMS += test/shm/test_direct
test_shm_test_direct_SOURCES = test/shm/test_direct.c $(transfer_pair)
test_shm_test_direct_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_direct

check_PROGRAMS += test/shm/test_direct_now
test_shm_test_direct_now_SOURCES = test/shm/test_direct_now.c $(transfer_pair)
test_shm_test_direct_now_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_direct_now

check_PROGRAMS += test/shm/test_direct_denied
test_shm_test_direct_denied_SOURCES = test/shm/test_direct_denied.c $(transfer_pair)
test_shm_test_direct_denied_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_direct_denied

check_PROGRAMS += test/shm/test_direct_guard
test_shm_test_direct_guard_SOURCES = test/shm/test_direct_guard.c $(transfer_pair)
test_shm_test_direct_guard_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_direct_guard

direct_help = test/shm/direct_help.c test/shm/direct_help.h $(transfer_pair)

check_PROGRAMS += test/shm/test_direct_help
test_shm_test_direct_help_SOURCES = test/shm/test_direct_help.c $(direct_help)
test_shm_test_direct_help_LDADD = bench/libbench.la $(TEST_LDADD)
TESTS += test/shm/test_direct_help

check_PROGRAMS += test/shm/test_direct_help_fails
test_shm_test_direct_help_fails_SOURCES = test/shm/test_direct_help_fails.c $(direct_help)
test_shm_test_direct_help_fails_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_direct_help_fails

SHM_ENDS = test/shm/ends.c test/shm/ends.h test/rwk_test.h
check_PROGRAMS += test/shm/test_transfer_service
test_shm_test_transfer_service_SOURCES = test/shm/test_transfer_service.c $(SHM_ENDS)
test_shm_test_transfer_service_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer_service

check_PROGRAMS += test/shm/test_direct_service
test_shm_test_direct_service_SOURCES = test/shm/test_direct_service.c $(SHM_ENDS)
test_shm_test_direct_service_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_direct_service

check_PROGRAMS += test/shm/test_riders
test_shm_test_riders_SOURCES = test/shm/test_riders.c $(SHM_ENDS)
test_shm_test_riders_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_riders

check_PROGRAMS += test/shm/test_message
test_shm_test_message_SOURCES = test/shm/test_message.c $(SHM_ENDS)
test_shm_test_message_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_message

check_PROGRAMS += test/shm/test_no_slabs
test_shm_test_no_slabs_SOURCES = test/shm/test_no_slabs.c $(SHM_ENDS)
test_shm_test_no_slabs_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_no_slabs

check_PROGRAMS += test/shm/test_answer
test_shm_test_answer_SOURCES = test/shm/test_answer.c $(SHM_ENDS)
test_shm_test_answer_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_answer

check_PROGRAMS += test/shm/test_awaited
test_shm_test_awaited_SOURCES = test/shm/test_awaited.c $(SHM_ENDS)
test_shm_test_awaited_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_awaited

check_PROGRAMS += test/shm/test_begun
test_shm_test_begun_SOURCES = test/shm/test_begun.c $(SHM_ENDS)
test_shm_test_begun_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_begun

check_PROGRAMS += test/shm/test_connect
test_shm_test_connect_SOURCES = test/shm/test_connect.c $(SHM_ENDS)
test_shm_test_connect_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_connect

check_PROGRAMS += test/shm/test_connect_no_memory
test_shm_test_connect_no_memory_SOURCES = test/shm/test_connect_no_memory.c transports/shm/attach.c \
	transports/shm/segment.c $(SHM_ENDS)
test_shm_test_connect_no_memory_CPPFLAGS = $(AM_CPPFLAGS) -Dmmap=mmap_here -Dmunmap=munmap_here
test_shm_test_connect_no_memory_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_connect_no_memory

check_PROGRAMS += test/shm/test_absent
test_shm_test_absent_SOURCES = test/shm/test_absent.c $(SHM_ENDS)
test_shm_test_absent_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_absent

check_PROGRAMS += test/shm/test_taken_over
test_shm_test_taken_over_SOURCES = test/shm/test_taken_over.c $(SHM_ENDS)
test_shm_test_taken_over_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_taken_over

check_PROGRAMS += test/shm/test_refusals
test_shm_test_refusals_SOURCES = test/shm/test_refusals.c $(SHM_ENDS)
test_shm_test_refusals_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_refusals

check_PROGRAMS += test/shm/test_namespaces
test_shm_test_namespaces_SOURCES = test/shm/test_namespaces.c $(SHM_ENDS)
test_shm_test_namespaces_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_namespaces

check_PROGRAMS += test/shm/test_descriptors
test_shm_test_descriptors_SOURCES = test/shm/test_descriptors.c $(SHM_ENDS)
test_shm_test_descriptors_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_descriptors

check_PROGRAMS += test/shm/test_sleep
test_shm_test_sleep_SOURCES = test/shm/test_sleep.c $(SHM_ENDS)
test_shm_test_sleep_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_sleep

check_PROGRAMS += test/shm/test_unread
test_shm_test_unread_SOURCES = test/shm/test_unread.c $(SHM_ENDS)
test_shm_test_unread_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_unread

check_PROGRAMS += test/shm/test_death
test_shm_test_death_SOURCES = test/shm/test_death.c $(SHM_ENDS)
test_shm_test_death_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_death

check_PROGRAMS += test/shm/test_hostile
test_shm_test_hostile_SOURCES = test/shm/test_hostile.c $(SHM_ENDS)
test_shm_test_hostile_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_hostile

check_PROGRAMS += test/shm/test_many
test_shm_test_many_SOURCES = test/shm/test_many.c $(SHM_ENDS)
test_shm_test_many_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_many

# The ring, the wake-up protocol, the guard, SRC's domain and groups of objects as models; skipped where spin is
# missing.
TESTS += test/models/run
EXTRA_DIST += test/models/run test/models/ring.pml test/models/wake.pml test/models/direct.pml \
	test/models/domain.pml test/models/group.pml
