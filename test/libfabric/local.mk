# Tests of the provider as libfabric loads it from the build folder.
check_LIBRARIES += test/libfabric/libfi_test.a
test_libfabric_libfi_test_a_SOURCES = test/libfabric/fi_test.c test/libfabric/fi_test.h test/pattern.h test/rwk_test.h
test_libfabric_libfi_test_a_CPPFLAGS = $(AM_CPPFLAGS) -DRWK_PROVIDER_PATH='"$(abs_builddir)/.libs"'
FI_TEST_LDADD = test/libfabric/libfi_test.a $(CMOCKA_LIBS) $(LIBFABRIC_LIBS) -lpthread

check_PROGRAMS += test/libfabric/test_info
test_libfabric_test_info_SOURCES = test/libfabric/test_info.c
test_libfabric_test_info_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_info_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_info

check_PROGRAMS += test/libfabric/test_info_hints
test_libfabric_test_info_hints_SOURCES = test/libfabric/test_info_hints.c
test_libfabric_test_info_hints_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_info_hints_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_info_hints

FI_DGRAM = test/libfabric/fi_dgram.c test/libfabric/fi_dgram.h

check_PROGRAMS += test/libfabric/test_dgram
test_libfabric_test_dgram_SOURCES = test/libfabric/test_dgram.c $(FI_DGRAM)
test_libfabric_test_dgram_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_dgram_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_dgram

check_PROGRAMS += test/libfabric/test_dgram_peers
test_libfabric_test_dgram_peers_SOURCES = test/libfabric/test_dgram_peers.c $(FI_DGRAM)
test_libfabric_test_dgram_peers_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_dgram_peers_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_dgram_peers

check_PROGRAMS += test/libfabric/test_dgram_pair
test_libfabric_test_dgram_pair_SOURCES = test/libfabric/test_dgram_pair.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h
test_libfabric_test_dgram_pair_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_dgram_pair_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_dgram_pair

check_PROGRAMS += test/libfabric/test_objects
test_libfabric_test_objects_SOURCES = test/libfabric/test_objects.c
test_libfabric_test_objects_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_objects_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_objects

FI_PAIR = test/libfabric/pair.c test/libfabric/pair.h

check_PROGRAMS += test/libfabric/test_transfer
test_libfabric_test_transfer_SOURCES = test/libfabric/test_transfer.c $(FI_PAIR)
test_libfabric_test_transfer_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_transfer_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_transfer

check_PROGRAMS += test/libfabric/test_receive
test_libfabric_test_receive_SOURCES = test/libfabric/test_receive.c $(FI_PAIR)
test_libfabric_test_receive_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_receive_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_receive

check_PROGRAMS += test/libfabric/test_shared_rx
test_libfabric_test_shared_rx_SOURCES = test/libfabric/test_shared_rx.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h
test_libfabric_test_shared_rx_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_shared_rx_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_shared_rx

FI_SEP = test/libfabric/fi_sep.c test/libfabric/fi_sep.h

check_PROGRAMS += test/libfabric/test_two_addresses
test_libfabric_test_two_addresses_SOURCES = test/libfabric/test_two_addresses.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h $(FI_SEP)
test_libfabric_test_two_addresses_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_two_addresses_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_two_addresses

check_PROGRAMS += test/libfabric/test_scalable
test_libfabric_test_scalable_SOURCES = test/libfabric/test_scalable.c $(FI_SEP)
test_libfabric_test_scalable_LDADD = $(FI_TEST_LDADD) -ldl
test_libfabric_test_scalable_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_scalable_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_scalable

check_PROGRAMS += test/libfabric/test_scalable_pair
test_libfabric_test_scalable_pair_SOURCES = test/libfabric/test_scalable_pair.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h $(FI_SEP)
test_libfabric_test_scalable_pair_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_scalable_pair_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_scalable_pair

