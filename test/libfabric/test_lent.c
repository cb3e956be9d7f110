/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shared receive context of ours that another provider imports (fi_peer(3)): the test plays that provider, the guest,
 * whose messages take receives in one order with those that come by our own endpoint; and then real ones do.
 */
#include "fi_pair.h"

#include <rdma/fi_ext.h>
#include <stdlib.h>
#include <unistd.h>
#if __has_include(<rdma/providers/fi_peer.h>)
#include <rdma/providers/fi_peer.h>
#endif

enum space { TAGGED, PLAIN };

/* A message of the guest's. */
struct message {
	struct fi_peer_rx_entry *entry;
	const char *text;
	enum space space;
	enum { NEW, QUEUED, RECEIVED, DISCARDED } state;
	void *context; /* of the receive that it went into, and where it was put */
	char *place;
	uint64_t flags;
};

static struct t_domain domain;

/* The context with an endpoint of ours, somebody who sends to that, and the guest. */
static struct {
	struct fid_ep *srx;
	struct t_end end, sender;
	fi_addr_t to;
	struct fid_peer_srx *lent;
	bool keeps;       /* the guest does not free entries of its own accord */
	int cannot_start; /* errno */
	struct message *gives_up; /* once, from within start */
	bool closes;              /* from within start or discard, once, in vain */
	unsigned calls;           /* start and discard */
} our;

/* The guest's side. */

static struct fi_peer_rx_entry *asked; /* by `get` */

static int get(enum space space, fi_addr_t from, size_t size, uint64_t tag)
{
#if FI_MAJOR_VERSION < 2
	if (space == TAGGED)
		return our.lent->owner_ops->get_tag(our.lent, from, tag, &asked);
	return our.lent->owner_ops->get_msg(our.lent, from, size, &asked);
#else
	struct fi_peer_match_attr m = {.addr = from, .msg_size = size, .tag = tag};

	return (space == TAGGED ? our.lent->owner_ops->get_tag : our.lent->owner_ops->get_msg)(our.lent, &m, &asked);
#endif
}

static void back(struct message *m)
{
	our.lent->owner_ops->free_entry(m->entry);
}

static void receive(struct message *m)
{
	size_t len = strlen(m->text);

	assert_int_equal(m->entry->count, 1);
	assert_true(m->entry->iov[0].iov_len >= len);
	assert_int_equal(m->entry->flags & (FI_RECV | FI_TAGGED | FI_MSG),
		FI_RECV | (m->space == TAGGED ? FI_TAGGED : FI_MSG));
	m->context = m->entry->context;
	m->flags = m->entry->flags;
	m->place = m->entry->iov[0].iov_base;
	memcpy(m->place, m->text, len);
	m->state = RECEIVED;
	if (!our.keeps)
		back(m);
}

static void try_to_close(void)
{
	if (our.closes)
		assert_int_equal(fi_close(&our.lent->ep_fid.fid), -FI_EBUSY);
	our.closes = false;
}

static int start(struct fi_peer_rx_entry *entry)
{
	struct message *m = entry->peer_context;

	our.calls++;
	assert_ptr_equal(m->entry, entry);
	assert_int_equal(m->state, QUEUED);
	try_to_close();
	if (our.cannot_start)
		return -our.cannot_start;
	if (our.gives_up)
		back(our.gives_up);
	our.gives_up = NULL;
	receive(m);
	return 0;
}

static int discard(struct fi_peer_rx_entry *entry)
{
	struct message *m = entry->peer_context;

	our.calls++;
	assert_int_equal(m->state, QUEUED);
	m->state = DISCARDED;
	try_to_close();
	if (our.keeps) /* some providers do, others do not */
		back(m);
	return 0;
}

static struct fi_ops_srx_peer peer_ops = {
	.size = sizeof(peer_ops),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};

static void queue(struct message *m)
{
	m->entry->peer_context = m;
	m->state = QUEUED;
	assert_int_equal((m->space == TAGGED ? our.lent->owner_ops->queue_tag
					     : our.lent->owner_ops->queue_msg)(m->entry),
		0);
}

