check_PROGRAMS += test/base/test_param
test_base_test_param_SOURCES = test/base/test_param.c test/rwk_test.h
test_base_test_param_LDADD = $(TEST_LDADD)
TESTS += test/base/test_param

check_PROGRAMS += test/base/test_pool
test_base_test_pool_SOURCES = test/base/test_pool.c test/rwk_test.h
test_base_test_pool_LDADD = $(TEST_LDADD)
TESTS += test/base/test_pool

check_PROGRAMS += test/base/test_random
test_base_test_random_SOURCES = test/base/test_random.c test/rwk_test.h
test_base_test_random_CPPFLAGS = $(AM_CPPFLAGS) -Dgetrandom=getrandom_here
test_base_test_random_LDADD = $(TEST_LDADD)
TESTS += test/base/test_random

check_PROGRAMS += test/base/test_interfaces
test_base_test_interfaces_SOURCES = test/base/test_interfaces.c test/rwk_test.h
test_base_test_interfaces_LDADD = $(TEST_LDADD)
TESTS += test/base/test_interfaces

check_PROGRAMS += test/base/test_shared
test_base_test_shared_SOURCES = test/base/test_shared.c test/rwk_test.h
test_base_test_shared_LDADD = $(TEST_LDADD)
TESTS += test/base/test_shared

check_PROGRAMS += test/base/test_socket
test_base_test_socket_SOURCES = test/base/test_socket.c test/rwk_test.h
test_base_test_socket_LDADD = $(TEST_LDADD)
TESTS += test/base/test_socket

check_PROGRAMS += test/base/param_tables
test_base_param_tables_SOURCES = test/base/param_tables.c
test_base_param_tables_LDADD = libropewalk-core.la
dist_check_SCRIPTS += test/base/params_documented
TESTS += test/base/params_documented

check_PROGRAMS += test/base/test_crowd
test_base_test_crowd_SOURCES = test/base/test_crowd.c test/rwk_test.h
test_base_test_crowd_LDADD = $(TEST_LDADD)
TESTS += test/base/test_crowd

check_PROGRAMS += test/base/test_hash_table
test_base_test_hash_table_SOURCES = test/base/test_hash_table.c test/rwk_test.h src/base/hash_table.c
test_base_test_hash_table_CPPFLAGS = $(AM_CPPFLAGS) -Dcalloc=calloc_here
test_base_test_hash_table_LDADD = $(TEST_LDADD)
TESTS += test/base/test_hash_table

check_PROGRAMS += test/base/test_spares
test_base_test_spares_SOURCES = test/base/test_spares.c test/rwk_test.h
test_base_test_spares_LDADD = $(TEST_LDADD)
TESTS += test/base/test_spares

check_PROGRAMS += test/base/test_copy
test_base_test_copy_SOURCES = test/base/test_copy.c test/rwk_test.h
test_base_test_copy_LDADD = $(TEST_LDADD)
TESTS += test/base/test_copy

check_PROGRAMS += test/base/test_call_if
test_base_test_call_if_SOURCES = test/base/test_call_if.c test/rwk_test.h
test_base_test_call_if_LDADD = $(TEST_LDADD)
TESTS += test/base/test_call_if

check_PROGRAMS += test/base/test_process
test_base_test_process_SOURCES = test/base/test_process.c test/rwk_test.h
test_base_test_process_LDADD = $(TEST_LDADD)
TESTS += test/base/test_process

check_PROGRAMS += test/base/test_this_process
test_base_test_this_process_SOURCES = test/base/test_this_process.c test/rwk_test.h src/base/this_process.c
test_base_test_this_process_CPPFLAGS = $(AM_CPPFLAGS) -Dgetpid=getpid_here -Dmmap=mmap_here
test_base_test_this_process_LDADD = $(TEST_LDADD)
TESTS += test/base/test_this_process
