/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two adapters on loopback, each with a pd, a queue for what is sent and one for what is received, two regions and a qp
 * that is connected with the other's: programs on ropewalk.h, and real sockets. An SRC qp has an SRC domain; its
 * receivers are jobs, as many processes of a node would be:
 *
 *     near   qp ------ SRC ------ qp   far
 *                                  |-- domain -- srq of job 0: pd, cq, memory
 *                                  |             srq of job 1: pd, cq, memory
 *                                  (another domain: the qp does not reach its srqs)
 */
#ifndef RWK_TEST_CHANNEL_ADAPTER_ENDS_H
#define RWK_TEST_CHANNEL_ADAPTER_ENDS_H

#include "rwk_test.h"

#include "include/ropewalk.h"

#define PMTU   1024u
#define REGION 100000u /* bytes of each */
#define DEPTH  64u
#define INLINE 100u /* bytes */
#define ACCESS (RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC)

struct end {
	struct rwk_adapter *adapter;
	struct rwk_pd *pd;
	struct rwk_cq *send_cq, *receive_cq;
	struct rwk_src_domain *domain; /* SRC: the qp's */
	struct rwk_qp *qp;
	uint8_t ip[16];
	uint8_t *out, *in;             /* REGION bytes each, 8-byte aligned */
	struct rwk_mr *out_mr, *in_mr; /* out: for our own use; in: for the peer's too */
};

extern struct end near, far;

/** Qps that are connected from now on agree on the un-ordered types. */
extern bool ends_unordered;

/** And take packets from the peer's port alone. */
extern bool ends_one_port;

/** What far's qp lets near do; ACCESS. */
extern unsigned ends_far_access;

/** Lets time pass on a simulated network, as if both ends slept; NULL: it passes by itself. */
extern void (*ends_step)(void);

/** What connects both in place of ends_connect, and ends that for one of them; NULL: by number and address. */
extern void (*ends_join)(void);
extern void (*ends_leave)(const struct end *e);

#define JOB_MEMORY 20000u /* bytes */

struct job {
	struct rwk_pd *pd;
	struct rwk_cq *cq;
	struct rwk_srq *srq;
	uint8_t *in; /* JOB_MEMORY bytes, 8-byte aligned: where receives are, and for the peer */
	struct rwk_mr *mr;
	uint32_t number; /* of srq */
};

/** 127.0.0.`host`. */
void ends_ip(uint8_t ip[16], uint8_t host);
/** An adapter there and nothing else. */
void ends_open_adapter(struct end *e, uint8_t host);
/** With a qp in RESET. */
void ends_open_one(struct end *e, uint8_t host, enum rwk_qp_type type);
void ends_close_one(struct end *e);
/** Both, connected, in RTS. First PSNs are 0xfffff0 from near and 5 from far. */
void ends_open(enum rwk_qp_type type);
/** e's qp to RTS, towards that one. */
void ends_connect(struct end *e, const struct end *peer, unsigned access);
void ends_close(void);

/** Polls both ends until e's cq has a completion: that one. Fails after 20 s. */
struct rwk_wc ends_await(struct end *e, struct rwk_cq *cq);
/** Polls both ends for a while, and asserts that there is no completion anywhere. */
void ends_quiet(void);

/** Messages that e's events say were lost, since this was asked before; takes all events. */
uint64_t ends_lost(const struct end *e);

/** Posts: `len` bytes of e->out from its beginning; or, for Reads and atomics, to there. */
int ends_request(struct end *e, enum rwk_request_type type, size_t len, uint64_t remote, uint32_t key);
/** `len` bytes of e->in from its beginning. */
void ends_receive(struct end *e, uint64_t id, size_t len);

/** A job at e, its srq in that domain with that number. */
void ends_open_job(struct job *j, struct end *e, struct rwk_src_domain *domain, uint32_t number);
void ends_close_job(struct job *j);
/** `len` bytes of the job's memory from its beginning. */
void ends_receive_job(struct job *j, uint64_t id, size_t len);
/** `len` bytes of e->out, or to there, for that srq at the peer. */
int ends_request_src(
	struct end *e, enum rwk_request_type type, size_t len, uint32_t srqn, uint64_t remote, uint32_t key);

#endif