/* A message comes to the guest. */
static void comes(struct message *m, enum space space, uint64_t tag, const char *text)
{
	int err = get(space, 1, strlen(text), tag);

	*m = (struct message){.entry = asked, .space = space, .text = text};
	assert_ptr_equal(m->entry->srx, our.lent);
	if (!err) {
		receive(m);
		return;
	}
	assert_int_equal(err, -FI_ENOENT);
	assert_int_equal(m->entry->tag, tag);
	queue(m);
}

/* The domain, and our side. */

static struct fid_peer_srx *lend(struct fid_ep *srx, uint64_t flags)
{
	struct fid *fid;

	assert_int_equal(fi_export_fid(&srx->fid, flags, &fid, &our), 0);
	assert_ptr_equal(fid->context, &our);
	return (struct fid_peer_srx *)fid;
}

static int open_domain(void **state)
{
	struct t_options o = {0};

	(void)state;
	memset(&our, 0, sizeof(our));
	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	assert_int_equal(fi_srx_context(domain.domain, NULL, &our.srx, NULL), 0);
	o.srx = our.srx;
	t_end_open(&our.end, &domain, &o);
	t_end_open(&our.sender, &domain, NULL);
	our.to = t_insert(&our.sender, our.end.name);
	our.lent = lend(our.srx, 0);
	our.lent->peer_ops = &peer_ops;
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_end_close(&our.sender);
	t_end_close(&our.end);
	assert_int_equal(fi_close(&our.srx->fid), -FI_EBUSY);
	if (our.lent)
		assert_int_equal(fi_close(&our.lent->ep_fid.fid), 0);
	assert_int_equal(fi_close(&our.srx->fid), 0);
	t_domain_close(&domain);
	return 0;
}

static void post(void *buf, size_t len, uint64_t tag)
{
	assert_int_equal(fi_trecv(our.srx, buf, len, NULL, FI_ADDR_UNSPEC, tag, 0, buf), 0);
}

/* One comes by our endpoint. */
static void send_own(uint64_t tag, const char *text)
{
	t_post(fi_tinject(our.sender.ep, text, strlen(text), our.to, tag), our.sender.cq, our.end.cq);
}

static void own_received(void *context, const char *text)
{
	struct fi_cq_tagged_entry e = t_wait(our.end.cq, our.sender.cq, NULL);

	assert_ptr_equal(e.op_context, context);
	assert_int_equal(e.len, strlen(text));
	assert_memory_equal(context, text, e.len);
}

static void guest_received(const struct message *m, void *context)
{
	assert_int_equal(m->state, RECEIVED);
	assert_ptr_equal(m->context, context);
	assert_memory_equal(m->place, m->text, strlen(m->text));
}

/* Each takes the first receive that fits, whoever brings it; our queue tells of our own alone. */
static void posted(void **state)
{
	struct message m[3];
	char in[5][16] = {{0}};

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		post(in[i], sizeof(in[i]), i == 1 ? 2 : 1);
	assert_int_equal(fi_recv(our.srx, in[4], sizeof(in[4]), NULL, FI_ADDR_UNSPEC, in[4]), 0);
	comes(&m[0], TAGGED, 1, "one");
	guest_received(&m[0], in[0]);
	send_own(1, "two");
	own_received(in[2], "two");
	comes(&m[1], TAGGED, 1, "three");
	guest_received(&m[1], in[3]);
	comes(&m[2], PLAIN, 0, "four");
	guest_received(&m[2], in[4]);
	send_own(2, "five");
	own_received(in[1], "five");
	assert_int_equal(our.calls, 0);
	t_nothing(our.end.cq, our.sender.cq);
}

static void wait_own_kept(uint64_t tag)
{
	struct fi_msg_tagged peek = {.tag = tag};
	int64_t end = t_now() + T_PATIENCE;

	for (;;) {
		struct fi_cq_tagged_entry e;
		struct fi_cq_err_entry err = {0};
		ssize_t n;

		assert_int_equal(fi_trecvmsg(our.srx, &peek, FI_PEEK), 0);
		n = fi_cq_read(our.end.cq, &e, 1);
		if (n == 1)
			return;
		assert_int_equal(n, -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(our.end.cq, &err, 0), 1);
		assert_int_equal(err.err, FI_ENOMSG);
		t_drive(our.sender.cq);
		assert_true(t_now() < end);
	}
}

