/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_target.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const t_links[T_LINKS] = {"shm", "udp", "tcp", "self"};

/* The target. */
struct t_host {
	struct t_domain *d;
	struct t_end *e;
	const struct t_setup *setup;
	unsigned char *memory;
	struct fid_mr *mr;
	struct fid_cntr *cntr[4]; /* reads and writes, of the endpoint and of the registration */
};

struct order {
	uint32_t what, seed;
	uint64_t at, len;
};

struct region {
	uint64_t base, key;
};

static struct fi_info *hints_of(const struct t_setup *s)
{
	struct fi_info *hints = t_hints();

	hints->caps = s->caps;
	hints->domain_attr->mr_mode = s->mr_mode;
	hints->domain_attr->data_progress = s->progress;
	hints->domain_attr->threading = s->threading;
	return hints;
}

static void open_end(struct t_domain *d, struct t_end *e, const struct t_setup *s, struct t_options *o)
{
	t_domain_open_api(d, hints_of(s), s->version ? s->version : FI_VERSION(1, 17));
	t_end_open(e, d, o);
}

static void host_register(struct t_host *h, uint64_t access, uint64_t key)
{
	int mode = h->d->info->domain_attr->mr_mode;

	assert_int_equal(fi_mr_reg(h->d->domain, h->memory, T_MEMORY, access, 0, key,
				 mode == T_MR_BASIC      ? 0
				 : mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT
							  : 0,
				 &h->mr, NULL),
		0);
	if (mode & FI_MR_ENDPOINT && mode != T_MR_BASIC)
		assert_int_equal(fi_mr_bind(h->mr, &h->e->ep->fid, 0), 0);
	if (mode & FI_MR_RMA_EVENT && h->cntr[2]) {
		assert_int_equal(fi_mr_bind(h->mr, &h->cntr[2]->fid, FI_REMOTE_READ), 0);
		assert_int_equal(fi_mr_bind(h->mr, &h->cntr[3]->fid, FI_REMOTE_WRITE), 0);
	}
	if (mode & (FI_MR_RMA_EVENT | FI_MR_ENDPOINT))
		assert_int_equal(fi_mr_enable(h->mr), 0);
}

static struct region region_of(const struct t_host *h)
{
	int mode = h->d->info->domain_attr->mr_mode;
	bool named = mode == T_MR_BASIC || mode & FI_MR_VIRT_ADDR;

	return (struct region){named ? (uintptr_t)h->memory : 0, fi_mr_key(h->mr)};
}

static void host_open(struct t_host *h, struct t_domain *d, struct t_end *e, const struct t_setup *s)
{
	*h = (struct t_host){.d = d, .e = e, .setup = s};
	h->memory = malloc(T_MEMORY);
	assert_non_null(h->memory);
	t_fill(h->memory, T_MEMORY, T_BEFORE);
	host_register(h, s->access ? s->access : FI_REMOTE_READ | FI_REMOTE_WRITE, 0x1000);
}

static void host_close(struct t_host *h)
{
	if (h->mr)
		assert_int_equal(fi_close(&h->mr->fid), 0);
}

/* After the endpoint. */
static void host_free(struct t_host *h)
{
	for (int i = 0; i < 4; i++) {
		if (h->cntr[i])
			assert_int_equal(fi_close(&h->cntr[i]->fid), 0);
	}
	free(h->memory);
}

static void check_memory(const struct t_host *h, size_t at, size_t len, unsigned seed)
{
	static unsigned char before[T_MEMORY];

	t_fill(before, sizeof(before), T_BEFORE);
	t_check(h->memory + at, len, seed);
	if (memcmp(h->memory, before, at) || memcmp(h->memory + at + len, before + at + len, T_MEMORY - at - len))
		fail_msg("bytes beside %zu at %zu have changed", len, at);
}

/* The endpoint's when it has been enabled, the registration's as its mode wants it. */
static void bind_counters(struct t_host *h)
{
	static const uint64_t flags[2] = {FI_REMOTE_READ, FI_REMOTE_WRITE};

	for (int i = 0; i < 4; i++) {
		assert_int_equal(fi_cntr_open(h->d->domain, NULL, &h->cntr[i], NULL), 0);
		if (i < 2)
			assert_int_equal(fi_ep_bind(h->e->ep, &h->cntr[i]->fid, flags[i]), 0);
		else if (!(h->d->info->domain_attr->mr_mode & FI_MR_RMA_EVENT))
			assert_int_equal(fi_mr_bind(h->mr, &h->cntr[i]->fid, flags[i - 2]), 0);
	}
	if (h->d->info->domain_attr->mr_mode & FI_MR_RMA_EVENT) {
		assert_int_equal(fi_mr_bind(h->mr, &h->cntr[0]->fid, FI_REMOTE_READ), -FI_EOPBADSTATE);
		assert_int_equal(fi_close(&h->mr->fid), 0);
		host_register(h, FI_REMOTE_READ | FI_REMOTE_WRITE, 0x1000);
	}
}

/* A race detector does not know that the other process has told us: it is shown the lock that orders us and the
 * progress thread. */
static void show_order(struct t_host *h)
{
#ifdef __SANITIZE_THREAD__
	t_drive(h->e->cq);
#else
	(void)h;
#endif
}

