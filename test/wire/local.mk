# What test/wire adds to the build.
check_PROGRAMS += test/wire/test_icrc
test_wire_test_icrc_SOURCES = test/wire/test_icrc.c test/rwk_test.h
test_wire_test_icrc_LDADD = $(TEST_LDADD)
TESTS += test/wire/test_icrc

wire_pcap = test/wire/pcap.c test/wire/pcap.h test/rwk_test.h
# Whole: captures are added by adding files.
EXTRA_DIST += test/wire/pcap

check_PROGRAMS += test/wire/test_golden
test_wire_test_golden_SOURCES = test/wire/test_golden.c $(wire_pcap)
test_wire_test_golden_LDADD = $(TEST_LDADD)
TESTS += test/wire/test_golden

check_PROGRAMS += test/wire/test_segment
test_wire_test_segment_SOURCES = test/wire/test_segment.c test/rwk_test.h
test_wire_test_segment_LDADD = $(TEST_LDADD)
TESTS += test/wire/test_segment

check_PROGRAMS += test/wire/test_wire
test_wire_test_wire_SOURCES = test/wire/test_wire.c test/rwk_test.h
test_wire_test_wire_LDADD = $(TEST_LDADD)
TESTS += test/wire/test_wire

check_PROGRAMS += test/wire/test_tshark
test_wire_test_tshark_SOURCES = test/wire/test_tshark.c test/rwk_test.h
test_wire_test_tshark_LDADD = $(TEST_LDADD)
TESTS += test/wire/test_tshark
