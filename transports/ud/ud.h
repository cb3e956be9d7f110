/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable datagrams (UD): a queue pair on a UDP socket of its own. Single packets from anyone to anyone; what is
 * lost is lost, and nobody is told. On the wire they are RoCEv2's (wire/FORMAT.md), so that other makers' queue pairs
 * are peers like our own.
 *
 *   Q_Key     a datagram that does not name the receiver's is dropped: what those have in common who may send
 *   QPN       number of the queue pair; ours follows from its port unless a client sets it, so that an IP and a port
 *             are enough to be found
 *   receive   a place for one datagram; the oldest takes the next. A datagram for which there is none is dropped
 *   MTU       bytes of payload in a datagram, at most. It is agreed on by nobody: both ends need the same
 *
 * One thread at a time. No call blocks.
 */
#ifndef RWK_UD_H
#define RWK_UD_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RWK_UD_QKEY      0x11111111u /* unless a client sets another: that of rdma-core's and perftest's programs */
#define RWK_UD_IOV       8u          /* pieces of a datagram */
#define RWK_UD_MTU       1024u       /* bytes, unless the parameter pmtu says another: what fits Ethernet's 1500 */
#define RWK_UD_MTU_LEAST 256u        /* that the parameter can say */

struct rwk_ud;
struct rwk_link;

/** Where a queue pair is. */
struct rwk_ud_address {
	uint8_t ip[16]; /* IPv6, or IPv4 mapped into it */
	uint16_t port;  /* UDP */
	uint32_t qpn;   /* 24 bits */
	uint32_t qkey;
};

/** The QPN of a queue pair of ours of which only the port is known. */
static inline uint32_t rwk_ud_qpn(uint16_t port)
{
	return 0x10000u | port; /* never one of the small numbers, which have a meaning */
}

/** A place for a datagram. The client's memory; the queue pair's from rwk_ud_receive until `received` or cancel. */
struct rwk_ud_receive {
	struct rwk_list link;
	uint32_t count; /* pieces, at most RWK_UD_IOV */
	struct iovec iov[RWK_UD_IOV];
};

/** What has come. */
struct rwk_ud_arrival {
	struct rwk_ud_address from; /* the port and QPN that it was sent from; the Q_Key is not known */
	size_t length;              /* bytes of the datagram; what is beyond its place is lost */
	bool has_imm;
	uint32_t imm;
};

struct rwk_ud_attr {
	struct rwk_ud_address own; /* zero: any IP, a port of the parameter's range, QPN of the port, RWK_UD_QKEY */
	uint32_t mtu;              /* 0: rwk_ud_mtu() */
	/** From rwk_ud_progress: a datagram has taken `r`, which is the client's again. */
	void (*received)(void *user, struct rwk_ud_receive *r, const struct rwk_ud_arrival *a);
	void *user;
};

/** What has happened so far. All but the first two count datagrams dropped. */
struct rwk_ud_counters {
	uint64_t sent, received;
	uint64_t no_receive; /* none was posted */
	uint64_t malformed;  /* no packet, or one of another service */
	uint64_t unknown_qpn, wrong_pkey, wrong_qkey;
	uint64_t bad_icrc;
	uint64_t too_long; /* for our MTU */
};

/** Bytes of payload of a datagram at most: what the parameter pmtu says, or RWK_UD_MTU. */
uint32_t rwk_ud_mtu(void);

/**
 * The IP of this host's that others are told where none is named, as rwk_udp_own_ip with
 * the parameter `interfaces`.
 */
int rwk_ud_own_ip(uint8_t ip[16], char *why, size_t size);

/**
 * Opens a queue pair on a new socket: 0 and *ud set. As rwk_udp_open; -ENETDOWN: no interface has an address that the
 * parameters allow, or UDP is not to be used.
 */
int rwk_ud_open(const struct rwk_ud_attr *attr, struct rwk_ud **ud);

/** The same on a link of udp's addresses, with all of `own` known; the link is closed with the queue pair. -ENOMEM. */
int rwk_ud_open_on(struct rwk_link *link, const struct rwk_ud_attr *attr, struct rwk_ud **ud);

/** What is posted is the client's again, without a word. */
void rwk_ud_close(struct rwk_ud *ud);

/** By which others know it; the IP is the one that the parameters prefer if it is bound to any. */
const struct rwk_ud_address *rwk_ud_own(const struct rwk_ud *ud);

void rwk_ud_get_counters(const struct rwk_ud *ud, struct rwk_ud_counters *c);

/**
 * Sends one datagram, with immediate data unless `imm` is NULL. What it says and points to is the caller's again on
 * return. 0: the kernel has it, or will have; -EMSGSIZE: longer than the MTU, or than the way carries; -EINVAL: too
 * many pieces; -EAGAIN: no room now, progress makes some.
 */
int rwk_ud_send(struct rwk_ud *ud, const struct rwk_ud_address *to, const struct iovec *iov, unsigned count,
	const uint32_t *imm);

/** Posts a receive. */
void rwk_ud_receive(struct rwk_ud *ud, struct rwk_ud_receive *r);
/** Takes back one that is posted. */
void rwk_ud_cancel(struct rwk_ud *ud, struct rwk_ud_receive *r);

/** Takes in what has arrived: how many packets, of whatever kind. */
int rwk_ud_progress(struct rwk_ud *ud);

/** Before a sleep on the descriptor: 0; -EAGAIN: there is something to do. */
int rwk_ud_arm(struct rwk_ud *ud);
int rwk_ud_fd(const struct rwk_ud *ud);

#endif