/* What waits is received in the order in which it came, by whichever way; many are found as one is. */
static void waits(void **state)
{
	struct message m[3], many[40];
	char in[4][16] = {{0}};

	(void)state;
	comes(&m[0], TAGGED, 1, "first");
	send_own(1, "second");
	send_own(50, "which comes after that");
	wait_own_kept(50);
	comes(&m[1], TAGGED, 1, "third");
	comes(&m[2], PLAIN, 0, "plain");
	for (unsigned i = 0; i < 40; i++)
		comes(&many[i], TAGGED, 100 + i, "one of many");
	assert_int_equal(our.calls, 0);
	for (unsigned i = 0; i < 3; i++)
		post(in[i], sizeof(in[i]), 1);
	guest_received(&m[0], in[0]);
	own_received(in[1], "second");
	guest_received(&m[1], in[2]);
	assert_int_equal(fi_recv(our.srx, in[3], sizeof(in[3]), NULL, FI_ADDR_UNSPEC, in[3]), 0);
	guest_received(&m[2], in[3]);
	for (unsigned i = 40; i-- > 0;) {
		post(in[0], sizeof(in[0]), 100 + i);
		guest_received(&many[i], in[0]);
	}
	assert_int_equal(our.calls, 43);
}

/* A receive is posted while the guest is about to queue: neither waits for the other. */
static void posted_meanwhile(void **state)
{
	struct message m = {.space = TAGGED, .text = "meanwhile"};
	char in[16];

	(void)state;
	assert_int_equal(get(TAGGED, 1, 9, 5), -FI_ENOENT);
	m.entry = asked;
	post(in, sizeof(in), 5);
	queue(&m);
	guest_received(&m, in);
}

static void peek(uint64_t tag, uint64_t flags, void *context)
{
	struct fi_msg_tagged msg = {.tag = tag, .context = context};
	struct fi_cq_tagged_entry e;

	assert_int_equal(fi_trecvmsg(our.srx, &msg, FI_PEEK | flags), 0);
	e = t_wait(our.end.cq, our.sender.cq, NULL);
	assert_ptr_equal(e.op_context, context);
	assert_int_equal(e.tag, tag);
}

/* Peek, claim and discard; whether the guest frees what it discards or not. */
static void peeks(void **state)
{
	struct message m;
	char in[16];
	const struct iovec iov = {in, sizeof(in)};
	struct fi_msg_tagged claim = {.msg_iov = &iov, .iov_count = 1, .tag = 7, .context = in};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		our.keeps = i;
		our.calls = 0;
		comes(&m, TAGGED, 7, "looked at");
		peek(7, 0, &m);
		assert_int_equal(our.calls, 0);
		peek(7, FI_CLAIM, in);
		assert_int_equal(fi_trecvmsg(our.srx, &claim, FI_CLAIM), 0);
		guest_received(&m, in);
		if (our.keeps)
			back(&m);
		comes(&m, TAGGED, 7, "dropped");
		peek(7, FI_DISCARD, &m);
		assert_int_equal(m.state, DISCARDED);
		comes(&m, TAGGED, 7, "claimed, and dropped");
		peek(7, FI_CLAIM, in);
		assert_int_equal(fi_trecvmsg(our.srx, &claim, FI_CLAIM | FI_DISCARD), 0);
		assert_ptr_equal(t_wait(our.end.cq, our.sender.cq, NULL).op_context, in);
		assert_int_equal(m.state, DISCARDED);
		assert_int_equal(our.calls, 3);
	}
}

