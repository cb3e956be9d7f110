# What test/bench adds to the build.
check_PROGRAMS += test/bench/test_common
test_bench_test_common_SOURCES = test/bench/test_common.c test/rwk_test.h
test_bench_test_common_CPPFLAGS = $(TEST_CPPFLAGS)
test_bench_test_common_LDADD = bench/libbench.la $(CMOCKA_LIBS)

EXTRA_DIST += test/bench/lib.sh test/bench/json_is.py test/bench/test_compare.py
dist_check_SCRIPTS += test/bench/test_mpi_programs test/bench/test_ofi_programs test/bench/test_limits test/bench/test_compare
TESTS += test/bench/test_common test/bench/test_mpi_programs test/bench/test_ofi_programs test/bench/test_limits test/bench/test_compare
