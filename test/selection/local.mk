# What test/selection adds to the build.
check_PROGRAMS += test/selection/test_selection
test_selection_test_selection_SOURCES = test/selection/test_selection.c test/rwk_test.h
test_selection_test_selection_LDADD = $(TEST_LDADD)
TESTS += test/selection/test_selection

check_PROGRAMS += test/selection/test_cost
test_selection_test_cost_SOURCES = test/selection/test_cost.c test/rwk_test.h
test_selection_test_cost_LDADD = $(TEST_LDADD)
TESTS += test/selection/test_cost