/* A buffer for many is shared by both, and released when the last of its messages is there. */
static void multi_recv(void **state)
{
	static char in[200];
	const struct iovec iov = {in, sizeof(in)};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = in};
	struct fi_cq_tagged_entry e;
	struct message m[3];
	char text[61];

	(void)state;
	memset(text, 'x', 60);
	text[60] = 0;
	our.keeps = true;
	comes(&m[0], PLAIN, 0, text);
	assert_int_equal(fi_recvmsg(our.srx, &msg, FI_MULTI_RECV), 0);
	guest_received(&m[0], in);
	assert_ptr_equal(m[0].place, in);
	t_post(fi_inject(our.sender.ep, text, 60, our.to), our.sender.cq, our.end.cq);
	e = t_wait(our.end.cq, our.sender.cq, NULL);
	assert_ptr_equal(e.buf, in + 60);
	assert_int_equal(e.flags & FI_MULTI_RECV, 0);
	comes(&m[1], PLAIN, 0, text);
	assert_ptr_equal(m[1].place, in + 120);
	comes(&m[2], PLAIN, 0, text);
	assert_int_equal(m[2].state, QUEUED);
	back(&m[1]);
	t_nothing(our.end.cq, our.sender.cq);
	back(&m[0]);
	e = t_wait(our.end.cq, our.sender.cq, NULL);
	assert_ptr_equal(e.op_context, in);
	assert_int_equal(e.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	back(&m[2]); /* which waits: it is withdrawn */
	assert_int_equal(fi_recv(our.srx, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(m[2].state, QUEUED);
}

/*
 * A receive was found for a message that the guest gives up before it is told of that: it ends, and the buffer that it
 * was a part of with its last message.
 */
static void given_up(void **state)
{
	static char in[140];
	const struct iovec iov = {in, sizeof(in)};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = in};
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct message m[2];
	char text[61];

	(void)state;
	memset(text, 'x', 60);
	text[60] = 0;
	for (unsigned i = 0; i < 2; i++)
		comes(&m[i], PLAIN, 0, text);
	our.gives_up = &m[1];
	assert_int_equal(fi_recvmsg(our.srx, &msg, FI_MULTI_RECV), 0);
	guest_received(&m[0], in);
	assert_int_equal(our.calls, 1);
	err = t_wait_error(our.end.cq, our.sender.cq);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, in);
	assert_int_equal(err.flags & FI_MULTI_RECV, 0);
	e = t_wait(our.end.cq, our.sender.cq, NULL);
	assert_ptr_equal(e.op_context, in);
	assert_int_equal(e.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	t_nothing(our.end.cq, our.sender.cq);
}

/* While the guest is told to drop a message, or to start one, the loan does not end. */
static void closed_in_call(void **state)
{
	struct message m[2];
	char in[16];

	(void)state;
	our.closes = true;
	comes(&m[0], TAGGED, 1, "dropped");
	comes(&m[1], TAGGED, 2, "waits");
	peek(1, FI_DISCARD, &m);
	assert_int_equal(m[0].state, DISCARDED);
	our.closes = true;
	post(in, sizeof(in), 2);
	assert_false(our.closes);
	guest_received(&m[1], in);
}

/* Its flags say which receives ask to be told of: all, or with selective completion those that do. */
static void selects(void **state)
{
	struct message m;
	char in[16];
	const struct iovec iov = {in, sizeof(in)};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .tag = 1};
	struct fid *fid;

	(void)state;
	assert_int_equal(fi_export_fid(&our.srx->fid, FI_SOURCE, &fid, NULL), -FI_EBADFLAGS);
	for (unsigned i = 0; i < 4; i++) {
		bool selective = i / 2, asks = i % 2;

		assert_int_equal(fi_close(&our.lent->ep_fid.fid), 0);
		our.lent = lend(our.srx, selective ? FI_SELECTIVE_COMPLETION : 0);
		our.lent->peer_ops = &peer_ops;
		assert_int_equal(fi_trecvmsg(our.srx, &msg, asks ? FI_COMPLETION : 0), 0);
		comes(&m, TAGGED, 1, "flags");
		assert_int_equal(!!(m.flags & FI_COMPLETION), !selective || asks);
	}
}

