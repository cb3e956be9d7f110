# What test/rc adds to the build.
rc_end = test/rc/end.c test/rc/end.h test/rwk_test.h

check_PROGRAMS += test/rc/test_carry
test_rc_test_carry_SOURCES = test/rc/test_carry.c $(rc_end)
test_rc_test_carry_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_carry

check_PROGRAMS += test/rc/test_busy
test_rc_test_busy_SOURCES = test/rc/test_busy.c test/rc/run.h $(rc_end)
test_rc_test_busy_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_busy

check_PROGRAMS += test/rc/test_denied
test_rc_test_denied_SOURCES = test/rc/test_denied.c test/rc/run.h $(rc_end)
test_rc_test_denied_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_denied

check_PROGRAMS += test/rc/test_loss
test_rc_test_loss_SOURCES = test/rc/test_loss.c test/rc/run.h $(rc_end)
test_rc_test_loss_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_loss

check_PROGRAMS += test/rc/test_order
test_rc_test_order_SOURCES = test/rc/test_order.c $(rc_end)
test_rc_test_order_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_order

check_PROGRAMS += test/rc/test_order_gain
test_rc_test_order_gain_SOURCES = test/rc/test_order_gain.c $(rc_end)
test_rc_test_order_gain_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_order_gain

check_PROGRAMS += test/rc/test_order_random
test_rc_test_order_random_SOURCES = test/rc/test_order_random.c test/seeded.h $(rc_end)
test_rc_test_order_random_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_order_random

check_PROGRAMS += test/rc/test_own
test_rc_test_own_SOURCES = test/rc/test_own.c test/rc/run.h $(rc_end)
test_rc_test_own_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_own

check_PROGRAMS += test/rc/test_nonsense
test_rc_test_nonsense_SOURCES = test/rc/test_nonsense.c test/rc/alone.h $(rc_end)
test_rc_test_nonsense_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_nonsense

check_PROGRAMS += test/rc/test_overtaken
test_rc_test_overtaken_SOURCES = test/rc/test_overtaken.c test/rc/run.h $(rc_end)
test_rc_test_overtaken_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_overtaken

check_PROGRAMS += test/rc/test_random
test_rc_test_random_SOURCES = test/rc/test_random.c test/seeded.h $(rc_end)
test_rc_test_random_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_random

check_PROGRAMS += test/rc/test_requester
test_rc_test_requester_SOURCES = test/rc/test_requester.c test/rc/alone.h $(rc_end)
test_rc_test_requester_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_requester

check_PROGRAMS += test/rc/test_responder
test_rc_test_responder_SOURCES = test/rc/test_responder.c test/rc/alone.h $(rc_end)
test_rc_test_responder_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_responder

check_PROGRAMS += test/rc/test_states
test_rc_test_states_SOURCES = test/rc/test_states.c $(rc_end)
test_rc_test_states_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_states

check_PROGRAMS += test/rc/test_unordered
test_rc_test_unordered_SOURCES = test/rc/test_unordered.c test/rc/alone.h $(rc_end)
test_rc_test_unordered_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_unordered

check_PROGRAMS += test/rc/test_shared
test_rc_test_shared_SOURCES = test/rc/test_shared.c test/rwk_test.h
test_rc_test_shared_LDADD = $(TEST_LDADD)
TESTS += test/rc/test_shared

check_PROGRAMS += test/rc/test_large
test_rc_test_large_SOURCES = test/rc/test_large.c test/rwk_test.h
test_rc_test_large_LDADD = $(TEST_LDADD)
TESTS += test/rc/test_large

check_PROGRAMS += test/rc/test_scale
test_rc_test_scale_SOURCES = test/rc/test_scale.c $(scale_job) test/rwk_test.h
test_rc_test_scale_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_scale

check_PROGRAMS += test/rc/test_wrap
test_rc_test_wrap_SOURCES = test/rc/test_wrap.c $(rc_end)
test_rc_test_wrap_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/rc/test_wrap
