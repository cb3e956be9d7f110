# What test/bench adds to the build.
check_PROGRAMS += test/bench/test_common
test_bench_test_common_SOURCES = test/bench/test_common.c test/rwk_test.h
test_bench_test_common_LDADD = bench/libbench.la $(CMOCKA_LIBS)

EXTRA_DIST += test/bench/lib.sh test/bench/json_is.py test/bench/test_compare.py
bench_test_scripts = test/bench/test_mpi_programs test/bench/test_ofi_programs test/bench/test_adapter_programs \
	test/bench/test_limits test/bench/test_compare test/bench/test_slices test/bench/test_scale
dist_check_SCRIPTS += $(bench_test_scripts)
TESTS += test/bench/test_common $(bench_test_scripts)
