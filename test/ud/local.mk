# What test/ud adds to the build.
check_PROGRAMS += test/ud/test_ud
test_ud_test_ud_SOURCES = test/ud/test_ud.c test/rwk_test.h
test_ud_test_ud_LDADD = $(TEST_LDADD)
TESTS += test/ud/test_ud
