# What test/packet adds to the build.
check_PROGRAMS += test/packet/test_greeting
test_packet_test_greeting_SOURCES = test/packet/test_greeting.c test/rwk_test.h
test_packet_test_greeting_LDADD = $(TEST_LDADD) $(SODIUM_LIBS)
TESTS += test/packet/test_greeting

captured = test/packet/captured.c test/packet/captured.h test/rwk_test.h

check_PROGRAMS += test/packet/test_capture
test_packet_test_capture_SOURCES = test/packet/test_capture.c $(captured)
test_packet_test_capture_LDADD = $(TEST_LDADD) -lpthread
TESTS += test/packet/test_capture

check_PROGRAMS += test/packet/test_capture_file
test_packet_test_capture_file_SOURCES = test/packet/test_capture_file.c $(captured)
test_packet_test_capture_file_LDADD = $(TEST_LDADD) -lpthread
TESTS += test/packet/test_capture_file

check_PROGRAMS += test/packet/test_capture_full
test_packet_test_capture_full_SOURCES = test/packet/test_capture_full.c $(captured)
test_packet_test_capture_full_LDADD = $(TEST_LDADD) -lpthread
TESTS += test/packet/test_capture_full

# The service on the simulated network, and a peer made by hand.
packet_ends = test/packet/hand.c test/packet/hand.h $(links_ends)

# Two of those ends.
packet_pair = test/packet/pair.c test/packet/pair.h $(packet_ends)

check_PROGRAMS += test/packet/test_acks
test_packet_test_acks_SOURCES = test/packet/test_acks.c $(packet_pair)
test_packet_test_acks_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_acks

check_PROGRAMS += test/packet/test_ended
test_packet_test_ended_SOURCES = test/packet/test_ended.c $(links_ends)
test_packet_test_ended_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_ended

check_PROGRAMS += test/packet/test_endings
test_packet_test_endings_SOURCES = test/packet/test_endings.c $(packet_pair)
test_packet_test_endings_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_endings

check_PROGRAMS += test/packet/test_unfinished
test_packet_test_unfinished_SOURCES = test/packet/test_unfinished.c $(packet_pair)
test_packet_test_unfinished_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_unfinished

check_PROGRAMS += test/packet/test_reach
test_packet_test_reach_SOURCES = test/packet/test_reach.c $(packet_pair)
test_packet_test_reach_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_reach

check_PROGRAMS += test/packet/test_broken_frames
test_packet_test_broken_frames_SOURCES = test/packet/test_broken_frames.c $(packet_pair)
test_packet_test_broken_frames_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_broken_frames

check_PROGRAMS += test/packet/test_bursts
test_packet_test_bursts_SOURCES = test/packet/test_bursts.c $(packet_pair)
test_packet_test_bursts_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_bursts

check_PROGRAMS += test/packet/test_frames
test_packet_test_frames_SOURCES = test/packet/test_frames.c $(packet_pair)
test_packet_test_frames_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_frames

check_PROGRAMS += test/packet/test_handshake
test_packet_test_handshake_SOURCES = test/packet/test_handshake.c $(packet_ends)
test_packet_test_handshake_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_handshake

check_PROGRAMS += test/packet/test_handshake_by_hand
test_packet_test_handshake_by_hand_SOURCES = test/packet/test_handshake_by_hand.c $(packet_ends)
test_packet_test_handshake_by_hand_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_handshake_by_hand

check_PROGRAMS += test/packet/test_cease
test_packet_test_cease_SOURCES = test/packet/test_cease.c $(packet_ends)
test_packet_test_cease_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_cease

check_PROGRAMS += test/packet/test_initiator
test_packet_test_initiator_SOURCES = test/packet/test_initiator.c $(links_ends)
test_packet_test_initiator_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_initiator

check_PROGRAMS += test/packet/test_scale
test_packet_test_scale_SOURCES = test/packet/test_scale.c $(links_ends)
test_packet_test_scale_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_scale

check_PROGRAMS += test/packet/test_strangers
test_packet_test_strangers_SOURCES = test/packet/test_strangers.c $(packet_ends)
test_packet_test_strangers_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_strangers

check_PROGRAMS += test/packet/test_summary
test_packet_test_summary_SOURCES = test/packet/test_summary.c $(links_ends)
test_packet_test_summary_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_summary

check_PROGRAMS += test/packet/test_looks
test_packet_test_looks_SOURCES = test/packet/test_looks.c test/rwk_test.h
test_packet_test_looks_LDADD = $(TEST_LDADD)
TESTS += test/packet/test_looks

check_PROGRAMS += test/packet/test_crowd
test_packet_test_crowd_SOURCES = test/packet/test_crowd.c $(links_ends)
test_packet_test_crowd_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_crowd

narrow_ends = test/packet/narrow_ends.c test/packet/narrow_ends.h $(links_ends)

check_PROGRAMS += test/packet/test_narrow
test_packet_test_narrow_SOURCES = test/packet/test_narrow.c $(narrow_ends)
test_packet_test_narrow_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_narrow

check_PROGRAMS += test/packet/test_narrow_nodes
test_packet_test_narrow_nodes_SOURCES = test/packet/test_narrow_nodes.c $(narrow_ends)
test_packet_test_narrow_nodes_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_narrow_nodes

check_PROGRAMS += test/packet/test_narrow_pieces
test_packet_test_narrow_pieces_SOURCES = \
	test/packet/test_narrow_pieces.c test/packet/hand.c test/packet/hand.h $(narrow_ends)
test_packet_test_narrow_pieces_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_narrow_pieces

# The service on real sockets.
check_PROGRAMS += test/packet/test_changing
test_packet_test_changing_SOURCES = test/packet/test_changing.c $(links_ends)
test_packet_test_changing_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_changing

check_PROGRAMS += test/packet/test_naps
test_packet_test_naps_SOURCES = test/packet/test_naps.c test/packet/network_ends.h $(links_ends)
test_packet_test_naps_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_naps

check_PROGRAMS += test/packet/test_network
test_packet_test_network_SOURCES = test/packet/test_network.c test/packet/network_ends.h $(links_ends)
test_packet_test_network_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_network

check_PROGRAMS += test/packet/test_network_addresses
test_packet_test_network_addresses_SOURCES = \
	test/packet/test_network_addresses.c test/packet/network_ends.h $(links_ends)
test_packet_test_network_addresses_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_network_addresses

check_PROGRAMS += test/packet/test_network_hosts
test_packet_test_network_hosts_SOURCES = test/packet/test_network_hosts.c test/packet/network_ends.h \
	test/links/udp_hosts.c test/links/udp_hosts.h $(links_ends)
test_packet_test_network_hosts_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_network_hosts

check_PROGRAMS += test/packet/test_network_processes
test_packet_test_network_processes_SOURCES = test/packet/test_network_processes.c $(links_ends)
test_packet_test_network_processes_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_network_processes

check_PROGRAMS += test/packet/test_evidence
test_packet_test_evidence_SOURCES = test/packet/test_evidence.c test/rwk_test.h
test_packet_test_evidence_LDADD = $(TEST_LDADD)
TESTS += test/packet/test_evidence

check_PROGRAMS += test/packet/test_incast
test_packet_test_incast_SOURCES = test/packet/test_incast.c $(links_ends)
test_packet_test_incast_LDADD = librwk_sim.la $(TEST_LDADD)
TESTS += test/packet/test_incast
