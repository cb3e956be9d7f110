# What test/packet adds to the build.
check_PROGRAMS += test/packet/test_greeting
test_packet_test_greeting_SOURCES = test/packet/test_greeting.c test/rwk_test.h
test_packet_test_greeting_CPPFLAGS = $(TEST_CPPFLAGS) $(SODIUM_CFLAGS)
test_packet_test_greeting_LDADD = $(TEST_LDADD) $(SODIUM_LIBS)
TESTS += test/packet/test_greeting

check_PROGRAMS += test/packet/test_capture
test_packet_test_capture_SOURCES = test/packet/test_capture.c test/rwk_test.h
test_packet_test_capture_CPPFLAGS = $(TEST_CPPFLAGS)
test_packet_test_capture_LDADD = $(TEST_LDADD) -lpthread
TESTS += test/packet/test_capture
