/* SPDX-License-Identifier: BSD-3-Clause */
#include "links/ends.h"

#include "base/compiler.h"
#include "base/param.h"
#include "pattern.h"

#include <time.h>
#include <unistd.h>

#define STEP_MAX 2000000

const struct rwk_transport *ends_transport = &rwk_sim_transport;
size_t ends_longest = 4096;
const size_t *ends_lengths;
size_t ends_lengths_count;
struct side *ends_guest;
uint32_t ends_machine, ends_processors, ends_node;
struct rwk_sim *ends_net;
struct end *ends[ENDS];
unsigned ends_interleaved;

static unsigned end_count;

const struct rwk_sim_path ends_lossy = {.delay = 1000,
	.jitter = 1000,
	.reorder_by = 10000,
	.drop = 30000,
	.duplicate = 20000,
	.corrupt = 20000,
	.reorder = 50000};

int ends_use(void **state)
{
	rwk_param_load();
	ends_transport = *state;
	ends_longest = 4096;
	ends_lengths_count = 0;
	ends_guest = NULL;
	ends_machine = ends_processors = ends_node = 0;
	return 0;
}

bool ends_packets(void)
{
	return ends_transport != &rwk_sim_transport;
}

size_t ends_length(unsigned from, unsigned to, uint64_t n)
{
	uint64_t h = (n * 1000003 + from * 17 + to) * 0x9e3779b97f4a7c15u;

	if (ends_lengths_count)
		return ends_lengths[n % ends_lengths_count];
	return (h >> 60) < 6 ? (h >> 20) % 64 : (h >> 20) % (ends_longest + 1);
}

static uint8_t first_byte(unsigned from, uint64_t n)
{
	return (uint8_t)(n * 13 + from);
}

static void check_payload(struct side *s, const struct rwk_envelope *env, const uint8_t *bytes, size_t len)
{
	size_t right;

	assert_int_equal(env->tag, s->received);
	assert_int_equal(env->data, env->flags & RWK_ENV_DATA ? ~s->received : 0);
	assert_int_equal(len, ends_length(s->peer, s->end->number, s->received));
	right = pattern_right(bytes, len, first_byte(s->peer, s->received));
	if (right < len)
		fail_msg("message %llu from %u: byte %zu is wrong", (unsigned long long)s->received, s->peer, right);
	s->received++;
}

static int on_connected(void *cookie, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct end *e = cookie;

	assert_true(e->in_progress);
	assert_int_equal(from->flags_rank & RWK_ADDR_PARTIAL, 0);
	if (e->refuse)
		return e->refuse;
	e->connects++;
	if (ch->peer) /* our own, to a partial address */
		return 0;
	for (unsigned i = 0; i < end_count; i++) {
		if (ends[i]->address.nonce_port != from->nonce_port)
			continue;
		e->sides[i]->ch = ch;
		ch->peer = e->sides[i];
		return 0;
	}
	if (!ends_guest)
		return -ECONNREFUSED;
	ends_guest->end = e;
	ends_guest->ch = ch;
	ch->peer = ends_guest;
	return 0;
}

static void on_message(
	void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct side *s = ch->peer;

	assert_true(((struct end *)cookie)->in_progress);
	assert_false(s->failed);
	check_payload(s, env, payload, len);
}

static struct rwk_place *on_begin(void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct side *s = ch->peer;

	assert_true(((struct end *)cookie)->in_progress);
	assert_false(s->failed || s->in_place);
	for (unsigned i = 0; i < end_count; i++)
		ends_interleaved += s->end->sides[i] && s->end->sides[i]->in_place;
	s->in_place = true;
	s->env = *env;
	s->len = len;
	s->iov = (struct iovec){s->buf, sizeof(s->buf)};
	s->place = (struct rwk_place){.iov = &s->iov, .iov_count = 1, .at = 99};
	return &s->place;
}

static void on_end(void *cookie, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct side *s = ch->peer;

	(void)cookie;
	assert_true(s->in_place && place == &s->place);
	assert_false(s->failed);
	s->in_place = false;
	if (status) {
		s->ended_badly++;
		return;
	}
	assert_int_equal(place->at, s->len);
	check_payload(s, &s->env, s->buf, s->len);
}

static void on_failed(void *cookie, struct rwk_channel *ch, int err)
{
	struct side *s = ch->peer;

	assert_true(((struct end *)cookie)->in_progress);
	assert_int_equal(ch->error, err);
	assert_int_equal(s->ops, 0);
	assert_false(s->in_place);
	s->failed++;
	s->error = err;
}

