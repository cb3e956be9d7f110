/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include "uc/ends.h"

#include "base/compiler.h"
#include "wire/icrc.h"

#include "repeated.h"

#define MAPPED (0x80000000u + 2 * (size_t)REPEATED_PERIOD)

struct rwk_sim *net;
struct end sender, receiver;
struct message *messages;
unsigned message_count, logged;
uint32_t log_of[MESSAGES];

static uint8_t *pattern; /* MAPPED bytes of address space */

/* Byte 4 of message n and what follows. */
static const uint8_t *source(uint32_t n)
{
	return pattern + (size_t)n * 99991 % REPEATED_PERIOD;
}

static void check_bytes(const struct message *m, uint64_t at, const uint8_t *bytes, size_t len)
{
	uint32_t n = (uint32_t)(m - messages);

	assert_true(at + len <= m->wr.length);
	if (at < 4 && m->wr.length >= 4) {
		size_t here = len < 4 - at ? len : 4 - at;

		assert_memory_equal(bytes, m->head + at, here);
		at += here;
		bytes += here;
		len -= here;
	}
	if (memcmp(bytes, source(n) + at - (m->wr.length >= 4 ? 4 : 0), len))
		fail_msg("message %u: wrong bytes from %llu on", n, (unsigned long long)at);
}

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct end *e = user;
	struct iovec iov[RWK_MACHINE_IOV + 2];
	uint8_t header[RWK_WIRE_HEADER_MAX], tail[7] = {0};
	size_t size, len = 0;
	uint32_t icrc;
	unsigned pad;
	int rc;

	assert_in_range(count, 0, RWK_MACHINE_IOV);
	if (!e->room)
		return -EAGAIN;
	for (int i = 0; i < count; i++) {
		iov[1 + i] = payload[i];
		len += payload[i].iov_len;
	}
	size = rwk_wire_pack(w, len, header);
	assert_int_not_equal(size, 0);
	pad = -len & 3;
	icrc = rwk_icrc_packet(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, NULL, 0), header, size, payload, count, pad);
	for (unsigned i = 0; i < 4; i++)
		tail[pad + i] = icrc >> 8 * i;
	iov[0] = (struct iovec){header, size};
	iov[1 + count] = (struct iovec){tail, pad + 4};
	rc = e->link->ops->send(e->link, &e->peer, iov, count + 2);
	if (rc)
		return rc;
	e->emitted++;
	if (e->room > 0)
		e->room--;
	return 0;
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct end *e = user;
	const uint8_t *payload, *end = (const uint8_t *)bytes + len - 4;
	struct rwk_wire w;
	uint32_t icrc;
	size_t n;

	assert_memory_equal(from, &e->peer, sizeof(*from));
	assert_true(len >= 16);
	icrc = end[0] | end[1] << 8 | end[2] << 16 | (uint32_t)end[3] << 24;
	if (icrc != rwk_icrc_bytes(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, NULL, 0), bytes, len - 4)) {
		e->bad_icrc++;
		return;
	}
	assert_int_equal(rwk_wire_unpack(&w, bytes, len, &payload, &n), 0);
	assert_int_equal(w.qpn, e == &sender ? SENDER_QPN : RECEIVER_QPN);
	if (e->seen)
		e->seen(&w, n);
	rwk_uc_packet(e->qp, &w, payload, n);
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct message *m = rwk_container_of(wr, struct message, wr);

	assert_ptr_equal(user, &sender);
	m->done++;
	m->status = status;
	if (sender.told)
		sender.told(m);
}

static void on_failed(void *user, int err)
{
	struct end *e = user;

	e->failed++;
	e->error = err;
}

static void log_end(struct message *m, const struct rwk_wire *w)
{
	uint32_t n = (uint32_t)(m - messages);
	bool imm = RWK_WIRE_OPERATION(w->opcode) & 1;

	assert_int_equal(imm, !!(m->wr.flags & RWK_WR_IMM));
	if (imm)
		assert_int_equal(w->imm, n);
	m->ended++;
	m->solicited = w->solicited;
	assert_true(logged < MESSAGES);
	log_of[logged++] = n;
}

