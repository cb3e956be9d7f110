/* SPDX-License-Identifier: BSD-3-Clause */
/* Captured RoCEv2 packets, one by one, with what their ICRC begins with. */
#ifndef TEST_WIRE_PCAP_H
#define TEST_WIRE_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pcap_packet {
	const uint8_t *bytes; /* from BTH to ICRC; they live until the file is closed */
	size_t len;
	uint8_t pseudo[56]; /* the masked headers below BTH */
	size_t pseudo_len;
	bool is_v6;
	uint16_t id; /* the IPv4 identification */
};

struct pcap_file {
	uint8_t *bytes;
	size_t len, at;
};

/** Of the folder of captures in the tree (environment: srcdir), or any path. Fails the test if it is not as it should.
 */
void pcap_open(struct pcap_file *f, const char *name);
/** The next packet; false at the end. A packet that is no RoCEv2, or is cut off, fails the test. */
bool pcap_next(struct pcap_file *f, struct pcap_packet *p);
void pcap_close(struct pcap_file *f);

/** The names of the captures in the tree, the last one is NULL. */
extern const char *const pcap_names[];

#endif