static void on_stream(void *cookie, struct rwk_channel *ch)
{
	struct side *s = ch->peer;

	assert_true(((struct end *)cookie)->in_progress);
	s->end->by_stream++;
}

const struct rwk_client ends_client = {
	.by_stream = on_stream,
	.connected = on_connected,
	.message = on_message,
	.begin = on_begin,
	.end = on_end,
	.failed = on_failed,
};

/* A posted send with its buffer, which is scribbled over as soon as it is ours again. */
struct post {
	struct rwk_op op;
	struct iovec iov[2];
	struct side *side;
	uint8_t buf[];
};

static void post_done(struct rwk_op *op, int status)
{
	struct post *p = rwk_container_of(op, struct post, op);

	(void)status;
	p->side->ops--;
	trash(p->buf, op->length);
	free(p);
}

void ends_fill(struct side *s, uint8_t *buf, size_t len)
{
	pattern_fill(buf, len, first_byte(s->end->number, s->sent));
}

struct rwk_envelope ends_envelope(const struct side *s)
{
	struct rwk_envelope env = {.kind = 3, .small = 5, .tag = s->sent, .data = ~s->sent};

	if (s->sent % 2)
		env.flags = RWK_ENV_DATA;
	return env;
}

int ends_send(struct side *s)
{
	size_t len = ends_length(s->end->number, s->peer, s->sent);
	struct rwk_envelope env = ends_envelope(s);
	uint8_t buf[LENGTH];
	int rc;

	ends_fill(s, buf, len);
	rc = s->ch->transport->send(s->ch, &env, buf, len);
	memset(buf, 0xee, len);
	s->sent += !rc;
	return rc;
}

int ends_post(struct side *s)
{
	size_t len = ends_length(s->end->number, s->peer, s->sent);
	struct post *p = calloc(1, sizeof(*p) + len);
	int rc;

	assert_non_null(p);
	ends_fill(s, p->buf, len);
	p->side = s;
	p->iov[0] = (struct iovec){p->buf, len / 3};
	p->iov[1] = (struct iovec){p->buf + len / 3, len - len / 3};
	p->op = (struct rwk_op){.type = RWK_OP_SEND,
		.iov_count = 2,
		.iov = p->iov,
		.length = len,
		.env = ends_envelope(s),
		.done = post_done};
	s->ops++;
	rc = s->ch->transport->post(s->ch, &p->op);
	if (rc) {
		s->ops--;
		free(p);
	}
	if (rc >= 0)
		s->sent++;
	return rc;
}

int ends_progress(struct end *e)
{
	int n;

	e->in_progress = true;
	n = ends_transport->progress(e->port);
	e->in_progress = false;
	return n;
}

bool ends_progress_all(void)
{
	bool any = false;

	for (unsigned i = 0; i < end_count; i++)
		if (ends[i]->port)
			while (ends_progress(ends[i]))
				any = true;
	return any;
}

void ends_turn(void)
{
	if (!ends_progress_all())
		usleep(50);
}

void ends_settle(void)
{
	for (unsigned steps = 0; steps < STEP_MAX; steps++) {
		ends_progress_all();
		if (!rwk_sim_step(ends_net))
			return;
	}
	fail_msg("the network does not come to rest");
}

static struct end *new_end(void)
{
	struct end *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->number = end_count;
	ends[end_count++] = e;
	for (unsigned i = 0; i < end_count; i++) {
		for (unsigned j = 0; j < end_count; j++) {
			if (i == j || ends[i]->sides[j])
				continue;
			ends[i]->sides[j] = calloc(1, sizeof(struct side));
			assert_non_null(ends[i]->sides[j]);
			ends[i]->sides[j]->end = ends[i];
			ends[i]->sides[j]->peer = j;
		}
	}
	return e;
}

struct end *ends_add(void)
{
	return ends_add_at(0);
}

static void open_port(struct end *e, uint16_t port)
{
	struct rwk_port_attr attr = {.local_peers = 2,
		.address.version_srq = RWK_ADDR_VERSION << 24,
		.address.node = ends_node,
		.key = ENDS_KEY,
		.machine = ends_machine,
		.processors = ends_processors};
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

	attr.address.nonce_port = port;
	if (!ends_net && !rwk_params.interfaces) /* else it is the loopback's all the same, and hears all of those */
		memcpy(attr.address.ip, loopback, sizeof(loopback));
	assert_int_equal(ends_transport->open(&attr, &ends_client, e, &e->port), 0);
	e->address = attr.address;
	assert_int_not_equal(rwk_address_port(&e->address), 0);
}

