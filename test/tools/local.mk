# What test/tools adds to the build.
TESTS += test/tools/test_rwk_info test/tools/test_rwk_pingpong test/tools/test_man_pages \
	test/tools/test_transports_readme
EXTRA_DIST += test/tools/test_rwk_info test/tools/test_rwk_pingpong test/tools/test_man_pages \
	test/tools/test_transports_readme
