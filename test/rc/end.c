/* SPDX-License-Identifier: BSD-3-Clause */
#include "rwk_test.h"

#include "rc/end.h"

#include "base/iov.h"

#include <limits.h>

#define PARTIAL_MAX (1u << 22)

struct rwk_rc_attr end_strict(void)
{
	return (struct rwk_rc_attr){
		.peer_qpn = 0x22,
		.send_psn = 1000,
		.receive_psn = 5000,
		.pmtu = 256,
		.window = 64,
		.reads = 4,
		.peer_reads = 4,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 1,
		.service = RWK_WIRE_RC,
		.reach = RWK_REACH_READ | RWK_REACH_WRITE | RWK_REACH_ATOMIC,
		.timeout = 1000000,
	};
}

struct rwk_rc_attr end_own(void)
{
	struct rwk_rc_attr a = end_strict();

	a.window = RWK_RC_WINDOW_MAX;
	a.own = RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS;
	a.ack_delay = 20000;
	a.ack_every = 16;
	a.timeout = 20000000;
	a.read_chunk = 32 * 256;
	return a;
}

static void send_link(struct end *e, const struct rwk_wire *w, const struct iovec *payload, int count, size_t len)
{
	uint8_t header[RWK_WIRE_HEADER_MAX], pseudo[RWK_LINK_PSEUDO_MAX], tail[8] = {0};
	size_t header_len = rwk_wire_pack(w, len, header), pad = -len & 3, all, n;
	struct iovec iov[RWK_MACHINE_IOV + 2];
	uint32_t crc;

	assert_true(header_len > 0);
	all = header_len + len + pad + RWK_WIRE_ICRC;
	n = rwk_link_pseudo(e->link, &e->peer, true, all, 0, pseudo);
	crc = rwk_icrc_packet(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, pseudo, n), header, header_len, payload, count, (unsigned)pad);
	for (int i = 0; i < 4; i++)
		tail[pad + i] = (uint8_t)(crc >> 8 * i);
	iov[0] = (struct iovec){header, header_len};
	memcpy(&iov[1], payload, count * sizeof(*payload));
	iov[count + 1] = (struct iovec){tail, pad + RWK_WIRE_ICRC};
	assert_int_equal(e->link->ops->send(e->link, &e->peer, iov, count + 2), 0);
}

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct end *e = user;
	size_t len = rwk_iov_length(payload, count);

	assert_in_range(count, 0, RWK_MACHINE_IOV);
	assert_in_range(len, 0, e->attr.pmtu);
	assert_int_equal(w->qpn, e->attr.peer_qpn);
	if (!e->room)
		return -EAGAIN;
	e->room -= e->room != UINT_MAX;
	e->sent++;
	if (e->out) {
		struct end_packet *p = &e->out[e->out_count++];

		assert_in_range(e->out_count, 1, END_OUT);
		p->w = *w;
		p->len = (uint32_t)len;
		rwk_iov_gather(payload, count, 0, p->payload, len);
	}
	if (e->lose_times && w->psn == e->lose_psn)
		e->lose_times--;
	else if (e->link)
		send_link(e, w, payload, count, len);
	return 0;
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct end *e = user;
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];
	const uint8_t *payload, *p = bytes;
	struct rwk_wire w;
	size_t payload_len, n;
	uint32_t crc;

	if (rwk_wire_unpack(&w, bytes, len, &payload, &payload_len)) {
		e->bad_icrc++;
		return;
	}
	n = rwk_link_pseudo(e->link, from, false, len, 0, pseudo);
	crc = rwk_icrc_bytes(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, pseudo, n), bytes, len - 4);
	p += len - 4;
	if (crc != (p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24)) {
		e->bad_icrc++;
		return;
	}
	assert_int_equal(w.qpn, e->qpn);
	rwk_rc_packet(e->qp, &w, payload, payload_len, e->link->ops->now(e->link));
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct end *e = user;

	e->done_status[e->done_count++ % 4096] = status;
	e->done_last = wr;
	if (e->on_done)
		e->on_done(e, wr, status);
}

static void on_failed(void *user, int err)
{
	struct end *e = user;

	assert_true(rwk_rc_idle(e->qp));
	e->failed_count++;
	e->failed_err = err;
}

