/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any packets, in any order, to UC's responder, and a client that takes or refuses as it likes. What must hold: it
 * answers nothing; no number is taken twice; pieces of a Send come one behind the other, by their numbers too; a Write
 * is placed from where its first packet says, no byte twice, none beyond what reach has granted, and is told of only
 * when all of it is there; on a stream it fails once, and is silent from then on.
 *
 *   byte 0      1: a stream; 2: no Writes allowed
 *   then        packets of 5 bytes: opcode, how far the number is ahead (signed), length, RETH's length, what the
 *               client says
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "uc/uc.h"
#include "wire/psn.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define PMTU    256u
#define ADDRESS 0x4000u
#define RECORD  5u

static struct {
	bool stream, sending, writing, failed, called;
	uint32_t last;    /* number of the piece before */
	uint32_t highest; /* number that was a packet of UC's */
	uint64_t granted; /* by reach */
	uint64_t placed;
	uint8_t says; /* the client, to this packet */
} s;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	(void)user;
	(void)w;
	(void)payload;
	(void)count;
	abort();
}

static void on_failed(void *user, int err)
{
	(void)user;
	must(s.stream && !s.failed && err == -EPROTO);
	s.failed = true;
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	static const int answers[] = {0, 0, 0, -EAGAIN, -EMSGSIZE, -EINVAL, -EIO, 0};
	int answer = answers[s.says & 7];

	(void)user;
	(void)bytes;
	s.called = true;
	must(!s.failed && len <= PMTU);
	if (where & RWK_PIECE_FIRST)
		s.writing = false;
	else
		must(s.sending && w->psn == rwk_psn_add(s.last, 1));
	must(where & RWK_PIECE_LAST || len == PMTU);
	if (answer == -EAGAIN && !(where & RWK_PIECE_FIRST))
		answer = 0;
	s.last = w->psn;
	s.sending = !answer && !(where & RWK_PIECE_LAST);
	return answer;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	(void)user;
	(void)key;
	s.called = true;
	must(!s.failed && access == RWK_REACH_WRITE && address == ADDRESS && len && len == w->reth.length);
	s.sending = false;
	s.writing = !(s.says & 8);
	s.granted = s.writing ? len : 0;
	s.placed = 0;
	return s.writing ? 0 : -EACCES;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	(void)user;
	(void)key;
	(void)bytes;
	s.called = true;
	must(!s.failed && s.writing && len && len <= PMTU);
	must(!s.placed || w->psn == rwk_psn_add(s.last, 1));
	must(address == ADDRESS + s.placed && len <= s.granted - s.placed);
	s.last = w->psn;
	s.placed += len;
	s.writing = !(s.says & 16);
	return s.writing ? 0 : -EACCES;
}

static int on_written(void *user, const struct rwk_wire *w)
{
	(void)user;
	s.called = true;
	must(!s.failed);
	if (RWK_WIRE_OPERATION(w->opcode) != RWK_WIRE_WRITE_ONLY_IMM || w->reth.length)
		must(s.writing && s.placed == s.granted);
	return s.says & 32 ? -EAGAIN : 0;
}

static const struct rwk_machine_host host = {
	.emit = on_emit,
	.failed = on_failed,
	.receive = on_receive,
	.reach = on_reach,
	.write = on_write,
	.written = on_written,
};

static size_t length_of(uint8_t code)
{
	return code < 16 ? PMTU - 8 + code : code - 16;
}

static void take(struct rwk_uc *qp, const uint8_t *r, uint32_t *psn)
{
	static const uint8_t payload[2 * PMTU];
	struct rwk_wire w = {.opcode = r[0], .imm = r[4]};

	if (!rwk_wire_header_size(r[0]))
		w.opcode = RWK_WIRE_UC | (r[0] % 12);
	*psn = rwk_psn_add(*psn, (uint32_t)(int8_t)r[1]);
	w.psn = *psn;
	w.reth.address = ADDRESS;
	w.reth.length = r[3] < 240 ? r[3] / 8 * PMTU + r[3] % 8 : 0x80000000u + r[3] - 248;
	s.says = r[4];
	s.called = false;
	rwk_uc_packet(qp, &w, payload, length_of(r[2]));
	must(rwk_uc_pump(qp) == 0);
	must(!s.called || rwk_psn_diff(w.psn, s.highest) > 0); /* nothing is done twice */
	if (RWK_WIRE_CLASS(w.opcode) == RWK_WIRE_UC && rwk_psn_diff(w.psn, s.highest) > 0)
		s.highest = w.psn;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static uint64_t memory[64], responder[64];
	struct rwk_uc_attr attr = {.receive_psn = 0xfffffe, .pmtu = PMTU};
	uint32_t psn = 0xfffffd;
	struct rwk_uc *qp;

	if (!len)
		return 0;
	must(rwk_uc_size() <= sizeof(memory) && rwk_uc_responder_size() <= sizeof(responder));
	memset(&s, 0, sizeof(s));
	s.highest = psn;
	memset(responder, 0, sizeof(responder));
	attr.stream = s.stream = bytes[0] & 1;
	attr.reach = bytes[0] & 2 ? 0 : RWK_REACH_WRITE;
	qp = rwk_uc_open(memory, responder, &host, NULL);
	must(rwk_uc_modify(qp, RWK_QP_INIT, NULL) == 0 && rwk_uc_modify(qp, RWK_QP_RTR, &attr) == 0);
	for (size_t at = 1; at + RECORD <= len; at += RECORD)
		take(qp, bytes + at, &psn);
	must(s.failed == (rwk_uc_state(qp) == RWK_QP_ERR));
	rwk_uc_close(qp);
	return 0;
}
