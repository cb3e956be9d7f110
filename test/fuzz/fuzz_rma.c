/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any messages of one-sided operations from a peer to an engine that has requests of its own under way with it, over a
 * service made of the input. What must hold: no byte outside what is granted is touched (the sanitizers see to that,
 * each region is a piece of memory of its own), none of a read-only region either; a request ends once, and a read that
 * ends well has got all its bytes.
 *
 *   steps, of which byte 0 says what: a message, whole or in pieces; a request; what the service has taken is done, or
 *   has failed; the room that send has; a region goes, or comes back
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/internal.h"
#include "engine/job.h"
#include "engine/rma_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define REQUESTS 32u
#define BYTES    600u /* of a region, of a request at most; more than the channel takes at once */
#define POSTED   512u
#define PIECE    100u /* of a message in pieces */
#define STEPS    400u

enum { BOTH, READ_ONLY, WRITE_ONLY, PIECES, REGIONS };

static struct {
	const uint8_t *at, *end; /* the input */
	struct rwk_engine *e;
	struct rwk_peer *peer;
	struct rwk_channel ch;
	bool open;
	struct rwk_op *posted[POSTED];
	unsigned count, exposed, room;
	/* The message that the next progress brings. */
	struct rwk_envelope env;
	uint8_t payload[2 * BYTES + 1500];
	size_t len, in_pieces;
	struct rwk_place *place;

	struct rwk_regions *regions;
	struct rwk_region *region[REGIONS];
	uint8_t *memory[REGIONS];
	struct request {
		uint8_t *buf;
		size_t len;
		bool busy, fetches;
	} requests[REQUESTS];
} s;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static uint8_t next(void)
{
	return s.at < s.end ? *s.at++ : 0;
}

/* Small numbers, and such as are near an end. */
static uint64_t number(void)
{
	uint8_t b = next();

	return b < 200 ? b : b < 220 ? UINT64_MAX - (b - 200u) : (uint64_t)(b - 219) * 64;
}

/*
 * What the engine asks of its job: nothing.
 */

int rwk_job_load(void)
{
	return 0;
}

void rwk_job_facts(struct rwk_sel_facts *f)
{
	(void)f;
}

void rwk_job_show(struct rwk_status *st, const struct rwk_address *me)
{
	(void)st;
	(void)me;
}

void rwk_job_describe(struct rwk_port_attr *attr)
{
	(void)attr;
}

bool rwk_job_wants_network(void)
{
	return false;
}

bool rwk_address_claims(const struct rwk_address *a, uint32_t node)
{
	return a->node == node;
}

void rwk_sel_choose(const struct rwk_sel_facts *f, struct rwk_sel_choice *choice)
{
	(void)f;
	(void)choice;
	abort();
}

bool rwk_sel_explain(struct rwk_sel_explainer *ex, const struct rwk_sel_facts *f, const struct rwk_sel_choice *c)
{
	(void)ex;
	(void)f;
	(void)c;
	return false;
}

const char *rwk_strand_text(enum rwk_strand strand)
{
	(void)strand;
	return "";
}

const struct rwk_transport rwk_shm_transport, rwk_network_transport;

/*
 * The service.
 */

static volatile uint8_t touched; /* so that the sanitizers see what is read */
static const struct rwk_client *client;
static void *cookie;

static int port_open(struct rwk_port_attr *attr, const struct rwk_client *c, void *k, struct rwk_port **port)
{
	attr->address.nonce_port = 1 << 16 | 1;
	client = c;
	cookie = k;
	*port = NULL;
	return 0;
}

static void end_all(int status)
{
	struct rwk_place *place = s.place;

	while (s.count) {
		struct rwk_op *op = s.posted[--s.count];

		op->done(op, status);
	}
	s.place = NULL;
	if (place)
		client->end(cookie, &s.ch, place, status);
}

static void channel_disconnect(struct rwk_channel *ch)
{
	must(ch == &s.ch && s.open);
	end_all(-ECANCELED);
	s.open = false;
	s.exposed = 0;
}

static void port_close(struct rwk_port *port)
{
	(void)port;
	if (s.open)
		channel_disconnect(&s.ch);
}

static int port_connect(struct rwk_port *port, const struct rwk_address *to, void *peer, struct rwk_channel **ch)
{
	(void)port;
	(void)to;
	s.ch.peer = peer;
	s.open = true;
	*ch = &s.ch;
	return 0;
}

static void piece(size_t len)
{
	size_t at = s.len - s.in_pieces;

	rwk_iov_scatter(s.place->iov, s.place->iov_count, s.place->at, s.payload + at, len);
	s.place->at += len;
	s.in_pieces -= len;
}

