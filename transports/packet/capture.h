/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures: packets of all links, written to a file in the format pcapng, which Wireshark and tshark read. Packets are
 * shown as if they had travelled over UDP: IP and UDP headers are put in front, with the true addresses and source
 * port, but always to port 4791, the one that RoCEv2 is recognised by. Where the true port is another one, a comment on
 * the packet says which, and the ICRC (which covers it) is not that of the packet shown. A packet is on the interface
 * that its link is called.
 *
 * One file a process: ports of a process that name the same file share it. Writes are buffered: a process that is
 * killed takes up to a second of its capture with it. A file that cannot be written, or not any further, is warned of
 * once; what is in it by then can be read, and nothing else changes. A child of fork writes nothing. Any thread may
 * call at any time.
 */
#ifndef RWK_PACKET_CAPTURE_H
#define RWK_PACKET_CAPTURE_H

#include "link.h"

struct rwk_capture;

enum rwk_capture_link {
	RWK_CAPTURE_UDP,
	RWK_CAPTURE_TCP,
	RWK_CAPTURE_SHM,
	RWK_CAPTURE_SIM,
	RWK_CAPTURE_LINKS,
};

/**
 * Opens the file `pattern`, in which %p is the process's number, %r its rank ("none" for RWK_ADDR_NO_RANK and above)
 * and
 * %% a percent sign. A file that is there is overwritten, unless another process is writing it just now. NULL: no
 * pattern (NULL or empty), or it could not be opened, which has been warned of then.
 */
struct rwk_capture *rwk_capture_open(const char *pattern, uint32_t rank);

/** Where a packet comes from or goes to. */
struct rwk_capture_end {
	uint8_t ip[16]; /* IPv6, or IPv4 mapped into it */
	uint16_t port;
};

/**
 * Writes a packet: `count` pieces of `iov`, from BTH to ICRC. `time` in nanoseconds since 1970; 0: now. What makes
 * more than 65535 bytes with its headers is cut. `c` may be NULL. May block on the disk.
 */
void rwk_capture_packet(struct rwk_capture *c, enum rwk_capture_link link, bool outgoing,
	const struct rwk_capture_end *source, const struct rwk_capture_end *destination, const struct iovec *iov,
	int count, uint64_t time);

/** Writes what is buffered, and closes the file if nobody else of the process has it open. NULL is allowed. */
void rwk_capture_close(struct rwk_capture *c);

#endif