static void add_message(struct end *e, const struct rwk_wire *w, bool written)
{
	unsigned op = RWK_WIRE_OPERATION(w->opcode);
	struct end_message *m = malloc(sizeof(*m) + e->partial_len);

	assert_non_null(m);
	*m = (struct end_message){
		.imm = w->imm,
		.invalidate = w->invalidate,
		.srqn = w->srqn,
		.has_imm = op == RWK_WIRE_SEND_LAST_IMM || op == RWK_WIRE_SEND_ONLY_IMM || written,
		.has_invalidate = op == RWK_WIRE_SEND_LAST_INV || op == RWK_WIRE_SEND_ONLY_INV,
		.solicited = w->solicited,
		.written = written,
		.len = written ? 0 : e->partial_len,
	};
	if (m->len)
		memcpy(m->bytes, e->partial, m->len);
	*e->last = m;
	e->last = &m->next;
	e->message_count++;
	e->partial_len = 0;
}

static void grow(struct end *e, size_t len)
{
	if (len <= e->partial_room)
		return;
	e->partial_room = 2 * len;
	e->partial = realloc(e->partial, e->partial_room);
	assert_non_null(e->partial);
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct end *e = user;

	if (e->domain && w->srqn != e->domain)
		return -EACCES;
	if (e->receive_says)
		return e->receive_says;
	assert_int_equal(!!(where & RWK_PIECE_FIRST), !e->in_message);
	if (where & RWK_PIECE_FIRST && e->busy >> w->srqn % 64 & 1)
		return -EBUSY;
	if (where & RWK_PIECE_FIRST) {
		if (!e->receives)
			return -EAGAIN;
		e->receives -= e->receives != UINT_MAX;
		e->partial_len = 0;
	}
	if (e->partial_len + len > e->receive_size)
		return -EMSGSIZE;
	grow(e, e->partial_len + len);
	if (len)
		memcpy(e->partial + e->partial_len, bytes, len);
	e->partial_len += len;
	e->in_message = !(where & RWK_PIECE_LAST);
	if (!e->in_message && e->on_effect)
		e->on_effect(e, RWK_WR_SEND, 0, e->partial, e->partial_len);
	if (!e->in_message)
		add_message(e, w, false);
	return 0;
}

static int check(struct end *e, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	if (key != END_KEY || e->revoked || address < e->base || len > END_REGION ||
		address - e->base > END_REGION - len || (e->reach & access) != access)
		return -EACCES;
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	struct end *e = user;

	if (e->domain && w->srqn != e->domain)
		return -EACCES;
	return len ? check(e, key, address, len, access) : 0;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct end *e = user;
	int err = check(e, key, address, len, RWK_REACH_WRITE);

	(void)w;
	assert_true(len > 0);
	if (err)
		return err;
	memcpy(e->region + (address - e->base), bytes, len);
	e->writes++;
	if (e->on_effect)
		e->on_effect(e, RWK_WR_WRITE, address, bytes, len);
	return 0;
}

static int on_written(void *user, const struct rwk_wire *w)
{
	struct end *e = user;

	if (!e->receives)
		return -EAGAIN;
	e->receives -= e->receives != UINT_MAX;
	e->partial_len = 0;
	e->written_count++;
	if (e->on_written)
		e->on_written(e, w->imm);
	add_message(e, w, true);
	return 0;
}

static int on_read(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	struct end *e = user;
	uint8_t *at = e->region + (address - e->base);
	int err = check(e, key, address, len, RWK_REACH_READ);

	if (err)
		return err;
	assert_true(max >= 2);
	e->reads++;
	if (e->on_effect)
		e->on_effect(e, RWK_WR_READ, address, at, len);
	if (len < 2) {
		iov[0] = (struct iovec){at, len};
		return 1;
	}
	iov[0] = (struct iovec){at, len / 2};
	iov[1] = (struct iovec){at + len / 2, len - len / 2};
	return 2;
}