/* A message; or some pieces of one, and only then its end. */
static int progress(struct rwk_port *port)
{
	struct rwk_place *place;

	(void)port;
	if (!s.open)
		return 0;
	if (!s.in_pieces) {
		client->message(cookie, &s.ch, &s.env, s.payload, s.len);
		return 1;
	}
	if (!s.place) {
		s.place = client->begin(cookie, &s.ch, &s.env, s.len);
		must(s.place != NULL);
		s.place->at = 0;
	}
	piece(s.in_pieces < PIECE ? s.in_pieces : PIECE);
	if (s.in_pieces)
		return 1;
	place = s.place;
	s.place = NULL;
	client->end(cookie, &s.ch, place, 0);
	return 1;
}

static int channel_send(struct rwk_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len)
{
	(void)env;
	must(ch == &s.ch && s.open && len <= ch->send_max);
	if (!s.room)
		return -EAGAIN;
	s.room--;
	for (size_t i = 0; i < len; i++) /* all of it may be read */
		touched ^= ((const uint8_t *)buf)[i];
	return 0;
}

static int channel_post(struct rwk_channel *ch, struct rwk_op *op)
{
	must(ch == &s.ch && s.open && (op->type != RWK_OP_SEND || op->length <= ch->send_max));
	if (s.count == POSTED)
		return -ENOMEM;
	s.posted[s.count++] = op;
	return 0;
}

static int channel_expose(
	struct rwk_channel *ch, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key)
{
	(void)iov;
	(void)count;
	must(ch == &s.ch && s.open && access & RWK_EXPOSE_WRITE);
	s.exposed++;
	*key = (struct rwk_rkey){{1, 2, 3, 4}};
	return 0;
}

static void channel_conceal(struct rwk_channel *ch, const struct rwk_rkey *key)
{
	must(ch == &s.ch && s.open && s.exposed-- && key->word[3] == 4);
}

static const struct rwk_transport transport = {
	.name = "fuzzer",
	.open = port_open,
	.close = port_close,
	.connect = port_connect,
	.disconnect = channel_disconnect,
	.progress = progress,
	.send = channel_send,
	.post = channel_post,
	.expose = channel_expose,
	.conceal = channel_conceal,
};

/* What was posted goes out, the oldest first; what was asked of the service directly is done, or not. */
static void finish_posted(unsigned n, int status)
{
	for (; n && s.count; n--) {
		struct rwk_op *op = s.posted[0];

		memmove(s.posted, s.posted + 1, --s.count * sizeof(*s.posted));
		for (uint32_t i = 0; i < op->iov_count; i++) {
			for (size_t b = 0; b < op->iov[i].iov_len; b++) {
				uint8_t *at = (uint8_t *)op->iov[i].iov_base + b;

				if (op->type == RWK_OP_READ && !status)
					*at = 0x22;
				touched ^= *at;
			}
		}
		op->done(op, op->type == RWK_OP_SEND ? 0 : status);
	}
}

/*
 * The engine's user.
 */

static void on_complete(void *owner, const struct rwk_completion *c)
{
	struct request *r = c->context;

	(void)owner;
	if (c->flags & RWK_F_REMOTE_WRITE)
		return;
	must(r && r->busy);
	for (size_t i = 0; i < r->len && r->fetches && !c->status; i++)
		must(r->buf[i] == 0x22);
	r->busy = false;
	free(r->buf);
	r->buf = NULL;
}

static void on_reached(void *owner, const struct rwk_reached *r)
{
	must(!owner || (r->region == s.region[BOTH] && owner == s.memory[BOTH]));
}

static void region_open(unsigned which)
{
	static const unsigned access[] = {3, RWK_REGION_READ, RWK_REGION_WRITE, 3};
	struct iovec iov[2] = {{s.memory[which], BYTES}, {s.memory[which], 0}};
	const struct rwk_region_attr attr = {.iov = iov,
		.count = which == PIECES ? 2 : 1,
		.base = which == BOTH ? 64 : 0,
		.access = access[which],
		.own_key = true,
		.key = which,
		.reached = which == BOTH ? on_reached : NULL,
		.owner = s.memory[which]};

	if (which == PIECES) {
		iov[0].iov_len = 300;
		iov[1] = (struct iovec){s.memory[which] + 304, BYTES - 304};
	}
	must(!rwk_region_add(s.regions, &attr, &s.region[which]));
}

/* A region that goes takes its memory along: whoever touches it then is found out. */
static void region_turn(unsigned which)
{
	if (s.region[which]) {
		rwk_region_remove(s.regions, s.region[which]);
		s.region[which] = NULL;
		free(s.memory[which]);
		s.memory[which] = NULL;
		return;
	}
	s.memory[which] = calloc(1, BYTES);
	must(s.memory[which] != NULL);
	region_open(which);
}

