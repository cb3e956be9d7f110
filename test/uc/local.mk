# What test/uc adds to the build.
uc_ends = test/uc/ends.c test/uc/ends.h test/repeated.h test/rwk_test.h

check_PROGRAMS += test/uc/test_uc_messages
test_uc_test_uc_messages_SOURCES = test/uc/test_uc_messages.c $(uc_ends)
test_uc_test_uc_messages_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/uc/test_uc_messages

check_PROGRAMS += test/uc/test_uc_loss
test_uc_test_uc_loss_SOURCES = test/uc/test_uc_loss.c $(uc_ends)
test_uc_test_uc_loss_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/uc/test_uc_loss

check_PROGRAMS += test/uc/test_uc_refused
test_uc_test_uc_refused_SOURCES = test/uc/test_uc_refused.c $(uc_ends)
test_uc_test_uc_refused_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/uc/test_uc_refused

check_PROGRAMS += test/uc/test_uc_states
test_uc_test_uc_states_SOURCES = test/uc/test_uc_states.c $(uc_ends)
test_uc_test_uc_states_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/uc/test_uc_states

check_PROGRAMS += test/uc/test_uc_large
test_uc_test_uc_large_SOURCES = test/uc/test_uc_large.c $(uc_ends)
test_uc_test_uc_large_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/uc/test_uc_large

check_PROGRAMS += test/uc/test_uc_random
test_uc_test_uc_random_SOURCES = test/uc/test_uc_random.c $(uc_ends)
test_uc_test_uc_random_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/uc/test_uc_random

check_PROGRAMS += test/uc/test_uc_shared
test_uc_test_uc_shared_SOURCES = test/uc/test_uc_shared.c test/rwk_test.h
test_uc_test_uc_shared_LDADD = $(TEST_LDADD)
TESTS += test/uc/test_uc_shared