/* What cannot be started ends in error, as what the guest has when the loan ends; what waits is gone then. */
static void ends(void **state)
{
	struct fi_cq_err_entry err;
	struct message m[3];
	char in[3][16];

	(void)state;
	our.cannot_start = FI_EIO;
	comes(&m[0], TAGGED, 1, "not startable");
	post(in[0], sizeof(in[0]), 1);
	err = t_wait_error(our.end.cq, our.sender.cq);
	assert_int_equal(err.err, FI_EIO);
	assert_ptr_equal(err.op_context, in[0]);
	our.keeps = true;
	post(in[1], sizeof(in[1]), 2);
	comes(&m[1], TAGGED, 2, "kept for ever");
	guest_received(&m[1], in[1]);
	comes(&m[2], TAGGED, 3, "waits for ever");
	assert_int_equal(fi_close(&our.lent->ep_fid.fid), 0);
	our.lent = NULL;
	err = t_wait_error(our.end.cq, our.sender.cq);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, in[1]);
	post(in[2], sizeof(in[2]), 3);
	send_own(3, "for the other");
	own_received(in[2], "for the other");
	our.lent = lend(our.srx, 0);
}

/* What is lent is no context to bind to an endpoint of ours. */
static void not_ours(void **state)
{
	struct fi_info *info = fi_dupinfo(domain.info);
	struct fid_ep *ep;

	(void)state;
	assert_int_equal(fi_endpoint(domain.domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &our.lent->ep_fid.fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	fi_freeinfo(info);
}

#if FI_MAJOR_VERSION >= 2
static fi_addr_t known_now(struct fi_peer_rx_entry *entry)
{
	return ((struct message *)entry->peer_context)->text[0] == 'k' ? 33 : FI_ADDR_UNSPEC;
}

/* The guest gets to know who has sent what waits. */
static void unknown_senders(void **state)
{
	static const char *const texts[] = {"known now", "unknown", "known too"};
	struct message m[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(get(TAGGED, FI_ADDR_UNSPEC, 9, i), -FI_ENOENT);
		m[i] = (struct message){.entry = asked, .space = TAGGED, .text = texts[i]};
		queue(&m[i]);
	}
	our.lent->owner_ops->foreach_unspec_addr(our.lent, known_now);
	assert_int_equal(m[0].entry->addr, 33);
	assert_int_equal(m[1].entry->addr, FI_ADDR_UNSPEC);
	assert_int_equal(m[2].entry->addr, 33);
}
#endif

/* Real guests. */

#define ROUNDS 60
static const size_t lengths[] = {0, 8, 300, 5000, 100000};
#define LENGTH(round) (lengths[(round) % (sizeof(lengths) / sizeof(lengths[0]))])

/* An endpoint of another provider, or of ours in a domain of its own. */
struct other {
	struct t_domain d;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *imported;
	unsigned char name[256];
};

static bool is_there(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int err;

	hints->fabric_attr->prov_name = strdup(provider);
	err = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return !err;
}

static void open_other(struct other *o, const char *provider, struct fid_peer_srx *lent)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_rx_attr srx_attr = {.op_flags = FI_PEER};
	struct fi_peer_srx_context context = {.size = sizeof(context), .srx = lent};
	size_t len = sizeof(o->name);

	memset(o, 0, sizeof(*o));
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->av_type = FI_AV_TABLE;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &o->d.info), 0);
	fi_freeinfo(hints);
	assert_int_equal(fi_fabric(o->d.info->fabric_attr, &o->d.fabric, NULL), 0);
	assert_int_equal(fi_domain(o->d.fabric, o->d.info, &o->d.domain, NULL), 0);
	assert_int_equal(fi_cq_open(o->d.domain, &cq_attr, &o->cq, NULL), 0);
	assert_int_equal(fi_av_open(o->d.domain, &av_attr, &o->av, NULL), 0);
	assert_int_equal(fi_endpoint(o->d.domain, o->d.info, &o->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	if (lent) {
		assert_int_equal(fi_srx_context(o->d.domain, &srx_attr, &o->imported, &context), 0);
		/* libfabric 1.17's shm makes no object of its own for it. */
		assert_int_equal(fi_ep_bind(o->ep, o->imported ? &o->imported->fid : &lent->ep_fid.fid, 0), 0);
	}
	assert_int_equal(fi_enable(o->ep), 0);
	assert_int_equal(fi_getname(&o->ep->fid, o->name, &len), 0);
}

static void close_other(struct other *o)
{
	assert_int_equal(fi_close(&o->ep->fid), 0);
	if (o->imported)
		assert_int_equal(fi_close(&o->imported->fid), 0);
	assert_int_equal(fi_close(&o->av->fid), 0);
	assert_int_equal(fi_close(&o->cq->fid), 0);
	t_domain_close(&o->d);
}

/* Odd rounds go by the other provider. */
static void sends_by_both(struct t_process *p)
{
	static unsigned char out[100000];
	struct other other;
	struct t_end own;
	fi_addr_t to[2];
	unsigned char name[sizeof(other.name)];
	char byte;

	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	t_end_open(&own, &domain, NULL);
	open_other(&other, p->arg, NULL);
	t_hear(p, name, sizeof(own.name));
	to[0] = t_insert(&own, name);
	t_hear(p, name, sizeof(name));
	assert_int_equal(fi_av_insert(other.av, name, 1, &to[1], 0, NULL), 1);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct fid_cq *cq = i % 2 ? other.cq : own.cq;
		struct fid_ep *ep = i % 2 ? other.ep : own.ep;

		t_hear_driving(p, &byte, 1, own.cq);
		t_fill(out, LENGTH(i), i);
		t_post(fi_tsend(ep, out, LENGTH(i), NULL, to[i % 2], i / 4, NULL), cq, NULL);
		t_wait(cq, NULL, NULL);
	}
	t_hear_driving(p, &byte, 1, own.cq);
	close_other(&other);
	t_end_close(&own);
	t_domain_close(&domain);
}

