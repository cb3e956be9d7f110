# What test/tools adds to the build.
TESTS += test/tools/test_rwk_info test/tools/test_rwk_info_pid test/tools/test_rwk_pingpong test/tools/test_man_pages \
	test/tools/test_transports_readme test/tools/test_quickstart test/tools/test_job_scripts
EXTRA_DIST += test/tools/test_rwk_info test/tools/test_rwk_info_pid test/tools/test_rwk_pingpong \
	test/tools/test_man_pages test/tools/test_transports_readme test/tools/test_quickstart \
	test/tools/test_job_scripts

check_PROGRAMS += test/tools/endpoints
test_tools_endpoints_SOURCES = test/tools/endpoints.c
test_tools_endpoints_LDADD = libropewalk-core.la

check_PROGRAMS += test/tools/test_meet
test_tools_test_meet_SOURCES = test/tools/test_meet.c test/rwk_test.h
test_tools_test_meet_LDADD = librwk_meet.la $(CMOCKA_LIBS)
TESTS += test/tools/test_meet
