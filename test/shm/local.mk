# What test/shm adds to the build.
check_PROGRAMS += test/shm/test_transfer
test_shm_test_transfer_SOURCES = test/shm/test_transfer.c test/shm/transfer_pair.c test/shm/transfer_pair.h test/rwk_test.h
test_shm_test_transfer_CPPFLAGS = $(TEST_CPPFLAGS)
test_shm_test_transfer_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_transfer

SHM_ENDS = test/shm/ends.c test/shm/ends.h test/rwk_test.h
check_PROGRAMS += test/shm/test_message
test_shm_test_message_SOURCES = test/shm/test_message.c $(SHM_ENDS)
test_shm_test_message_CPPFLAGS = $(TEST_CPPFLAGS) -I$(srcdir)/test/shm
test_shm_test_message_LDADD = $(TEST_LDADD)
TESTS += test/shm/test_message
