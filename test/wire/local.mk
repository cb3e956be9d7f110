# What test/wire adds to the build.
check_PROGRAMS += test/wire/test_icrc
test_wire_test_icrc_SOURCES = test/wire/test_icrc.c test/rwk_test.h
test_wire_test_icrc_CPPFLAGS = $(TEST_CPPFLAGS)
test_wire_test_icrc_LDADD = $(TEST_LDADD)
TESTS += test/wire/test_icrc
