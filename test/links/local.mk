# What test/links adds to the build.
check_PROGRAMS += test/links/test_sim
test_links_test_sim_SOURCES = test/links/test_sim.c test/rwk_test.h
test_links_test_sim_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/links/test_sim

check_PROGRAMS += test/links/test_framing
test_links_test_framing_SOURCES = test/links/test_framing.c test/rwk_test.h
test_links_test_framing_LDADD = $(TEST_LDADD)
TESTS += test/links/test_framing

# Channel services over the simulated network: its own, and packets.
links_ends = test/links/ends.c test/links/ends.h test/pattern.h test/packet/sim_packet.c test/packet/sim_packet.h \
	test/packet/sim_domain.c test/packet/sim_domain.h test/packet/sim_stream.c test/packet/sim_stream.h test/rwk_test.h

check_PROGRAMS += test/links/test_sim_connect
test_links_test_sim_connect_SOURCES = test/links/test_sim_connect.c $(links_ends)
test_links_test_sim_connect_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/links/test_sim_connect

check_PROGRAMS += test/links/test_sim_ends
test_links_test_sim_ends_SOURCES = test/links/test_sim_ends.c $(links_ends)
test_links_test_sim_ends_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/links/test_sim_ends

check_PROGRAMS += test/links/test_sim_messages
test_links_test_sim_messages_SOURCES = test/links/test_sim_messages.c $(links_ends)
test_links_test_sim_messages_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/links/test_sim_messages

check_PROGRAMS += test/links/test_sim_regions
test_links_test_sim_regions_SOURCES = test/links/test_sim_regions.c $(links_ends)
test_links_test_sim_regions_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/links/test_sim_regions

# The link on UDP sockets.
links_udp_pair = test/links/udp_pair.c test/links/udp_pair.h test/rwk_test.h

check_PROGRAMS += test/links/test_udp
test_links_test_udp_SOURCES = test/links/test_udp.c $(links_udp_pair)
test_links_test_udp_LDADD = $(TEST_LDADD)
TESTS += test/links/test_udp

check_PROGRAMS += test/links/test_udp_line
test_links_test_udp_line_SOURCES = test/links/test_udp_line.c $(links_udp_pair)
test_links_test_udp_line_LDADD = $(TEST_LDADD)
TESTS += test/links/test_udp_line

check_PROGRAMS += test/links/test_udp_open
test_links_test_udp_open_SOURCES = test/links/test_udp_open.c $(links_udp_pair)
test_links_test_udp_open_LDADD = $(TEST_LDADD)
TESTS += test/links/test_udp_open

links_udp_cables = test/links/udp_cables.c test/links/udp_cables.h test/links/udp_hosts.c test/links/udp_hosts.h \
	$(links_udp_pair)

check_PROGRAMS += test/links/test_udp_hosts
test_links_test_udp_hosts_SOURCES = test/links/test_udp_hosts.c $(links_udp_cables)
test_links_test_udp_hosts_LDADD = $(TEST_LDADD)
TESTS += test/links/test_udp_hosts

check_PROGRAMS += test/links/test_udp_narrow
test_links_test_udp_narrow_SOURCES = test/links/test_udp_narrow.c $(links_udp_cables)
test_links_test_udp_narrow_LDADD = $(TEST_LDADD)
TESTS += test/links/test_udp_narrow

check_PROGRAMS += test/links/test_udp_source
test_links_test_udp_source_SOURCES = test/links/test_udp_source.c $(links_udp_cables)
test_links_test_udp_source_LDADD = $(TEST_LDADD)
TESTS += test/links/test_udp_source

check_PROGRAMS += test/links/test_udp_pseudo
test_links_test_udp_pseudo_SOURCES = test/links/test_udp_pseudo.c test/links/udp_hosts.c test/links/udp_hosts.h \
	$(links_udp_pair)
test_links_test_udp_pseudo_LDADD = $(TEST_LDADD)
TESTS += test/links/test_udp_pseudo

# The link on TCP.
links_tcp_peers = test/links/tcp_peers.c test/links/tcp_peers.h test/rwk_test.h

check_PROGRAMS += test/links/test_tcp
test_links_test_tcp_SOURCES = test/links/test_tcp.c $(links_tcp_peers)
test_links_test_tcp_LDADD = $(TEST_LDADD)
TESTS += test/links/test_tcp

check_PROGRAMS += test/links/test_tcp_reach
test_links_test_tcp_reach_SOURCES = test/links/test_tcp_reach.c $(links_tcp_peers)
test_links_test_tcp_reach_LDADD = $(TEST_LDADD)
TESTS += test/links/test_tcp_reach

check_PROGRAMS += test/links/test_tcp_sleep
test_links_test_tcp_sleep_SOURCES = test/links/test_tcp_sleep.c $(links_tcp_peers) $(FULL_SETS)
test_links_test_tcp_sleep_LDADD = $(TEST_LDADD)
TESTS += test/links/test_tcp_sleep

check_PROGRAMS += test/links/test_tcp_processes
test_links_test_tcp_processes_SOURCES = test/links/test_tcp_processes.c $(links_tcp_peers)
test_links_test_tcp_processes_LDADD = $(TEST_LDADD)
TESTS += test/links/test_tcp_processes

check_PROGRAMS += test/links/test_tcp_strangers
test_links_test_tcp_strangers_SOURCES = test/links/test_tcp_strangers.c $(links_tcp_peers)
test_links_test_tcp_strangers_LDADD = $(TEST_LDADD)
TESTS += test/links/test_tcp_strangers

check_PROGRAMS += test/links/test_tcp_ways
test_links_test_tcp_ways_SOURCES = test/links/test_tcp_ways.c $(links_tcp_peers)
test_links_test_tcp_ways_LDADD = $(TEST_LDADD)
TESTS += test/links/test_tcp_ways

# The link on streams that it is given.
check_PROGRAMS += test/links/test_stream
test_links_test_stream_SOURCES = test/links/test_stream.c test/rwk_test.h
test_links_test_stream_LDADD = $(TEST_LDADD)
TESTS += test/links/test_stream