/* Whose first piece that is. */
static struct message *message_of(const struct rwk_wire *w, const uint8_t *bytes, size_t len)
{
	uint32_t n = w->imm;

	if (len >= 4)
		memcpy(&n, bytes, 4);
	assert_true(n < message_count);
	return &messages[n];
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct end *e = user;

	assert_ptr_equal(e, &receiver);
	if (where & RWK_PIECE_FIRST) {
		if (!e->receives)
			return -EAGAIN;
		if (!e->blind)
			e->in = message_of(w, bytes, len);
	}
	if (e->blind) {
		e->blind_ends += !!(where & RWK_PIECE_LAST);
		return 0;
	}
	if (where & RWK_PIECE_FIRST) {
		e->in->begun++;
		assert_int_equal(e->in->wr.type, RWK_WR_SEND);
		e->at = 0;
	}
	assert_non_null(e->in);
	if (e->at + len > e->receive_length) {
		e->in = NULL;
		return -EMSGSIZE;
	}
	check_bytes(e->in, e->at, bytes, len);
	e->at += len;
	if (!(where & RWK_PIECE_LAST))
		return 0;
	assert_int_equal(e->at, e->in->wr.length);
	if (e->receives > 0)
		e->receives--;
	log_end(e->in, w);
	e->in = NULL;
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	struct message *m = &messages[(address - BASE) / STRIDE];

	(void)w;
	((struct end *)user)->reaches++;
	assert_int_equal(access, RWK_REACH_WRITE);
	if (((struct end *)user)->blind)
		return key == KEY ? 0 : -EACCES;
	if (key != KEY || address < BASE || address - BASE >= message_count * STRIDE || (address - BASE) % STRIDE)
		return -EACCES;
	assert_int_equal(len, m->wr.length); /* all of it, before the first piece */
	return 0;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct end *e = user;
	struct message *m = &messages[(address - BASE) / STRIDE];

	(void)w;
	assert_int_equal(key, KEY);
	if (e->refuse)
		return e->refuse;
	e->writes++;
	if (e->blind)
		return 0;
	assert_int_equal(m->wr.type, RWK_WR_WRITE);
	assert_int_equal((address - BASE) % STRIDE, m->placed); /* in order, and no byte twice */
	check_bytes(m, m->placed, bytes, len);
	m->placed += len;
	return 0;
}

static int on_written(void *user, const struct rwk_wire *w)
{
	struct end *e = user;

	if (!e->receives)
		return -EAGAIN;
	if (e->receives > 0)
		e->receives--;
	if (e->blind)
		e->blind_ends++;
	else
		log_end(&messages[w->imm], w);
	return 0;
}

static const struct rwk_machine_host host = {
	.emit = on_emit,
	.done = on_done,
	.failed = on_failed,
	.receive = on_receive,
	.reach = on_reach,
	.write = on_write,
	.written = on_written,
};

static void on_lost(void *user)
{
	((struct end *)user)->lost++;
}

struct rwk_uc_attr ends_attr(const struct end *e, uint16_t pmtu)
{
	return (struct rwk_uc_attr){
		.peer_qpn = e == &sender ? RECEIVER_QPN : SENDER_QPN,
		.send_psn = e == &sender ? FIRST_PSN : 77,
		.receive_psn = e == &sender ? 77 : FIRST_PSN,
		.pmtu = pmtu,
		.reach = RWK_REACH_WRITE,
	};
}

