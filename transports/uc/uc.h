/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unreliable connection: packets carry numbers, nothing is acknowledged, nothing sent again; a message of which a
 * packet is lost is dropped whole. On a stream (tcp) nothing is lost and the machine only cuts and joins.
 *
 * The same shape as rc.h: post, packet, pump. Send and Write only (S0-7, S0-13).
 */
#ifndef RWK_UC_UC_H
#define RWK_UC_UC_H

#include "machine.h"

struct rwk_uc;

struct rwk_uc_attr {
	uint32_t peer_qpn;
	uint32_t send_psn, receive_psn;
	uint16_t pmtu;
	unsigned reach; /* of RWK_REACH_WRITE */
};

size_t rwk_uc_size(void);
size_t rwk_uc_responder_size(void);

/** As rwk_rc_open. host->failed is called when the responder finds a breach on a stream (rwk_uc_attr), else never. */
struct rwk_uc *rwk_uc_open(void *memory, void *responder, const struct rwk_machine_host *host, void *user);
void rwk_uc_close(struct rwk_uc *qp);
int rwk_uc_modify(struct rwk_uc *qp, enum rwk_qp_state state, const struct rwk_uc_attr *attr);
enum rwk_qp_state rwk_uc_state(const struct rwk_uc *qp);

/** -EOPNOTSUPP: a Read or an atomic (S0-7); else as rwk_rc_post. Done as soon as the last packet is sent (S0-6). */
int rwk_uc_post(struct rwk_uc *qp, struct rwk_wr *wr);
int rwk_uc_withdraw(struct rwk_uc *qp, struct rwk_wr *wr);
void rwk_uc_packet(struct rwk_uc *qp, const struct rwk_wire *w, const void *payload, size_t len);
int rwk_uc_pump(struct rwk_uc *qp);
bool rwk_uc_idle(const struct rwk_uc *qp);

/** Called for each message that is dropped for a lost packet, if set (S0-11); counted in `gaps` in any case. */
void rwk_uc_on_loss(struct rwk_uc *qp, void (*lost)(void *user));

const struct rwk_qp_counters *rwk_uc_counters(const struct rwk_uc *qp);

#endif
