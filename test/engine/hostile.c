/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/hostile.h"

#include "engine/internal.h"
#include "engine/job.h"

#include <unistd.h>

#define CONTACT 10 /* milliseconds that a first contact may take on shared memory */

void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

/*
 * The raw port.
 */

static int on_connected(void *client, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct raw *r = client;

	(void)from;
	ch->peer = r;
	r->ch = ch;
	return 0;
}

static void on_message(
	void *client, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct raw *r = client;

	(void)payload;
	if (env->kind == RWK_RMA_IMPORT && ch->direct == RWK_DIRECT_ALONE)
		return; /* comes with the first request, whatever that is */
	r->no_room += env->kind == RWK_RMA_REFUSED && env->small == ENOBUFS;
	if (r->count < HEARD)
		r->heard[r->count] = (struct heard){*env, len};
	r->count++;
}

static struct rwk_place *on_begin(void *client, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct raw *r = client;

	(void)ch;
	r->coming = (struct heard){*env, len};
	r->nowhere = (struct rwk_place){0};
	return &r->nowhere;
}

static void on_end(void *client, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct raw *r = client;

	(void)place;
	if (!status)
		on_message(r, ch, &r->coming.env, NULL, r->coming.len);
}

static void on_failed(void *client, struct rwk_channel *ch, int err)
{
	struct raw *r = client;

	(void)ch;
	r->failed = err;
}

static const struct rwk_client raw_client = {
	.connected = on_connected, .message = on_message, .begin = on_begin, .end = on_end, .failed = on_failed};

void settle(struct raw *r)
{
	unsigned quiet = 0;

	for (int i = 0; i < 20000 && quiet++ < 500; i++) {
		bool any = r->t->progress(r->port) > 0;

		any |= world_poll(r->w) > 0;
		if (r->w->net && !rwk_sim_step(r->w->net) && !any)
			return;
		if (any)
			quiet = 0;
	}
}

static void raw_open(struct raw *r, struct world *w)
{
	struct rwk_port_attr attr = {0};

	*r = (struct raw){.w = w, .t = w->attr.transport};
	rwk_job_describe(&attr);
	memcpy(attr.address.ip, rwk_engine_address(w->e[0])->ip, sizeof(attr.address.ip));
	assert_int_equal(r->t->open(&attr, &raw_client, r, &r->port), 0);
	r->address = attr.address;
	assert_int_equal(r->t->connect(r->port, rwk_engine_address(w->e[0]), r, &r->ch), 0);
	for (int i = 0; i < CONTACT; i++) {
		settle(r);
		if (!w->net)
			usleep(1000);
	}
}

static void raw_close(struct raw *r)
{
	r->t->disconnect(r->ch);
	r->t->close(r->port);
}

static void on_done(struct rwk_op *op, int status)
{
	(void)status;
	free(op);
}

void say(struct raw *r, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct {
		struct rwk_op op;
		struct iovec iov;
		unsigned char bytes[4096];
	} *m = malloc(sizeof(*m));

	assert_non_null(m);
	memset(&m->op, 0, sizeof(m->op));
	if (len)
		memcpy(m->bytes, payload, len);
	m->iov = (struct iovec){m->bytes, len};
	m->op.type = RWK_OP_SEND;
	m->op.env = *env;
	m->op.iov = &m->iov;
	m->op.iov_count = 1;
	m->op.length = len;
	m->op.done = on_done;
	if (r->t->post(r->ch, &m->op))
		free(m);
}

/*
 * The scene.
 */

void scene_open(struct scene *s, void *state)
{
	area_open_world(&s->w, state, 2);
	raw_open(&s->raw, &s->w);
	area_open(&s->area, &s->w, 0, LENGTH, 3, false);
	area_open(&s->read_only, &s->w, 0, LENGTH, RWK_REGION_READ, true);
	area_open(&s->write_only, &s->w, 0, LENGTH, RWK_REGION_WRITE, true);
	area_open(&s->none, &s->w, 0, LENGTH, 0, true);
	area_open(&s->other, &s->w, 0, 3 * LENGTH, 3, true);
}

/* Another peer's requests are carried out, before and behind what the hostile one does. */
static void check_other(struct scene *s)
{
	unsigned char out[3 * LENGTH], in[3 * LENGTH];
	struct task t[2] = {{0}};

	world_fill(out, sizeof(out), 7);
	memset(in, 0, sizeof(in));
	assert_int_equal(area_simple(&s->w, 1, &s->other, WRITE, out, 0, sizeof(out), 0, &t[0]), 0);
	assert_int_equal(area_simple(&s->w, 1, &s->other, READ, in, 0, sizeof(in), RWK_F_FENCE, &t[1]), 0);
	world_wait(&s->w, &t[0]);
	world_wait(&s->w, &t[1]);
	assert_int_equal(t[0].c.status, 0);
	assert_int_equal(t[1].c.status, 0);
	world_check(in, sizeof(in), 7);
}

void scene_close(struct scene *s)
{
	struct area *untouched[] = {&s->read_only, &s->write_only, &s->none};

	check_other(s);
	for (int i = 0; i < 3; i++) {
		area_check_filled(untouched[i]->bytes, LENGTH);
		area_close(untouched[i]);
	}
	area_close(&s->area);
	area_close(&s->other);
	raw_close(&s->raw);
	world_close(&s->w);
}
