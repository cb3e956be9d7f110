/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a reliable connection, and a hostile network between them: the input says, byte by byte, what is posted,
 * which packets arrive, in what order, how often, or changed in any field, and which are made up. The host checks every
 * bound. What must hold whatever comes: nothing outside of the buffers is touched (the sanitizers see to that), each
 * work request ends once, what is kept is dropped, and a QP that has failed has told so once.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rc/rc.h"
#include "wire/psn.h"

#define REGION 8192u
#define BASE   0x10000000u
#define KEY    7u
#define WRS    24u
#define QUEUE  512u
#define STEPS  4000u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct packet {
	struct rwk_wire w;
	uint32_t len;
	uint8_t payload[RWK_WIRE_OWN_MAX];
};

struct end {
	struct rwk_rc *qp;
	void *memory, *responder;
	struct rwk_rc_attr attr;
	uint8_t *region;
	struct packet *out[QUEUE]; /* sent, not yet arrived */
	unsigned out_count, room, receives;
	struct packet *kept[RWK_RC_WINDOW_MAX];
	struct rwk_wr wrs[WRS];
	struct iovec iovs[WRS];
	uint8_t *buffers[WRS];
	bool used[WRS];
	unsigned failed;
	bool in_message;
};

struct input {
	const uint8_t *at, *end;
};

static void must(int holds)
{
	if (!holds)
		abort();
}

static uint8_t next(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static uint32_t next32(struct input *in)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 8 | next(in);
	return v;
}

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct end *e = user;
	struct packet *p;

	must(count >= 0 && count <= RWK_MACHINE_IOV);
	if (!e->room)
		return -EAGAIN;
	e->room--;
	if (e->out_count == QUEUE)
		return 0; /* lost */
	p = malloc(sizeof(*p));
	must(p != NULL);
	p->w = *w;
	p->len = 0;
	for (int i = 0; i < count; i++) {
		must(payload[i].iov_len <= e->attr.pmtu - p->len);
		memcpy(p->payload + p->len, payload[i].iov_base, payload[i].iov_len);
		p->len += (uint32_t)payload[i].iov_len;
	}
	e->out[e->out_count++] = p;
	return 0;
}

static void on_done(void *user, struct rwk_wr *wr, int status)
{
	struct end *e = user;
	size_t i = (size_t)(wr - e->wrs);

	must(status <= 0);
	must(i < WRS && e->used[i]);
	e->used[i] = false;
	free(e->buffers[i]);
	e->buffers[i] = NULL;
}

static void on_failed(void *user, int err)
{
	struct end *e = user;

	must(err < 0);
	must(!e->failed++);
	for (unsigned i = 0; i < WRS; i++)
		must(!e->used[i]);
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct end *e = user;
	uint8_t copy[RWK_WIRE_OWN_MAX];

	must(len <= e->attr.pmtu);
	must(!(where & RWK_PIECE_FIRST) == e->in_message);
	if (where & RWK_PIECE_FIRST && !e->receives)
		return w->srqn & 1 ? -EBUSY : -EAGAIN;
	e->receives -= where & RWK_PIECE_FIRST ? 1 : 0;
	if (len)
		memcpy(copy, bytes, len);
	e->in_message = !(where & RWK_PIECE_LAST);
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	(void)user;
	(void)w;
	(void)access;
	return key != KEY || address < BASE || len > REGION || address - BASE > REGION - len ? -EACCES : 0;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct end *e = user;

	must(len && len <= e->attr.pmtu);
	if (on_reach(user, w, key, address, len, RWK_REACH_WRITE))
		return -EACCES;
	memcpy(e->region + (address - BASE), bytes, len);
	return 0;
}

static int on_written(void *user, const struct rwk_wire *w)
{
	struct end *e = user;

	(void)w;
	if (!e->receives)
		return -EAGAIN;
	e->receives--;
	return 0;
}

static int on_read(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	struct end *e = user;

	must(max >= 1 && len && len <= e->attr.pmtu);
	if (on_reach(user, NULL, key, address, len, RWK_REACH_READ))
		return -EACCES;
	*iov = (struct iovec){e->region + (address - BASE), len};
	return 1;
}

static int on_atomic(void *user, const struct rwk_wire *w, uint64_t *before)
{
	struct end *e = user;

	must(!on_reach(user, w, w->atomic.key, w->atomic.address, 8, RWK_REACH_ATOMIC));
	if (w->atomic.address % 8)
		return -EINVAL;
	memcpy(before, e->region + (w->atomic.address - BASE), 8);
	return 0;
}