check_PROGRAMS += test/libfabric/test_scalable_open
test_libfabric_test_scalable_open_SOURCES = test/libfabric/test_scalable_open.c $(FI_SEP) $(FULL_SETS)
test_libfabric_test_scalable_open_LDADD = $(FI_TEST_LDADD)
test_libfabric_test_scalable_open_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_scalable_open_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_scalable_open

check_PROGRAMS += test/libfabric/test_completion
test_libfabric_test_completion_SOURCES = test/libfabric/test_completion.c $(FI_PAIR)
test_libfabric_test_completion_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_completion_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_completion

check_PROGRAMS += test/libfabric/test_flags
test_libfabric_test_flags_SOURCES = test/libfabric/test_flags.c $(FI_PAIR)
test_libfabric_test_flags_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_flags_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_flags

check_PROGRAMS += test/libfabric/test_cntr
test_libfabric_test_cntr_SOURCES = test/libfabric/test_cntr.c
test_libfabric_test_cntr_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_cntr_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_cntr

check_PROGRAMS += test/libfabric/test_trigger
test_libfabric_test_trigger_SOURCES = test/libfabric/test_trigger.c $(FI_PAIR)
test_libfabric_test_trigger_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_trigger_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_trigger

check_PROGRAMS += test/libfabric/test_deferred
test_libfabric_test_deferred_SOURCES = test/libfabric/test_deferred.c $(FI_PAIR)
test_libfabric_test_deferred_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_deferred_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_deferred

FI_SLEEPER = test/libfabric/fi_sleeper.c test/libfabric/fi_sleeper.h

check_PROGRAMS += test/libfabric/test_wait
test_libfabric_test_wait_SOURCES = test/libfabric/test_wait.c $(FI_SLEEPER)
test_libfabric_test_wait_LDADD = $(FI_TEST_LDADD)
test_libfabric_test_wait_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_wait_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_wait

check_PROGRAMS += test/libfabric/test_waiters
test_libfabric_test_waiters_SOURCES = test/libfabric/test_waiters.c $(FI_SLEEPER)
test_libfabric_test_waiters_LDADD = $(FI_TEST_LDADD)
test_libfabric_test_waiters_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_waiters_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_waiters

check_PROGRAMS += test/libfabric/test_threads
test_libfabric_test_threads_SOURCES = test/libfabric/test_threads.c
test_libfabric_test_threads_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_threads_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_threads

check_PROGRAMS += test/libfabric/test_crowded
test_libfabric_test_crowded_SOURCES = test/libfabric/test_crowded.c
test_libfabric_test_crowded_LDADD = $(FI_TEST_LDADD)
test_libfabric_test_crowded_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_crowded_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_crowded

check_PROGRAMS += test/libfabric/test_groups
test_libfabric_test_groups_SOURCES = test/libfabric/test_groups.c
test_libfabric_test_groups_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_groups_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_groups

check_PROGRAMS += test/libfabric/test_apart
test_libfabric_test_apart_SOURCES = test/libfabric/test_apart.c
test_libfabric_test_apart_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_apart_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_apart

check_PROGRAMS += test/libfabric/test_again
test_libfabric_test_again_SOURCES = test/libfabric/test_again.c
test_libfabric_test_again_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_again_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_again

check_PROGRAMS += test/libfabric/test_ipv6
test_libfabric_test_ipv6_SOURCES = test/libfabric/test_ipv6.c
test_libfabric_test_ipv6_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_ipv6_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_ipv6

check_PROGRAMS += test/libfabric/test_jobs
test_libfabric_test_jobs_SOURCES = test/libfabric/test_jobs.c
test_libfabric_test_jobs_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_jobs_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_jobs

check_PROGRAMS += test/libfabric/test_forked
test_libfabric_test_forked_SOURCES = test/libfabric/test_forked.c
test_libfabric_test_forked_LDADD = $(FI_TEST_LDADD) -ldl
test_libfabric_test_forked_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_forked_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_forked

