check_PROGRAMS += test/links/test_sim
test_links_test_sim_SOURCES = test/links/test_sim.c test/rwk_test.h
test_links_test_sim_CPPFLAGS = $(TEST_CPPFLAGS)
test_links_test_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/links/test_sim

check_PROGRAMS += test/links/test_sim_service
test_links_test_sim_service_SOURCES = test/links/test_sim_service.c test/rwk_test.h
test_links_test_sim_service_CPPFLAGS = $(TEST_CPPFLAGS)
test_links_test_sim_service_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/links/test_sim_service