static void open_end(struct end *e, uint16_t pmtu)
{
	struct rwk_uc_attr attr = ends_attr(e, pmtu);

	*e = (struct end){.room = -1, .receives = -1, .receive_length = SIZE_MAX};
	assert_int_equal(rwk_sim_node(net, &e->link), 0);
	e->link->packet = on_packet;
	e->link->user = e;
	e->memory = aligned_alloc(RWK_CACHE_LINE, (rwk_uc_size() + 63) & ~(size_t)63);
	e->responder = calloc(1, rwk_uc_responder_size());
	assert_true(e->memory && e->responder);
	e->qp = rwk_uc_open(e->memory, e->responder, &host, e);
	rwk_uc_on_loss(e->qp, on_lost);
	assert_int_equal(rwk_uc_state(e->qp), RWK_QP_RESET);
	assert_int_equal(rwk_uc_modify(e->qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_uc_modify(e->qp, RWK_QP_RTR, &attr), 0);
	assert_int_equal(rwk_uc_modify(e->qp, RWK_QP_RTS, NULL), 0);
}

void ends_open(uint64_t seed, uint16_t pmtu, const struct rwk_sim_path *path)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	if (!pattern) {
		pattern = repeated_map(MAPPED);
		repeated_fill(pattern);
	}
	attr.seed = seed;
	attr.mtu = 5000;
	attr.room = 1000;
	if (path)
		attr.path = *path;
	assert_int_equal(rwk_sim_open(&attr, &net), 0);
	messages = calloc(MESSAGES, sizeof(*messages));
	assert_non_null(messages);
	message_count = logged = 0;
	open_end(&sender, pmtu);
	open_end(&receiver, pmtu);
	sender.peer = rwk_sim_address(rwk_sim_number(receiver.link));
	receiver.peer = rwk_sim_address(rwk_sim_number(sender.link));
}

static void close_end(struct end *e)
{
	rwk_uc_close(e->qp);
	e->link->ops->close(e->link);
	free(e->memory);
	free(e->responder);
}

void ends_close(void)
{
	/* S0-1, in every test: whatever came, nothing went back. */
	rwk_uc_pump(receiver.qp);
	assert_int_equal(receiver.emitted, 0);
	assert_int_equal(rwk_uc_counters(receiver.qp)->packets_out, 0);
	assert_int_equal(rwk_sim_sent(net, rwk_sim_number(receiver.link), rwk_sim_number(sender.link)), 0);
	close_end(&sender);
	close_end(&receiver);
	rwk_sim_close(net);
	free(messages);
}

struct message *ends_make(unsigned type, unsigned flags, uint64_t len)
{
	uint32_t n = message_count++;
	struct message *m = &messages[n];
	size_t head = len >= 4 ? 4 : 0, middle = (len - head) / 3;

	assert_true(n < MESSAGES);
	if (!head)
		flags |= IMM;
	memcpy(m->head, &n, 4);
	m->iov[0] = (struct iovec){m->head, head};
	m->iov[1] = (struct iovec){(void *)source(n), middle};
	m->iov[2] = (struct iovec){(void *)(source(n) + middle), len - head - middle};
	m->wr = (struct rwk_wr){
		.type = (uint8_t)type,
		.flags = (uint8_t)flags,
		.imm = n,
		.iov = m->iov,
		.iov_count = 3,
		.length = len,
		.remote = BASE + n * STRIDE,
		.key = KEY,
	};
	return m;
}

struct message *ends_post(unsigned type, unsigned flags, uint64_t len)
{
	struct message *m = ends_make(type, flags, len);

	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), 0);
	return m;
}

void ends_settle(void)
{
	do {
		int emitted;

		do {
			emitted = rwk_uc_pump(sender.qp);
			sender.link->ops->flush(sender.link);
		} while (emitted);
		rwk_uc_pump(receiver.qp);
		receiver.link->ops->progress(receiver.link, INT32_MAX);
		sender.link->ops->progress(sender.link, INT32_MAX);
	} while (rwk_sim_step(net));
}

void ends_rule(uint64_t nth, enum rwk_sim_fate fate)
{
	rwk_sim_rule(net, rwk_sim_number(sender.link), rwk_sim_number(receiver.link), nth, fate);
}

struct rwk_wire ends_wire(unsigned operation, uint32_t psn)
{
	return (struct rwk_wire){.opcode = RWK_WIRE_UC | operation, .qpn = RECEIVER_QPN, .psn = psn};
}

void ends_inject(struct end *e, const struct rwk_wire *w, const void *payload, size_t len)
{
	if (e->seen)
		e->seen(w, len);
	rwk_uc_packet(e->qp, w, payload, len);
	rwk_uc_pump(e->qp);
}