static void message(void)
{
	uint8_t form = next();

	if (s.in_pieces) { /* the one before comes first */
		rwk_engine_progress(s.e);
		return;
	}
	s.env = (struct rwk_envelope){.kind = RWK_RMA_CHECK + form % (RWK_KINDS - RWK_RMA_CHECK)};
	s.env.flags = next();
	s.env.small = next();
	s.env.small |= (uint16_t)(next() << 8);
	s.env.tag = number();
	s.env.data = s.env.flags & RWK_ENV_DATA ? number() : 0;
	s.len = number() % sizeof(s.payload);
	memset(s.payload, 0x22, sizeof(s.payload));
	for (int i = 0; i < 8 && form & 0x40; i++)
		s.payload[i] = next();
	if (s.env.kind == RWK_RMA_READ || s.env.kind == RWK_RMA_CHECK) {
		uint64_t word = number();

		memcpy(s.payload, &word, sizeof(word));
	}
	s.in_pieces = form & 0x80 ? s.len : 0;
	rwk_engine_progress(s.e);
}

static void request(void)
{
	struct request *r = NULL;
	uint8_t form = next();
	struct rwk_remote remote[2] = {{number(), 0, next() % 4}, {number(), 0, next() % 4}};
	struct rwk_atomic_args a = {.op = RWK_SUM, .type = RWK_UINT64};
	struct iovec iov;
	ssize_t rc;

	for (unsigned i = 0; i < REQUESTS && !r; i++)
		r = s.requests[i].busy ? NULL : &s.requests[i];
	if (!r)
		return;
	r->len = number() % BYTES & ~(size_t)7;
	r->fetches = form & 1;
	r->buf = malloc(r->len + 1);
	must(r->buf != NULL);
	memset(r->buf, 0x11, r->len);
	r->busy = true;
	remote[0].length = form & 2 ? r->len : r->len / 16 * 8;
	remote[1].length = r->len - remote[0].length;
	iov = (struct iovec){r->buf, r->len};
	a.rma = (struct rwk_rma_args){.peer = s.peer,
		.iov = &iov,
		.iov_count = 1,
		.remote = remote,
		.remote_count = form & 2 ? 1 : 2,
		.flags = (form & 4 ? RWK_F_FENCE : 0) | (form & 8 ? RWK_F_DATA : 0),
		.context = r};
	a.result = r->fetches ? &iov : NULL;
	a.result_count = r->fetches;
	if (form & 16)
		rc = rwk_engine_atomic(s.e, &a);
	else
		rc = r->fetches ? rwk_engine_read(s.e, &a.rma) : rwk_engine_write(s.e, &a.rma);
	if (rc) {
		r->busy = false;
		free(r->buf);
		r->buf = NULL;
	}
}

static void step(void)
{
	static const int statuses[] = {0, 0, 0, -EACCES, -EFAULT, -EOPNOTSUPP, -EINVAL, 0};
	uint8_t what = next();

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
		message();
		break;
	case 3:
	case 4:
		request();
		break;
	case 5:
		if (s.open)
			finish_posted(1 + (what >> 6), statuses[what >> 3 & 7]);
		break;
	case 6:
		s.room = what >> 3;
		break;
	default:
		region_turn(what >> 3 & 3);
	}
	if (s.region[READ_ONLY]) {
		for (size_t i = 0; i < BYTES; i++)
			must(s.memory[READ_ONLY][i] == 0);
	}
}

static void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

static void set_up(void)
{
	static const struct rwk_transport *const transports[] = {&transport};
	struct rwk_address to = {.version_srq = RWK_ADDR_VERSION << 24, .nonce_port = 7 << 16 | 2};
	struct rwk_engine_attr attr = {.complete = on_complete,
		.reached = on_reached,
		.tx_limit = 1000,
		.inject_limit = 1000,
		.multi_min = 64,
		.transports = transports};

	rwk_log_set_sink(no_log);
	rwk_param_load();
	must(!rwk_regions_open(&s.regions, false));
	attr.regions = s.regions;
	for (unsigned i = 0; i < REGIONS; i++)
		region_turn(i);
	must(!rwk_engine_open(&attr, &s.e));
	s.peer = rwk_engine_peer(s.e, &to);
	must(s.peer != NULL);
	s.ch = (struct rwk_channel){.transport = &transport, .send_max = 256, .direct_min = next() & 1 ? 64 : 0};
	s.room = 8;
	must(!rwk_peer_connect(s.peer));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	memset(&s, 0, sizeof(s));
	s.at = bytes;
	s.end = bytes + len;
	set_up();
	for (unsigned i = 0; i < STEPS && s.at < s.end; i++)
		step();
	for (unsigned i = 0; i < REGIONS; i++) {
		if (s.region[i])
			region_turn(i);
	}
	rwk_engine_close(s.e);
	rwk_regions_close(s.regions);
	for (unsigned i = 0; i < REQUESTS; i++)
		free(s.requests[i].buf);
	return 0;
}