static int on_atomic(void *user, const struct rwk_wire *w, uint64_t *before)
{
	struct end *e = user;
	uint64_t value;
	int err = check(e, w->atomic.key, w->atomic.address, 8, RWK_REACH_ATOMIC);

	if (err)
		return err;
	if (w->atomic.address % 8)
		return -EINVAL;
	memcpy(&value, e->region + (w->atomic.address - e->base), 8);
	*before = value;
	if (RWK_WIRE_OPERATION(w->opcode) == RWK_WIRE_FETCH_ADD)
		value += w->atomic.swap_add;
	else if (value == w->atomic.compare)
		value = w->atomic.swap_add;
	memcpy(e->region + (w->atomic.address - e->base), &value, 8);
	e->atomics++;
	if (e->on_effect)
		e->on_effect(e, RWK_WR_FETCH_ADD, w->atomic.address, before, 8);
	return 0;
}

static int on_keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	struct end *e = user;
	struct end_packet *p = malloc(sizeof(*p));

	assert_in_range(slot, 0, RWK_RC_WINDOW_MAX - 1);
	assert_null(e->kept[slot]);
	assert_non_null(p);
	p->w = *w;
	p->len = (uint32_t)len;
	assert_in_range(len, 0, sizeof(p->payload));
	if (len)
		memcpy(p->payload, bytes, len);
	e->kept[slot] = p;
	e->kept_now++;
	return 0;
}

static const void *on_kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	struct end *e = user;

	assert_in_range(slot, 0, RWK_RC_WINDOW_MAX - 1);
	assert_non_null(e->kept[slot]);
	*w = e->kept[slot]->w;
	*len = e->kept[slot]->len;
	return e->kept[slot]->payload;
}

static void on_drop(void *user, uint32_t slot)
{
	struct end *e = user;

	assert_in_range(slot, 0, RWK_RC_WINDOW_MAX - 1);
	assert_non_null(e->kept[slot]);
	free(e->kept[slot]);
	e->kept[slot] = NULL;
	e->kept_now--;
}

static void on_mark(void *user, uint32_t slot, const struct rwk_wire *w)
{
	struct end *e = user;

	assert_in_range(slot, 0, RWK_RC_WINDOW_MAX - 1);
	assert_non_null(e->kept[slot]);
	e->kept[slot]->w = *w;
}

static const struct rwk_machine_host end_host = {
	.emit = on_emit,
	.done = on_done,
	.failed = on_failed,
	.receive = on_receive,
	.reach = on_reach,
	.write = on_write,
	.written = on_written,
	.read = on_read,
	.atomic = on_atomic,
	.keep = on_keep,
	.kept = on_kept,
	.drop = on_drop,
	.mark = on_mark,
};

static struct end *open_end(const struct rwk_rc_attr *attr, uint32_t qpn)
{
	struct end *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->memory = aligned_alloc(64, (rwk_rc_size() + RWK_RC_BUSY_SIZE + 63) / 64 * 64);
	e->responder = calloc(1, rwk_rc_responder_size() + RWK_RC_BUSY_RESPONDER_SIZE);
	e->region = calloc(1, END_REGION);
	assert_true(e->memory && e->responder && e->region);
	e->attr = *attr;
	e->qpn = qpn;
	e->base = 0x100000000000ull;
	e->reach = RWK_REACH_READ | RWK_REACH_WRITE | RWK_REACH_ATOMIC;
	e->receives = UINT_MAX;
	e->receive_size = PARTIAL_MAX;
	e->room = UINT_MAX;
	e->last = &e->first;
	e->qp = rwk_rc_open(e->memory, e->responder, &end_host, e);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTR, attr), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTS, NULL), 0);
	return e;
}

struct end *end_alone(const struct rwk_rc_attr *attr)
{
	struct end *e = open_end(attr, 0x11);

	e->out = malloc(END_OUT * sizeof(*e->out));
	assert_non_null(e->out);
	e->now = 1000;
	return e;
}

static void link_end(struct end *e, struct rwk_sim *s, struct rwk_link *to)
{
	e->sim = s;
	e->link->packet = on_packet;
	e->link->user = e;
	e->peer = rwk_sim_address(rwk_sim_number(to));
}