check_PROGRAMS += test/libfabric/test_progress
test_libfabric_test_progress_SOURCES = test/libfabric/test_progress.c test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_progress_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_progress_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_progress

check_PROGRAMS += test/libfabric/test_close
test_libfabric_test_close_SOURCES = test/libfabric/test_close.c test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_close_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_close_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_close

check_PROGRAMS += test/libfabric/test_close_both
test_libfabric_test_close_both_SOURCES = test/libfabric/test_close_both.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h
test_libfabric_test_close_both_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_close_both_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_close_both

check_PROGRAMS += test/libfabric/test_many_ends
test_libfabric_test_many_ends_SOURCES = test/libfabric/test_many_ends.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h
test_libfabric_test_many_ends_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_many_ends_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_many_ends

check_PROGRAMS += test/libfabric/test_levels
test_libfabric_test_levels_SOURCES = test/libfabric/test_levels.c test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_levels_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_levels_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_levels

FI_TARGET = test/libfabric/fi_target.c test/libfabric/fi_target.h test/libfabric/fi_pair.c test/libfabric/fi_pair.h

check_PROGRAMS += test/libfabric/test_rma
test_libfabric_test_rma_SOURCES = test/libfabric/test_rma.c $(FI_TARGET)
test_libfabric_test_rma_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_rma_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_rma

check_PROGRAMS += test/libfabric/test_atomic
test_libfabric_test_atomic_SOURCES = test/libfabric/test_atomic.c $(FI_TARGET)
test_libfabric_test_atomic_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_atomic_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_atomic

check_PROGRAMS += test/libfabric/test_hammer
test_libfabric_test_hammer_SOURCES = test/libfabric/test_hammer.c $(FI_TARGET)
test_libfabric_test_hammer_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_hammer_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_hammer

check_PROGRAMS += test/libfabric/test_work_links
test_libfabric_test_work_links_SOURCES = test/libfabric/test_work_links.c $(FI_TARGET)
test_libfabric_test_work_links_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_work_links_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_work_links

check_PROGRAMS += test/libfabric/test_lock
test_libfabric_test_lock_SOURCES = test/libfabric/test_lock.c bindings/libfabric/lock.c test/rwk_test.h
test_libfabric_test_lock_LDADD = $(CMOCKA_LIBS) -lpthread
TESTS += test/libfabric/test_lock

check_PROGRAMS += test/libfabric/test_rma_start
test_libfabric_test_rma_start_SOURCES = test/libfabric/test_rma_start.c bindings/libfabric/rma.c \
	bindings/libfabric/lock.c src/base/iov.c src/base/copy.c src/base/log.c test/rwk_test.h
test_libfabric_test_rma_start_LDADD = $(CMOCKA_LIBS) -lpthread
TESTS += test/libfabric/test_rma_start

check_PROGRAMS += test/libfabric/test_progress_groups
test_libfabric_test_progress_groups_SOURCES = test/libfabric/test_progress_groups.c bindings/libfabric/progress.c \
	bindings/libfabric/group.c bindings/libfabric/lock.c bindings/libfabric/sleepers.c src/base/forked.c \
	src/base/log.c src/base/this_process.c test/rwk_test.h
test_libfabric_test_progress_groups_LDADD = $(CMOCKA_LIBS) -lpthread
TESTS += test/libfabric/test_progress_groups

check_PROGRAMS += test/libfabric/test_waits
test_libfabric_test_waits_SOURCES = test/libfabric/test_waits.c test/rwk_test.h
test_libfabric_test_waits_LDADD = $(CMOCKA_LIBS)
TESTS += test/libfabric/test_waits

check_PROGRAMS += test/libfabric/test_sleepers
test_libfabric_test_sleepers_SOURCES = test/libfabric/test_sleepers.c bindings/libfabric/sleepers.c \
	bindings/libfabric/lock.c test/rwk_test.h
test_libfabric_test_sleepers_LDADD = $(CMOCKA_LIBS)
TESTS += test/libfabric/test_sleepers

