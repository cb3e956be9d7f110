# What test/memory adds to the build.
check_PROGRAMS += test/memory/test_keys
test_memory_test_keys_SOURCES = test/memory/test_keys.c test/rwk_test.h
test_memory_test_keys_LDADD = $(TEST_LDADD)
TESTS += test/memory/test_keys