void end_pair(struct rwk_sim *s, const struct rwk_rc_attr *attr, struct end **a, struct end **b)
{
	struct rwk_rc_attr back = *attr;

	back.peer_qpn = 0x11;
	back.send_psn = attr->receive_psn;
	back.receive_psn = attr->send_psn;
	back.reads = attr->peer_reads ? attr->peer_reads : 1;
	back.peer_reads = attr->reads;
	*a = open_end(attr, 0x11);
	*b = open_end(&back, attr->peer_qpn);
	assert_int_equal(rwk_sim_node(s, &(*a)->link), 0);
	assert_int_equal(rwk_sim_node(s, &(*b)->link), 0);
	link_end(*a, s, (*b)->link);
	link_end(*b, s, (*a)->link);
}

void end_renew(struct end *e)
{
	struct end_message *m;

	while ((m = end_take(e)))
		free(m);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RESET, NULL), 0);
	assert_int_equal(e->kept_now, 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTR, &e->attr), 0);
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_RTS, NULL), 0);
}

void end_close(struct end *e)
{
	struct end_message *m;

	e->on_done = NULL;
	rwk_rc_close(e->qp);
	assert_int_equal(e->kept_now, 0);
	while ((m = end_take(e)))
		free(m);
	if (e->link)
		e->link->ops->close(e->link);
	free(e->memory);
	free(e->responder);
	free(e->region);
	free(e->partial);
	free(e->out);
	free(e);
}

static rwk_time time_of(struct end *e)
{
	return e->sim ? rwk_sim_now(e->sim) : e->now;
}

void end_pump(struct end *e)
{
	rwk_rc_pump(e->qp, time_of(e));
	if (e->link)
		e->link->ops->flush(e->link);
}

bool end_step(struct end *a, struct end *b, rwk_time until)
{
	rwk_time next, now = rwk_sim_now(a->sim);

	a->link->ops->progress(a->link, INT_MAX);
	b->link->ops->progress(b->link, INT_MAX);
	end_pump(a);
	end_pump(b);
	next = rwk_rc_next(a->qp) < rwk_rc_next(b->qp) ? rwk_rc_next(a->qp) : rwk_rc_next(b->qp);
	if (next <= now)
		return true;
	if (next < until && (a->alarm <= now || a->alarm > next)) {
		a->alarm = next;
		rwk_sim_alarm(a->link, next);
	}
	return rwk_sim_now(a->sim) < until && rwk_sim_step(a->sim);
}

bool end_settle(struct end *a, struct end *b, rwk_time limit)
{
	rwk_time until = rwk_sim_now(a->sim) + limit;

	while (end_step(a, b, until))
		if (rwk_rc_idle(a->qp) && rwk_rc_idle(b->qp) && rwk_rc_next(a->qp) == RWK_NEVER &&
			rwk_rc_next(b->qp) == RWK_NEVER)
			return true;
	return rwk_rc_idle(a->qp) && rwk_rc_idle(b->qp);
}

struct rwk_wr end_wr(unsigned type, struct iovec *iov, void *bytes, size_t len)
{
	*iov = (struct iovec){bytes, len};
	return (struct rwk_wr){.type = (uint8_t)type,
		.iov = iov,
		.iov_count = 1,
		.length = len,
		.key = END_KEY,
		.remote = 0x100000000000ull};
}

void end_post(struct end *e, struct rwk_wr *wr)
{
	assert_int_equal(rwk_rc_post(e->qp, wr), 0);
	end_pump(e);
}

struct end_message *end_take(struct end *e)
{
	struct end_message *m = e->first;

	if (m) {
		e->first = m->next;
		if (!e->first)
			e->last = &e->first;
	}
	return m;
}

void end_give(struct end *e, const struct rwk_wire *w, const void *payload, size_t len)
{
	rwk_rc_packet(e->qp, w, payload, len, e->now);
	end_pump(e);
}

void end_give_ack(struct end *e, uint32_t psn, uint8_t syndrome)
{
	struct rwk_wire w = {.opcode = e->attr.service | RWK_WIRE_ACK, .psn = psn, .aeth.syndrome = syndrome};

	end_give(e, &w, NULL, 0);
}

unsigned end_sent(struct end *e)
{
	unsigned n = e->out_count;

	e->out_count = 0;
	return n;
}
