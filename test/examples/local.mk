# What test/examples adds to the build.
EXTRA_DIST += test/examples/lib.sh
example_tests = test/examples/test_disk_read test/examples/test_key_value
dist_check_SCRIPTS += $(example_tests)
TESTS += $(example_tests)