/* Of four rounds two are received by receives that are posted before, two by others that come later. */
static void receives_of_both(struct t_process *p)
{
	static unsigned char in[ROUNDS][100000];
	struct t_options o = {0};
	struct other other;
	struct fid_peer_srx *lent;
	struct fid_ep *srx;
	struct t_end own;
	char byte = 0;

	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	assert_int_equal(fi_srx_context(domain.domain, NULL, &srx, NULL), 0);
	o.srx = srx;
	t_end_open(&own, &domain, &o);
	lent = lend(srx, 0);
	open_other(&other, p->arg, lent);
	t_say(p, own.name, sizeof(own.name));
	t_say(p, other.name, sizeof(other.name));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct fi_cq_tagged_entry e;
		bool early = i / 2 % 2;

		if (early)
			assert_int_equal(fi_trecv(srx, in[i], LENGTH(i), NULL, FI_ADDR_UNSPEC, i / 4, 0, in[i]), 0);
		t_say(p, &byte, 1);
		for (unsigned k = 0; k < 3000 && !early; k++) {
			t_drive(own.cq);
			t_drive(other.cq);
		}
		if (!early)
			assert_int_equal(fi_trecv(srx, in[i], LENGTH(i), NULL, FI_ADDR_UNSPEC, i / 4, 0, in[i]), 0);
		e = i % 2 ? t_wait(other.cq, own.cq, NULL) : t_wait(own.cq, other.cq, NULL);
		assert_ptr_equal(e.op_context, in[i]);
		assert_int_equal(e.len, LENGTH(i));
		assert_int_equal(e.tag, i / 4);
		t_check(in[i], LENGTH(i), i);
	}
	t_say(p, &byte, 1);
	close_other(&other);
	t_end_close(&own);
	assert_int_equal(fi_close(&lent->ep_fid.fid), 0);
	assert_int_equal(fi_close(&srx->fid), 0);
	t_domain_close(&domain);
}

/* The guest is our own provider, in another domain. */
static void guest_is_ropewalk(void **state)
{
	(void)state;
	t_two(NULL, sends_by_both, receives_of_both, "ropewalk");
}

/* The guest is libfabric's shm. */
static void guest_is_shm(void **state)
{
	(void)state;
	if (!is_there("shm"))
		skip();
	t_two(NULL, sends_by_both, receives_of_both, "shm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(posted, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(waits, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(posted_meanwhile, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(peeks, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(multi_recv, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(given_up, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(closed_in_call, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(selects, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(ends, open_domain, close_domain),
		cmocka_unit_test_setup_teardown(not_ours, open_domain, close_domain),
#if FI_MAJOR_VERSION >= 2
		cmocka_unit_test_setup_teardown(unknown_senders, open_domain, close_domain),
#endif
		cmocka_unit_test(guest_is_ropewalk),
		cmocka_unit_test(guest_is_shm),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