static int on_keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	struct end *e = user;

	must(slot < RWK_RC_WINDOW_MAX && !e->kept[slot] && len <= RWK_WIRE_OWN_MAX);
	e->kept[slot] = malloc(sizeof(*e->kept[slot]));
	must(e->kept[slot] != NULL);
	e->kept[slot]->w = *w;
	e->kept[slot]->len = (uint32_t)len;
	if (len)
		memcpy(e->kept[slot]->payload, bytes, len);
	return 0;
}

static const void *on_kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	struct end *e = user;

	must(slot < RWK_RC_WINDOW_MAX && e->kept[slot]);
	*w = e->kept[slot]->w;
	*len = e->kept[slot]->len;
	return e->kept[slot]->payload;
}

static void on_drop(void *user, uint32_t slot)
{
	struct end *e = user;

	must(slot < RWK_RC_WINDOW_MAX && e->kept[slot]);
	free(e->kept[slot]);
	e->kept[slot] = NULL;
}

static void on_mark(void *user, uint32_t slot, const struct rwk_wire *w)
{
	struct end *e = user;

	must(slot < RWK_RC_WINDOW_MAX && e->kept[slot]);
	e->kept[slot]->w = *w;
}

static const struct rwk_machine_host host = {
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

static void open_end(struct end *e, const struct rwk_rc_attr *attr)
{
	*e = (struct end){.attr = *attr, .room = 100, .receives = 10};
	e->memory = aligned_alloc(64, (rwk_rc_size() + RWK_RC_BUSY_SIZE + 63) / 64 * 64);
	e->responder = calloc(1, rwk_rc_responder_size() + RWK_RC_BUSY_RESPONDER_SIZE);
	e->region = calloc(1, REGION);
	must(e->memory && e->responder && e->region);
	e->qp = rwk_rc_open(e->memory, e->responder, &host, e);
	must(!rwk_rc_modify(e->qp, RWK_QP_INIT, NULL));
	must(!rwk_rc_modify(e->qp, RWK_QP_RTR, attr));
	must(!rwk_rc_modify(e->qp, RWK_QP_RTS, NULL));
}

static void close_end(struct end *e)
{
	rwk_rc_close(e->qp);
	for (unsigned i = 0; i < WRS; i++)
		must(!e->used[i]);
	for (unsigned i = 0; i < RWK_RC_WINDOW_MAX; i++)
		must(!e->kept[i]);
	while (e->out_count)
		free(e->out[--e->out_count]);
	free(e->memory);
	free(e->responder);
	free(e->region);
}

static void post(struct end *e, struct input *in)
{
	static const uint16_t lengths[] = {0, 1, 8, 255, 256, 257, 600, 4000};
	unsigned i = 0;
	struct rwk_wr *wr;

	while (i < WRS && e->used[i])
		i++;
	if (i == WRS)
		return;
	wr = &e->wrs[i];
	*wr = (struct rwk_wr){.type = next(in) % 6, .flags = next(in) & 0x6f, .imm = i, .key = KEY, .srqn = i % 4};
	wr->length = wr->type >= RWK_WR_COMPARE_SWAP ? 8 : lengths[next(in) % 8];
	wr->remote = BASE + next(in) * 8u;
	e->buffers[i] = malloc(wr->length ? wr->length : 1);
	must(e->buffers[i] != NULL);
	memset(e->buffers[i], 0x5a, wr->length);
	e->iovs[i] = (struct iovec){e->buffers[i], wr->length};
	wr->iov = &e->iovs[i];
	wr->iov_count = 1;
	e->used[i] = true;
	if (rwk_rc_post(e->qp, wr)) {
		e->used[i] = false;
		free(e->buffers[i]);
	}
}

/* One field of a packet is another than it was. */
static void change(struct packet *p, struct input *in, const struct end *to)
{
	uint32_t v;

	switch (next(in) % 13) {
	case 0:
		p->w.opcode = next(in);
		break;
	case 1:
		p->w.psn = rwk_psn_add(p->w.psn, next(in) - 128u);
		break;
	case 2:
		p->w.psn = next32(in) & RWK_PSN_MASK;
		break;
	case 3:
		p->len = next32(in) % (to->attr.pmtu + 8);
		break;
	case 4:
		p->w.reth.length = next32(in);
		break;
	case 5:
		p->w.reth.address = BASE + next32(in);
		break;
	case 6:
		p->w.aeth.syndrome = next(in);
		break;
	case 7:
		p->w.ack_request ^= 1;
		break;
	case 8:
		p->w.atomic.address = BASE + next(in);
		break;
	case 9:
		p->w.becn = p->w.fecn = true;
		break;
	case 10:
		p->w.reth.key = KEY;
		p->w.reth.length = next(in) * 64u;
		break;
	case 12:
		p->w.offset = next32(in);
		break;
	default: /* the bitmap of an acknowledgement of ours */
		p->len = next(in) % 40;
		v = next32(in);
		for (uint32_t i = 0; i < p->len; i++)
			p->payload[i] = (uint8_t)(v >> i % 25);
	}
}

static void deliver(struct end *from, struct end *to, struct input *in, unsigned how, rwk_time now)
{
	unsigned i = how & 8 && from->out_count ? next(in) % from->out_count : 0;
	struct packet made_up, *p = &made_up;

	if (how & 4 || !from->out_count) {
		made_up = (struct packet){.w = {.opcode = next(in),
						  .psn = rwk_psn_add(to->attr.receive_psn, next(in)),
						  .ack_request = true,
						  .reth = {.address = BASE, .key = KEY, .length = next(in)},
						  .atomic = {.address = BASE, .key = KEY}},
			.len = next(in)};
		if (how & 1)
			made_up.w.psn = rwk_psn_add(to->attr.send_psn, next(in));
	} else {
		p = from->out[i];
	}
	if (how & 2)
		change(p, in, to);
	rwk_rc_packet(to->qp, &p->w, p->payload, p->len, now);
	if (p != &made_up && !(how & 1)) {
		memmove(&from->out[i], &from->out[i + 1], (from->out_count - i - 1) * sizeof(p));
		from->out_count--;
		free(p);
	}
}

static void lose(struct end *e)
{
	if (e->out_count)
		free(e->out[--e->out_count]);
}

static void step(struct end *e, struct end *peer, struct input *in, rwk_time *now)
{
	uint8_t what = next(in);
	uint32_t psn;

	switch (what >> 4) {
	case 0:
	case 1:
	case 2:
		post(e, in);
		break;
	case 3:
		rwk_rc_pump(e->qp, *now);
		break;
	case 4:
		lose(e);
		break;
	case 5:
		*now += rwk_rc_next(e->qp) == RWK_NEVER || rwk_rc_next(e->qp) < *now ? 1000 : rwk_rc_next(e->qp) - *now;
		rwk_rc_pump(e->qp, *now);
		break;
	case 6:
		e->room = what & 15;
		break;
	case 7:
		e->receives = what & 15;
		break;
	case 8:
		if (rwk_rc_take_ack(e->qp, false, &psn))
			rwk_rc_acked(peer->qp, psn, *now);
		break;
	case 9:
		rwk_rc_acked(e->qp, rwk_psn_add(e->attr.send_psn, next(in)), *now);
		break;
	default:
		deliver(peer, e, in, what & 15 & (what >= 0xd0 ? 15 : 8), *now);
		e->room = 100;
		rwk_rc_pump(e->qp, *now);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct input in = {bytes, bytes + len};
	uint8_t own = next(&in), window = next(&in);
	struct rwk_rc_attr attr = {
		.send_psn = 0xffffc0,
		.receive_psn = 0x10,
		.pmtu = 256,
		.window = (uint16_t)(window + 1),
		.reads = (uint8_t)(1 + (own >> 4)),
		.peer_reads = 16,
		.retry = 3,
		.rnr_retry = own & 8 ? 7 : 2,
		.rnr_timer = 1,
		.own = (own & 7) | (own & RWK_RC_SELECTIVE && own & 8 ? RWK_RC_UNORDERED : 0),
		.service = RWK_WIRE_RC,
		.reach = RWK_REACH_READ | RWK_REACH_WRITE | RWK_REACH_ATOMIC,
		.timeout = 100000,
		.ack_delay = 1000,
		.ack_every = 4,
		.read_chunk = own & 16 ? 512 : 0,
	};
	rwk_time now = 0;
	struct end a, b;

	if ((own & 0x29) == (0x20 | RWK_RC_SELECTIVE)) {
		attr.own |= RWK_RC_BUSY;
		attr.service = RWK_WIRE_SRC;
	}
	open_end(&a, &attr);
	attr.send_psn = 0x10;
	attr.receive_psn = 0xffffc0;
	open_end(&b, &attr);
	for (unsigned i = 0; i < STEPS && in.at < in.end; i++) {
		if (next(&in) & 1)
			step(&a, &b, &in, &now);
		else
			step(&b, &a, &in, &now);
	}
	close_end(&a);
	close_end(&b);
	return 0;
}