struct end *ends_add_at(uint16_t port)
{
	struct end *e = new_end();

	open_port(e, port);
	return e;
}

void ends_open_again(unsigned i)
{
	for (unsigned j = 0; j < end_count; j++) {
		struct side *pair[] = {ends[i]->sides[j], ends[j]->sides[i]};

		for (unsigned k = 0; j != i && k < 2; k++)
			*pair[k] = (struct side){.end = pair[k]->end, .peer = pair[k]->peer};
	}
	open_port(ends[i], 0);
}

struct end *ends_add_foreign(const struct rwk_address *address)
{
	struct end *e = new_end();

	e->address = *address;
	return e;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void ends_wait(const volatile uint64_t *what, uint64_t value)
{
	double end = seconds() + 20;

	while (*what < value) {
		ends_turn();
		if (seconds() > end)
			fail_msg("waited for %llu, have %llu", (unsigned long long)value, (unsigned long long)*what);
	}
}

void ends_wait_failed(const struct side *s)
{
	double end = seconds() + 20;

	while (!s->failed) {
		ends_turn();
		if (seconds() > end)
			fail_msg("the channel does not fail");
	}
}

static void open_net(const struct rwk_sim_attr *attr, const struct rwk_sim_service *how)
{
	struct rwk_sim_attr a = attr ? *attr : rwk_sim_attr_default;

	ends_net = NULL;
	if (ends_transport == &rwk_network_transport)
		return;
	if (ends_transport == &sim_stream_transport)
		a.path.drop = a.path.duplicate = a.path.corrupt = a.path.reorder = 0;
	assert_int_equal(rwk_sim_open(&a, &ends_net), 0);
	rwk_sim_transport_use(ends_net, how);
	sim_packet_use(ends_net);
}

void ends_open(const struct rwk_sim_attr *attr, const struct rwk_sim_service *how, unsigned count)
{
	open_net(attr, how);
	end_count = 0;
	for (unsigned i = 0; i < count; i++)
		ends_add();
}

void ends_close_port(unsigned i)
{
	ends_transport->close(ends[i]->port);
	ends[i]->port = NULL;
}

/* A close waits until its peers have all of it, which are closed by this thread as well: so they wait together. */
static void leave_together(void)
{
	bool on = ends_transport->leave;

	for (unsigned i = 0; on && i < end_count; i++)
		if (ends[i]->port)
			ends_transport->leave(ends[i]->port);
	while (on) {
		on = false;
		for (unsigned i = 0; i < end_count; i++)
			on |= ends[i]->port && ends_transport->linger(ends[i]->port);
	}
}

void ends_close(void)
{
	leave_together();
	for (unsigned i = 0; i < end_count; i++)
		if (ends[i]->port)
			ends_close_port(i);
	rwk_sim_transport_use(NULL, NULL);
	sim_packet_use(NULL);
	if (ends_net)
		rwk_sim_close(ends_net);
	for (unsigned i = 0; i < end_count; i++) {
		for (unsigned j = 0; j < ENDS; j++)
			free(ends[i]->sides[j]);
		free(ends[i]);
	}
}

struct side *ends_side(unsigned from, unsigned to)
{
	return ends[from]->sides[to];
}

void ends_connect(unsigned from, unsigned to)
{
	struct side *s = ends_side(from, to);

	assert_int_equal(ends_transport->connect(ends[from]->port, &ends[to]->address, s, &s->ch), 0);
}

static void op_done(struct rwk_op *op, int status)
{
	struct ends_op *s = rwk_container_of(op, struct ends_op, op);

	s->done++;
	s->status = status;
}

void ends_make_op(struct ends_op *s, enum rwk_op_type type, void *buf, size_t len)
{
	memset(s, 0, sizeof(*s));
	s->iov = (struct iovec){buf, len};
	s->op = (struct rwk_op){.type = type, .iov_count = 1, .iov = &s->iov, .length = len, .done = op_done};
}

void ends_open_two(void)
{
	ends_open(NULL, NULL, 2);
	ends_connect(0, 1);
	ends_settle();
}