static void obey(struct t_host *h, const struct order *o, struct t_answer *a)
{
	show_order(h);
	switch ((enum t_what)o->what) {
	case T_FILL:
		t_fill(h->memory, T_MEMORY, T_BEFORE);
		break;
	case T_CHECK:
		check_memory(h, o->at, o->len, o->seed);
		break;
	case T_COPY:
		memcpy(a->word, h->memory + o->at, sizeof(a->word));
		break;
	case T_ENTRY:
		a->entry = t_wait(h->e->cq, NULL, &a->source);
		break;
	case T_EMPTY:
		t_nothing(h->e->cq, NULL);
		break;
	case T_REGISTER:
		host_register(h, o->at, o->len);
		a->word[0] = region_of(h).base;
		a->word[1] = region_of(h).key;
		break;
	case T_CLOSE:
		assert_int_equal(fi_close(&h->mr->fid), 0);
		h->mr = NULL;
		break;
	case T_BIND:
		bind_counters(h);
		a->word[0] = region_of(h).base;
		a->word[1] = region_of(h).key;
		break;
	case T_COUNT:
		for (int i = 0; i < 4; i++)
			a->word[i] = fi_cntr_read(h->cntr[i]);
		break;
	case T_ADDRESS:
		a->word[0] = (uintptr_t)h->memory;
		break;
	case T_KILL:
		kill(getpid(), SIGKILL);
		break;
	case T_END:
		break;
	}
	show_order(h);
}

struct t_answer t_ask(struct t_user *u, enum t_what what, uint64_t at, uint64_t len, unsigned seed)
{
	struct order o = {what, seed, at, len};
	struct t_answer a = {0};

	if (u->host) {
		obey(u->host, &o, &a);
		return a;
	}
	t_say(u->p, &o, sizeof(o));
	if (what != T_KILL)
		t_hear_driving(u->p, &a, sizeof(a), u->e.cq);
	return a;
}

struct fi_cq_tagged_entry t_done(struct t_user *u)
{
	return t_wait(u->e.cq, NULL, NULL);
}

struct fi_cq_err_entry t_failed(struct t_user *u)
{
	return t_wait_error(u->e.cq, NULL);
}

/* Both processes get this, and the link. */
struct scenario {
	const struct t_setup *setup;
	void (*run)(struct t_user *);
};

static void target(struct t_process *p)
{
	const struct scenario *s = p->arg;
	bool passive = s->setup->progress == FI_PROGRESS_AUTO;
	struct t_domain d;
	struct t_end e;
	struct t_host h;
	struct region r;
	struct order o;

	open_end(&d, &e, s->setup, &(struct t_options){.format = FI_CQ_FORMAT_TAGGED});
	host_open(&h, &d, &e, s->setup);
	t_greet(p, &e);
	r = region_of(&h);
	t_say(p, &r, sizeof(r));
	do {
		struct t_answer a = {0};

		t_hear_driving(p, &o, sizeof(o), passive ? NULL : e.cq);
		obey(&h, &o, &a);
		t_say(p, &a, sizeof(a));
	} while (o.what != T_END);
	t_meet(p, e.cq);
	host_close(&h);
	t_end_close(&e);
	host_free(&h);
	t_domain_close(&d);
}

static void user_open(struct t_user *u, struct t_process *p, const struct t_setup *s)
{
	struct t_options o = s->options;

	*u = (struct t_user){.p = p, .setup = s};
	open_end(&u->d, &u->e, s, &o);
	if (s->cntrs) {
		assert_int_equal(fi_cntr_open(u->d.domain, NULL, &u->reads, NULL), 0);
		assert_int_equal(fi_cntr_open(u->d.domain, NULL, &u->writes, NULL), 0);
		assert_int_equal(fi_ep_bind(u->e.ep, &u->reads->fid, FI_READ), 0);
		assert_int_equal(fi_ep_bind(u->e.ep, &u->writes->fid, FI_WRITE), 0);
	}
}

static void user_close(struct t_user *u)
{
	t_end_close(&u->e);
	if (u->reads) {
		assert_int_equal(fi_close(&u->reads->fid), 0);
		assert_int_equal(fi_close(&u->writes->fid), 0);
	}
}

static void initiator(struct t_process *p)
{
	const struct scenario *s = p->arg;
	struct t_user u;
	struct region r;

	user_open(&u, p, s->setup);
	u.to = t_greet(p, &u.e);
	t_hear(p, &r, sizeof(r));
	u.base = r.base;
	u.key = r.key;
	s->run(&u);
	if (!u.gone) {
		t_ask(&u, T_END, 0, 0, 0);
		t_meet(p, u.e.cq);
	}
	user_close(&u);
	t_domain_close(&u.d);
}

/* One process, whose partner does nothing. */
static void alone(struct t_process *p)
{
	const struct scenario *s = p->arg;
	struct t_host h;
	struct t_user u;
	struct region r;

	unsetenv("FI_ROPEWALK_LINK");
	user_open(&u, p, s->setup);
	host_open(&h, &u.d, &u.e, s->setup);
	r = region_of(&h);
	u.host = &h;
	u.to = t_insert(&u.e, u.e.name);
	u.base = r.base;
	u.key = r.key;
	s->run(&u);
	host_close(&h);
	user_close(&u);
	host_free(&h);
	t_domain_close(&u.d);
}

static void idle(struct t_process *p)
{
	(void)p;
}

void t_with_target(const char *link, const struct t_setup *setup, void (*run)(struct t_user *))
{
	const struct scenario s = {setup, run};

	print_message("           over %s\n", link);
	if (!strcmp(link, "self"))
		t_two(NULL, idle, alone, &s);
	else
		t_two(link, target, initiator, &s);
}