check_PROGRAMS += test/libfabric/test_group
test_libfabric_test_group_SOURCES = test/libfabric/test_group.c bindings/libfabric/group.c bindings/libfabric/lock.c \
	test/rwk_test.h
test_libfabric_test_group_LDADD = $(CMOCKA_LIBS) -lpthread
TESTS += test/libfabric/test_group

check_PROGRAMS += test/libfabric/test_mr
test_libfabric_test_mr_SOURCES = test/libfabric/test_mr.c $(FI_TARGET)
test_libfabric_test_mr_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_mr_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_mr

check_PROGRAMS += test/libfabric/test_lent
test_libfabric_test_lent_SOURCES = test/libfabric/test_lent.c test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_lent_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_lent_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_lent

check_PROGRAMS += test/libfabric/test_lent_asked
test_libfabric_test_lent_asked_SOURCES = test/libfabric/test_lent_asked.c bindings/libfabric/peer_entry.c \
	bindings/libfabric/peer_entry.h test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_lent_asked_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_lent_asked_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_lent_asked

check_PROGRAMS += test/libfabric/test_peer
test_libfabric_test_peer_SOURCES = test/libfabric/test_peer.c test/libfabric/fi_owner.c test/libfabric/fi_owner.h \
	test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_peer_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_peer_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_peer

check_PROGRAMS += test/libfabric/test_peer_forms
test_libfabric_test_peer_forms_SOURCES = test/libfabric/test_peer_forms.c bindings/libfabric/peer_entry.c \
	bindings/libfabric/peer_entry.h bindings/libfabric/peer_forms.h
test_libfabric_test_peer_forms_LDADD = $(CMOCKA_LIBS)
TESTS += test/libfabric/test_peer_forms

FI_MSG = test/libfabric/fi_msg.c test/libfabric/fi_msg.h

check_PROGRAMS += test/libfabric/test_msg_connect
test_libfabric_test_msg_connect_SOURCES = test/libfabric/test_msg_connect.c $(FI_MSG)
test_libfabric_test_msg_connect_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_msg_connect_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_connect

check_PROGRAMS += test/libfabric/test_msg_close
test_libfabric_test_msg_close_SOURCES = test/libfabric/test_msg_close.c $(FI_MSG)
test_libfabric_test_msg_close_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_msg_close_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_close

# Its own calloc.
check_PROGRAMS += test/libfabric/test_msg_no_memory
test_libfabric_test_msg_no_memory_SOURCES = test/libfabric/test_msg_no_memory.c $(FI_MSG)
test_libfabric_test_msg_no_memory_LDADD = $(FI_TEST_LDADD) -ldl
EXTRA_test_libfabric_test_msg_no_memory_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_no_memory

check_PROGRAMS += test/libfabric/test_msg_unconnected
test_libfabric_test_msg_unconnected_SOURCES = test/libfabric/test_msg_unconnected.c $(FI_MSG)
test_libfabric_test_msg_unconnected_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_msg_unconnected_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_unconnected

check_PROGRAMS += test/libfabric/test_many_waits
test_libfabric_test_many_waits_SOURCES = test/libfabric/test_many_waits.c $(FI_MSG) $(FULL_SETS)
test_libfabric_test_many_waits_LDADD = $(FI_TEST_LDADD)
test_libfabric_test_many_waits_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_many_waits_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_many_waits

check_PROGRAMS += test/libfabric/test_msg_transfer
test_libfabric_test_msg_transfer_SOURCES = test/libfabric/test_msg_transfer.c $(FI_MSG)
test_libfabric_test_msg_transfer_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_msg_transfer_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_transfer

check_PROGRAMS += test/libfabric/test_msg_shared_rx
test_libfabric_test_msg_shared_rx_SOURCES = test/libfabric/test_msg_shared_rx.c $(FI_MSG)
test_libfabric_test_msg_shared_rx_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_msg_shared_rx_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_shared_rx

