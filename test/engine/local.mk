# What test/engine adds to the build.
check_PROGRAMS += test/engine/test_match
test_engine_test_match_SOURCES = test/engine/test_match.c test/rwk_test.h
test_engine_test_match_CPPFLAGS = $(TEST_CPPFLAGS)
test_engine_test_match_LDADD = $(CMOCKA_LIBS)
TESTS += test/engine/test_match
