check_PROGRAMS += test/base/test_param
test_base_test_param_SOURCES = test/base/test_param.c test/rwk_test.h
test_base_test_param_CPPFLAGS = $(TEST_CPPFLAGS)
test_base_test_param_LDADD = $(TEST_LDADD)
TESTS += test/base/test_param