check_PROGRAMS += test/libfabric/test_alias
test_libfabric_test_alias_SOURCES = test/libfabric/test_alias.c $(FI_MSG)
test_libfabric_test_alias_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_alias_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_alias

check_PROGRAMS += test/libfabric/test_msg_rma
test_libfabric_test_msg_rma_SOURCES = test/libfabric/test_msg_rma.c $(FI_MSG)
test_libfabric_test_msg_rma_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_msg_rma_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_rma

check_PROGRAMS += test/libfabric/test_msg_death
test_libfabric_test_msg_death_SOURCES = test/libfabric/test_msg_death.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h $(FI_MSG)
test_libfabric_test_msg_death_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_msg_death_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_msg_death

EXTRA_DIST += test/libfabric/pingpong.sh
TESTS += test/libfabric/pingpong.sh

check_PROGRAMS += test/libfabric/test_quiet
test_libfabric_test_quiet_SOURCES = test/libfabric/test_quiet.c
test_libfabric_test_quiet_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_quiet_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_quiet

# What the provider says to everything that libfabric has: for the table of bindings/libfabric/README.md.
check_PROGRAMS += test/libfabric/try_all
test_libfabric_try_all_SOURCES = test/libfabric/try_all.c test/libfabric/try.h test/libfabric/try_calls.c \
	test/libfabric/try_connection.c test/libfabric/try_flags.c test/libfabric/try_hints.c \
	test/libfabric/try_objects.c test/libfabric/try_transfers.c $(FI_MSG)
test_libfabric_try_all_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_try_all_DEPENDENCIES = libropewalk-fi.la
TESTS += bindings/libfabric/conformance

check_PROGRAMS += test/libfabric/test_wait_processes
test_libfabric_test_wait_processes_SOURCES = test/libfabric/test_wait_processes.c
test_libfabric_test_wait_processes_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_wait_processes_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_wait_processes

check_PROGRAMS += test/libfabric/test_cancelled
test_libfabric_test_cancelled_SOURCES = test/libfabric/test_cancelled.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h
test_libfabric_test_cancelled_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_cancelled_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_cancelled

check_PROGRAMS += test/libfabric/test_cancelled_slow
test_libfabric_test_cancelled_slow_SOURCES = test/libfabric/test_cancelled_slow.c $(FI_MSG)
test_libfabric_test_cancelled_slow_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_cancelled_slow_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_cancelled_slow

check_PROGRAMS += test/libfabric/test_wait_set
test_libfabric_test_wait_set_SOURCES = test/libfabric/test_wait_set.c test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_wait_set_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_wait_set_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_wait_set

check_PROGRAMS += test/libfabric/test_av
test_libfabric_test_av_SOURCES = test/libfabric/test_av.c test/libfabric/fi_pair.c test/libfabric/fi_pair.h
test_libfabric_test_av_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_av_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_av

check_PROGRAMS += test/libfabric/test_av_places
test_libfabric_test_av_places_SOURCES = test/libfabric/test_av_places.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h
test_libfabric_test_av_places_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_av_places_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_av_places

check_PROGRAMS += test/libfabric/test_av_shared
test_libfabric_test_av_shared_SOURCES = test/libfabric/test_av_shared.c test/libfabric/fi_pair.c \
	test/libfabric/fi_pair.h
test_libfabric_test_av_shared_LDADD = $(FI_TEST_LDADD)
test_libfabric_test_av_shared_LDFLAGS = -export-dynamic
EXTRA_test_libfabric_test_av_shared_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_av_shared

check_PROGRAMS += test/libfabric/test_nic
test_libfabric_test_nic_SOURCES = test/libfabric/test_nic.c bindings/libfabric/nic.c bindings/libfabric/nic.h
test_libfabric_test_nic_LDADD = $(FI_TEST_LDADD)
EXTRA_test_libfabric_test_nic_DEPENDENCIES = libropewalk-fi.la
TESTS += test/libfabric/test_nic
