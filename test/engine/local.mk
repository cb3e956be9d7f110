# What test/engine adds to the build.
check_PROGRAMS += test/engine/test_atomic
test_engine_test_atomic_SOURCES = test/engine/test_atomic.c test/rwk_test.h
test_engine_test_atomic_LDADD = $(TEST_LDADD) -lm
TESTS += test/engine/test_atomic

check_PROGRAMS += test/engine/test_atomic_threads
test_engine_test_atomic_threads_SOURCES = test/engine/test_atomic_threads.c test/rwk_test.h
test_engine_test_atomic_threads_LDADD = $(TEST_LDADD)
TESTS += test/engine/test_atomic_threads

match_inside = test/engine/match_inside.h test/rwk_test.h

check_PROGRAMS += test/engine/test_directory
test_engine_test_directory_SOURCES = test/engine/test_directory.c test/rwk_test.h
test_engine_test_directory_LDADD = $(TEST_LDADD)
TESTS += test/engine/test_directory

check_PROGRAMS += test/engine/test_match
test_engine_test_match_SOURCES = test/engine/test_match.c $(match_inside)
test_engine_test_match_LDADD = $(CMOCKA_LIBS)
TESTS += test/engine/test_match

check_PROGRAMS += test/engine/test_match_random
test_engine_test_match_random_SOURCES = test/engine/test_match_random.c $(match_inside)
test_engine_test_match_random_LDADD = $(CMOCKA_LIBS)
TESTS += test/engine/test_match_random

check_PROGRAMS += test/engine/test_own_ips
test_engine_test_own_ips_SOURCES = test/engine/test_own_ips.c test/rwk_test.h
test_engine_test_own_ips_LDADD = $(TEST_LDADD)
test_engine_test_own_ips_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open,--wrap=gethostname
TESTS += test/engine/test_own_ips

check_PROGRAMS += test/engine/test_ports
test_engine_test_ports_SOURCES = test/engine/test_ports.c test/rwk_test.h
test_engine_test_ports_LDADD = $(TEST_LDADD)
TESTS += test/engine/test_ports

check_PROGRAMS += test/engine/test_snapshot
test_engine_test_snapshot_SOURCES = test/engine/test_snapshot.c test/links/udp_hosts.c test/links/udp_hosts.h test/rwk_test.h
test_engine_test_snapshot_LDADD = $(TEST_LDADD)
TESTS += test/engine/test_snapshot

engine_world = test/engine/world.c test/engine/world.h test/packet/sim_packet.c test/packet/sim_packet.h \
	test/packet/sim_domain.c test/packet/sim_domain.h test/packet/sim_stream.c test/packet/sim_stream.h test/rwk_test.h

check_PROGRAMS += test/engine/test_messages
test_engine_test_messages_SOURCES = test/engine/test_messages.c $(engine_world)
test_engine_test_messages_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_messages

check_PROGRAMS += test/engine/test_receives
test_engine_test_receives_SOURCES = test/engine/test_receives.c $(engine_world)
test_engine_test_receives_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_receives

check_PROGRAMS += test/engine/test_inbox
test_engine_test_inbox_SOURCES = test/engine/test_inbox.c $(engine_world)
test_engine_test_inbox_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_inbox

check_PROGRAMS += test/engine/test_credit
test_engine_test_credit_SOURCES = test/engine/test_credit.c $(engine_world)
test_engine_test_credit_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_credit

check_PROGRAMS += test/engine/test_delivered
test_engine_test_delivered_SOURCES = test/engine/test_delivered.c $(engine_world)
test_engine_test_delivered_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_delivered

check_PROGRAMS += test/engine/test_late
test_engine_test_late_SOURCES = test/engine/test_late.c $(engine_world)
test_engine_test_late_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_late

check_PROGRAMS += test/engine/test_soak
test_engine_test_soak_SOURCES = test/engine/test_soak.c $(engine_world)
test_engine_test_soak_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_soak

check_PROGRAMS += test/engine/test_failures
test_engine_test_failures_SOURCES = test/engine/test_failures.c $(engine_world)
test_engine_test_failures_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_failures

check_PROGRAMS += test/engine/test_bounds
test_engine_test_bounds_SOURCES = test/engine/test_bounds.c $(engine_world)
test_engine_test_bounds_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_bounds

check_PROGRAMS += test/engine/test_strangers
test_engine_test_strangers_SOURCES = test/engine/test_strangers.c $(engine_world)
test_engine_test_strangers_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_strangers

check_PROGRAMS += test/engine/test_places
test_engine_test_places_SOURCES = test/engine/test_places.c $(engine_world)
test_engine_test_places_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_places

check_PROGRAMS += test/engine/test_send_promises
test_engine_test_send_promises_SOURCES = test/engine/test_send_promises.c $(engine_world)
test_engine_test_send_promises_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_send_promises

engine_area = test/engine/area.c test/engine/area.h $(engine_world)

check_PROGRAMS += test/engine/test_rma
test_engine_test_rma_SOURCES = test/engine/test_rma.c $(engine_area)
test_engine_test_rma_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_rma

check_PROGRAMS += test/engine/test_merge
test_engine_test_merge_SOURCES = test/engine/test_merge.c $(engine_area)
test_engine_test_merge_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_merge

check_PROGRAMS += test/engine/test_rma_direct
test_engine_test_rma_direct_SOURCES = test/engine/test_rma_direct.c $(engine_area)
test_engine_test_rma_direct_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_rma_direct

check_PROGRAMS += test/engine/test_rma_order
test_engine_test_rma_order_SOURCES = test/engine/test_rma_order.c $(engine_area)
test_engine_test_rma_order_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_rma_order

check_PROGRAMS += test/engine/test_rma_now
test_engine_test_rma_now_SOURCES = test/engine/test_rma_now.c $(engine_area)
test_engine_test_rma_now_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_rma_now

check_PROGRAMS += test/engine/test_rma_ends
test_engine_test_rma_ends_SOURCES = test/engine/test_rma_ends.c $(engine_area)
test_engine_test_rma_ends_LDADD = librwk_sim.la $(TEST_LDADD)
test_engine_test_rma_ends_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev
TESTS += test/engine/test_rma_ends

check_PROGRAMS += test/engine/test_rma_words
test_engine_test_rma_words_SOURCES = test/engine/test_rma_words.c test/watched.h $(engine_area)
test_engine_test_rma_words_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_rma_words

engine_hostile = test/engine/hostile.c test/engine/hostile.h $(engine_area)

check_PROGRAMS += test/engine/test_rma_hostile
test_engine_test_rma_hostile_SOURCES = test/engine/test_rma_hostile.c $(engine_hostile)
test_engine_test_rma_hostile_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_rma_hostile

check_PROGRAMS += test/engine/test_rma_answers
test_engine_test_rma_answers_SOURCES = test/engine/test_rma_answers.c $(engine_hostile)
test_engine_test_rma_answers_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/engine/test_rma_answers

check_PROGRAMS += test/engine/test_no_memory
test_engine_test_no_memory_SOURCES = test/engine/test_no_memory.c $(engine_area)
test_engine_test_no_memory_LDADD = librwk_sim.la $(TEST_LDADD)
test_engine_test_no_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=realloc,--wrap=calloc
TESTS += test/engine/test_no_memory

check_PROGRAMS += test/engine/test_rma_choice
test_engine_test_rma_choice_SOURCES = test/engine/test_rma_choice.c test/rwk_test.h
test_engine_test_rma_choice_LDADD = $(TEST_LDADD)
TESTS += test/engine/test_rma_choice
