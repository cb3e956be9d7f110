/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_PEER: another provider, which the test plays (fi_owner.h), has the completions and the receives of an endpoint.
 *
 *     process 1: owner --- our endpoint ---- shm, udp or tcp ---- our endpoint --- owner: process 2
 */
#include "fi_owner.h"
#include "fi_pair.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define TAG 0x1122334455667788u

static const char *const links[] = {"shm", "udp", "tcp"};
/* Empty, in a ring's line, in lines, in pieces, and what waits at the sender. */
static const size_t lengths[] = {0, 8, 1000, 40000, 300000};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static unsigned char out[300000], in[LENGTHS][300000], in_plain[LENGTHS][300000];
static struct t_domain domain;
static struct o_owner owner;

#define SOURCE 4242 /* what stands for the other process where it has sent something, as lnx wants it */

/* The number to send to. */
static fi_addr_t insert(const void *name)
{
	fi_addr_t number = SOURCE;

	assert_int_equal(fi_av_insert(owner.av, name, 1, &number, FI_AV_USER_ID, NULL), 1);
	assert_int_not_equal(number, SOURCE);
	return number;
}

/* The number to send to the other process by; NULL: to ourselves. */
static fi_addr_t begin(struct t_process *p, uint64_t bind_flags)
{
	unsigned char name[sizeof(owner.name)];
	struct fi_info *hints = t_hints();

	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_PEER | FI_AV_USER_ID;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	t_domain_open_with(&domain, hints);
	assert_true(domain.info->caps & FI_PEER);
	assert_int_equal(domain.info->rx_attr->total_buffered_recv, 0); /* lnx refuses such a promise */
	o_open(&owner, &domain, bind_flags);
	if (!p)
		return insert(owner.name);
	t_say(p, owner.name, sizeof(name));
	t_hear(p, name, sizeof(name));
	return insert(name);
}

static void end(void)
{
	o_close(&owner);
	t_domain_close(&domain);
}

#define send_to(call) \
	do { \
		ssize_t ret_; \
		while ((ret_ = (call)) == -FI_EAGAIN) \
			o_drive(&owner); \
		assert_int_equal(ret_, 0); \
	} while (0)

/* Both processes come here, and each drives its owner until the other is here. */
static void meet(struct t_process *p)
{
	char byte = 0;

	t_say(p, &byte, 1);
	while (recv(p->fd, &byte, 1, MSG_DONTWAIT) != 1)
		o_drive(&owner);
}

static void wait_queued(unsigned count)
{
	int64_t limit = t_now() + T_PATIENCE;

	while (o_queued(&owner) < count) {
		o_drive(&owner);
		if (t_now() > limit)
			fail_msg("%u of %u messages have come", o_queued(&owner), count);
	}
}

static void check_sent(const void *context, uint64_t kind)
{
	struct o_done d = o_wait(&owner);

	assert_int_equal(d.err, 0);
	assert_ptr_equal(d.entry.op_context, context);
	assert_int_equal(d.entry.flags, FI_SEND | kind);
}

static void check_received(const void *buf, size_t len, uint64_t kind, fi_addr_t source)
{
	struct o_done d = o_wait(&owner);

	assert_int_equal(d.err, 0);
	assert_ptr_equal(d.entry.op_context, buf);
	assert_ptr_equal(d.entry.buf, buf);
	assert_int_equal(d.entry.flags, FI_RECV | kind);
	assert_int_equal(d.entry.len, len);
	assert_int_equal(d.source, source);
	if (kind & FI_TAGGED)
		assert_int_equal(d.entry.tag, TAG);
	if (kind & FI_REMOTE_CQ_DATA)
		assert_int_equal(d.entry.data, 99);
	t_check(buf, len, (unsigned)len);
}

/* What is sent: every length, tagged with data and plain. */
static void sends(struct t_process *p)
{
	fi_addr_t to = begin(p, 0);

	meet(p);
	for (size_t i = 0; i < LENGTHS; i++) {
		t_fill(out, lengths[i], (unsigned)lengths[i]);
		send_to(fi_tsenddata(owner.ep, out, lengths[i], NULL, 99, to, TAG, &domain));
		check_sent(&domain, FI_TAGGED);
		send_to(fi_send(owner.ep, out, lengths[i], NULL, to, &owner));
		check_sent(&owner, FI_MSG);
	}
	meet(p);
	end();
}

static void receives_posted(struct t_process *p)
{
	fi_addr_t from = SOURCE;

	begin(p, 0);
	for (size_t i = 0; i < LENGTHS; i++) {
		fi_addr_t any = i & 1 ? from : FI_ADDR_UNSPEC;

		o_receive(&owner, O_TAGGED, in[i], lengths[i], any, TAG & ~(uint64_t)0xff, 0xff, 0);
		o_receive(&owner, O_PLAIN, in_plain[i], sizeof(in_plain[i]), any, 0, 0, 0);
	}
	meet(p);
	for (size_t i = 0; i < LENGTHS; i++) {
		check_received(in[i], lengths[i], FI_TAGGED | FI_REMOTE_CQ_DATA, from);
		check_received(in_plain[i], lengths[i], FI_MSG, from);
	}
	assert_null(o_first_queued(&owner));
	meet(p);
	o_check_all_back(&owner);
	end();
}

/* Messages go into the owner's receives, and are told of in the owner's queue. */
static void test_posted(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		t_two(links[i], sends, receives_posted, NULL);
}

/* All of them first, one send each; what cannot leave completes once it is received. */
static void sends_ahead(struct t_process *p)
{
	static unsigned char all[LENGTHS][300000];
	fi_addr_t to = begin(p, 0);

	for (size_t i = 0; i < LENGTHS; i++) {
		t_fill(all[i], lengths[i], (unsigned)lengths[i]);
		send_to(fi_tsenddata(owner.ep, all[i], lengths[i], NULL, 99, to, TAG, all[i]));
		send_to(fi_send(owner.ep, all[i], lengths[i], NULL, to, all[i]));
	}
	for (size_t i = 0; i < 2 * LENGTHS; i++)
		assert_int_equal(o_wait(&owner).err, 0);
	meet(p);
	end();
}

static void receives_late(struct t_process *p)
{
	fi_addr_t from = SOURCE;

	begin(p, 0);
	wait_queued(2 * LENGTHS);
	assert_true(o_first_queued(&owner)->entry.flags & FI_REMOTE_CQ_DATA);
	if (FI_MAJOR_VERSION > 1)
		assert_int_equal(o_data(o_first_queued(&owner)), 99);
	assert_int_equal(owner.written, 0);
	for (size_t i = 0; i < LENGTHS; i++) {
		o_receive(&owner, O_TAGGED, in[i], lengths[i], from, TAG, 0, 0);
		check_received(in[i], lengths[i], FI_TAGGED | FI_REMOTE_CQ_DATA, from);
	}
	for (size_t i = 0; i < LENGTHS; i++) {
		o_receive(&owner, O_PLAIN, in[i], lengths[i], FI_ADDR_UNSPEC, 0, 0, 0);
		check_received(in[i], lengths[i], FI_MSG, from);
	}
	meet(p);
	o_check_all_back(&owner);
	end();
}

/* Messages that nobody waits for are held until the owner starts them. */
static void test_queued(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		t_two(links[i], sends_ahead, receives_late, NULL);
}

#define FLOOD 100 /* of 40000 bytes: more than the credit of a peer */

static void floods(struct t_process *p)
{
	fi_addr_t to = begin(p, 0);

	for (unsigned i = 0; i < FLOOD; i++)
		send_to(fi_tsend(owner.ep, out, 40000, NULL, to, TAG, out));
	for (unsigned i = 0; i < FLOOD; i++)
		check_sent(out, FI_TAGGED);
	meet(p);
	end();
}

static void discards(struct t_process *p)
{
	begin(p, 0);
	wait_queued(FLOOD);
	while (o_queued(&owner))
		o_discard(&owner, o_first_queued(&owner));
	meet(p);
	o_check_all_back(&owner);
	assert_int_equal(owner.written, 0);
	end();
}

/* What the owner discards is told of by nobody, and its sender goes on. */
static void test_discarded(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		t_two(links[i], floods, discards, NULL);
}

static void receives_too_little(struct t_process *p)
{
	fi_addr_t from = SOURCE;
	struct o_done d;

	begin(p, FI_SELECTIVE_COMPLETION);
	for (size_t i = 0; i < LENGTHS; i++) /* the empty one is told of only if that is asked for */
		o_receive(&owner, O_TAGGED, in[i], lengths[i] / 2, from, TAG, 0, i ? 0 : FI_COMPLETION);
	meet(p);
	check_received(in[0], 0, FI_TAGGED | FI_REMOTE_CQ_DATA, from);
	for (size_t i = 1; i < LENGTHS; i++) {
		d = o_wait(&owner);
		assert_int_equal(d.err, FI_ETRUNC);
		assert_ptr_equal(d.entry.op_context, in[i]);
		assert_int_equal(d.entry.len, lengths[i] / 2);
		assert_int_equal(d.overflow, lengths[i] - lengths[i] / 2);
	}
	for (size_t i = 0; i < LENGTHS; i++)
		o_receive(&owner, O_PLAIN, in[i], sizeof(in[i]), from, 0, 0, 0); /* nor are these */
	wait_queued(0);
	meet(p);
	o_check_all_back(&owner);
	end();
}

/*
 * A receive that is too short is told of as an error; of others with FI_COMPLETION alone, where the owner
 * wants it so.
 */
static void test_too_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		t_two(links[i], sends, receives_too_little, NULL);
}

static void to_itself(struct t_process *p)
{
	fi_addr_t me = begin(NULL, 0);

	(void)p;
	for (size_t i = 0; i < LENGTHS; i++) {
		const size_t len = lengths[i];

		t_fill(out, len, (unsigned)len);
		o_receive(&owner, O_TAGGED, in[0], len, SOURCE, TAG, 0, 0);
		send_to(fi_tsenddata(owner.ep, out, len, NULL, 99, me, TAG, out));
		while (owner.written < owner.taken + 2)
			o_drive(&owner);
		if (owner.done[owner.taken].entry.flags & FI_SEND) {
			check_sent(out, FI_TAGGED);
			check_received(in[0], len, FI_TAGGED | FI_REMOTE_CQ_DATA, SOURCE);
		} else {
			check_received(in[0], len, FI_TAGGED | FI_REMOTE_CQ_DATA, SOURCE);
			check_sent(out, FI_TAGGED);
		}
		send_to(fi_inject(owner.ep, out, len < 100 ? len : 100, me));
		wait_queued(1);
		o_receive(&owner, O_PLAIN, in[0], 100, FI_ADDR_UNSPEC, 0, 0, 0);
		assert_int_equal(o_wait(&owner).err, 0);
	}
	o_check_all_back(&owner);
	send_to(fi_tsend(owner.ep, out, 300000, NULL, me, TAG, out)); /* ends with the endpoint */
	end();
}

static void idle(struct t_process *p)
{
	(void)p;
}

/* A message to oneself is offered by the next progress, not from within its send. */
static void test_self(void **state)
{
	(void)state;
	t_two(NULL, to_itself, idle, NULL);
}

/* A registration's counter, for what is written there; bound before it is enabled. */
static struct fid_mr *counted_memory(struct fid_cntr *cntr)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(domain.domain, in[0], 8, FI_REMOTE_WRITE, 0, 7, FI_RMA_EVENT, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	return mr;
}

static void drive_by(struct fid_cntr *cntr)
{
	owner.calling = true;
	fi_cntr_read(cntr);
	owner.calling = false;
}

static void beside_counters(struct t_process *p)
{
	fi_addr_t me = begin(NULL, 0);
	int64_t limit = t_now() + T_PATIENCE;
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	(void)p;
	assert_int_equal(fi_cntr_open(domain.domain, NULL, &cntr, NULL), 0);
	mr = counted_memory(cntr);
	send_to(fi_inject(owner.ep, out, 8, me));
	while (!o_queued(&owner)) {
		drive_by(cntr);
		assert_true(t_now() < limit);
	}
	o_receive(&owner, O_PLAIN, in[0], 100, FI_ADDR_UNSPEC, 0, 0, 0);
	assert_int_equal(o_wait(&owner).err, 0);
	o_close(&owner);
	o_open(&owner, &domain, 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	o_close(&owner);
	drive_by(cntr);
	assert_int_equal(fi_close(&cntr->fid), 0);
	t_domain_close(&domain);
}

/*
 * A registration's counter drives an endpoint with the owner's receives, whichever of the two came first, and no longer
 * than both are there.
 */
static void test_beside_counters(void **state)
{
	(void)state;
	t_two(NULL, beside_counters, idle, NULL);
}

static void sends_and_dies(struct t_process *p)
{
	fi_addr_t to = begin(p, 0);

	send_to(fi_tsend(owner.ep, out, 8, NULL, to, TAG, out));
	send_to(fi_tsend(owner.ep, out, sizeof(out), NULL, to, TAG, out));
	while (recv(p->fd, out, 1, MSG_DONTWAIT) != 1)
		o_drive(&owner);
	raise(SIGKILL);
}

static void starts_after_death(struct t_process *p)
{
	struct o_done d;
	char byte;

	begin(p, 0);
	wait_queued(2);
	t_say(p, "", 1);
	assert_int_equal(read(p->fd, &byte, 1), 0);
	o_receive(&owner, O_TAGGED, in[0], 8, FI_ADDR_UNSPEC, TAG, 0, 0);
	assert_int_equal(o_wait(&owner).err, 0);
	o_receive(&owner, O_TAGGED, in[1], sizeof(in[1]), FI_ADDR_UNSPEC, TAG, 0, 0);
	d = o_wait(&owner);
	assert_int_not_equal(d.err, 0);
	assert_ptr_equal(d.entry.op_context, in[1]);
	o_check_all_back(&owner);
	end();
}

/* Of what a dead sender has announced, what was brought along is there, and the rest ends with an error. */
static void test_death(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		t_two(links[i], sends_and_dies, starts_after_death, NULL);
}

static void closes_with_queued(struct t_process *p)
{
	begin(p, 0);
	wait_queued(3);
	meet(p);
	end();
	assert_int_equal(o_queued(&owner), 3); /* they stay the owner's */
}

static void sends_three(struct t_process *p)
{
	fi_addr_t to = begin(p, 0);

	send_to(fi_tinject(owner.ep, out, 8, to, TAG));
	send_to(fi_tsend(owner.ep, out, 40000, NULL, to, TAG, out));
	send_to(fi_tsend(owner.ep, out, sizeof(out), NULL, to, TAG, out));
	meet(p);
	end();
}

/* An endpoint may be closed while messages wait for their owner. */
static void test_closed(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		t_two(links[i], sends_three, closes_with_queued, NULL);
}

static void close_both(struct o_owner *o)
{
	assert_int_equal(fi_close(&o->ep->fid), 0);
	assert_int_equal(fi_close(&o->srx_ep->fid), 0);
	o->told = NULL;
}

static void closes_when_told(struct t_process *p)
{
	begin(p, 0);
	wait_queued(3);
	meet(p);
	for (unsigned i = 0; i < 3; i++)
		owner.entries[i].entry.addr = FI_ADDR_UNSPEC;
	owner.told = close_both;
	insert(owner.name);
	if (owner.told) /* the libfabric has no such call */
		close_both(&owner);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(owner.entries[i].entry.addr, FI_ADDR_UNSPEC);
	assert_int_equal(fi_close(&owner.cq->fid), 0);
	assert_int_equal(fi_close(&owner.av->fid), 0);
	t_domain_close(&domain);
}

/* So it may by another thread, while the owner is told of a new address and asks whose they are. */
static void test_closed_when_told(void **state)
{
	(void)state;
	t_two(NULL, sends_three, closes_when_told, NULL);
}

static void sends_long(struct t_process *p)
{
	fi_addr_t to = begin(p, 0);

	send_to(fi_tsend(owner.ep, out, sizeof(out), NULL, to, TAG, out));
	o_wait(&owner); /* well, or not */
	end();
}

static void closes_with_given(struct t_process *p)
{
	begin(p, 0);
	o_receive(&owner, O_TAGGED, in[0], sizeof(in[0]), FI_ADDR_UNSPEC, TAG, 0, 0);
	while (owner.entries[0].state == O_POSTED)
		o_drive(&owner);
	end();
	assert_int_equal(owner.entries[0].state, O_BACK);
	assert_int_equal(owner.written, 1);
	assert_true(!owner.done[0].err || owner.done[0].err == FI_ECANCELED);
}

/* A receive that a message is on its way into goes back to its owner when the endpoint is closed. */
static void test_given_back(void **state)
{
	(void)state;
	t_two("udp", sends_long, closes_with_given, NULL);
}

static void sends_as_stranger(struct t_process *p)
{
	fi_addr_t to = begin(p, 0);

	send_to(fi_tinject(owner.ep, out, 8, to, TAG));
	meet(p);
	end();
}

static void inserts_late(struct t_process *p)
{
	unsigned char name[sizeof(owner.name)];

	begin(NULL, 0);
	t_say(p, owner.name, sizeof(name));
	t_hear(p, name, sizeof(name));
	wait_queued(1);
	assert_int_equal(o_first_queued(&owner)->entry.addr, FI_ADDR_UNSPEC);
	insert(name);
	if (FI_MAJOR(fi_version()) > 1) /* before that the owner has no call to be told by */
		assert_int_equal(o_first_queued(&owner)->entry.addr, SOURCE);
	o_receive(&owner, O_TAGGED, in[0], 8, FI_MAJOR(fi_version()) > 1 ? SOURCE : FI_ADDR_UNSPEC, TAG, 0, 0);
	assert_int_equal(o_wait(&owner).source, SOURCE);
	meet(p);
	end();
}

/* The owner hears who has sent what came before its sender was known. */
static void test_strangers(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		t_two(links[i], sends_as_stranger, inserts_late, NULL);
}

static void refuses(struct t_process *p)
{
	struct fi_peer_srx_context srx_context = {.size = sizeof(srx_context)};
	struct fi_peer_cq_context cq_context = {.size = sizeof(cq_context)};
	struct fi_cntr_attr cntr_attr = {.flags = FI_PEER};
	struct fi_eq_attr eq_attr = {.flags = FI_PEER};
	struct fi_cq_attr cq_attr = o_cq_attr();
	struct fi_rx_attr srx_attr = o_srx_attr();
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry entry;
	struct fid_ep *ep;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_eq *eq;
	fi_addr_t from;

	(void)p;
	begin(NULL, 0);
	assert_int_equal(fi_cq_read(owner.cq, &entry, 1), -FI_ENOSYS);
	assert_int_equal(fi_cq_readfrom(owner.cq, &entry, 1, &from), -FI_ENOSYS);
	assert_int_equal(fi_cq_readerr(owner.cq, &err, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_sread(owner.cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_sreadfrom(owner.cq, &entry, 1, &from, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_signal(owner.cq), -FI_ENOSYS);
	assert_int_equal(fi_recv(owner.ep, in, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_trecv(owner.ep, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_trecv(owner.srx_ep, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_cq_open(domain.domain, &cq_attr, &cq, &cq_context), -FI_EINVAL);
	assert_int_equal(fi_cq_open(domain.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	assert_int_equal(fi_srx_context(domain.domain, &srx_attr, &ep, &srx_context), -FI_EINVAL);
	assert_int_equal(fi_srx_context(domain.domain, &srx_attr, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_cntr_open(domain.domain, &cntr_attr, &cntr, NULL), -FI_EINVAL);
	assert_int_equal(fi_eq_open(domain.fabric, &eq_attr, &eq, NULL), -FI_EINVAL);
	assert_int_equal(fi_endpoint(domain.domain, domain.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &owner.srx_ep->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &owner.srx_ep->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &owner.srx_ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	end();
}

#if FI_MAJOR_VERSION >= 2
struct count {
	struct fid_peer_cntr cntr;
	unsigned good, bad;
};

static void inc(struct fid_peer_cntr *cntr)
{
	((struct count *)cntr)->good++;
}

static void incerr(struct fid_peer_cntr *cntr)
{
	((struct count *)cntr)->bad++;
}

static void counts(struct t_process *p)
{
	static struct fi_ops_cntr_owner ops = {.size = sizeof(ops), .inc = inc, .incerr = incerr};
	struct count count = {.cntr.owner_ops = &ops};
	struct fi_peer_cntr_context context = {.size = sizeof(context), .cntr = &count.cntr};
	struct fi_cntr_attr attr = {.flags = FI_PEER};
	struct fid_cntr *cntr;
	fi_addr_t me = begin(NULL, 0);

	(void)p;
	assert_int_equal(fi_cntr_open(domain.domain, &attr, &cntr, &context), 0);
	assert_int_equal(fi_ep_bind(owner.ep, &cntr->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_cntr_set(cntr, 1), -FI_ENOSYS);
	assert_int_equal(fi_cntr_wait(cntr, 1, 0), -FI_ENOSYS);
	o_receive(&owner, O_PLAIN, in[0], 8, FI_ADDR_UNSPEC, 0, 0, 0);
	o_receive(&owner, O_PLAIN, in[0], 4, FI_ADDR_UNSPEC, 0, 0, 0);
	send_to(fi_send(owner.ep, out, 8, NULL, me, out));
	send_to(fi_send(owner.ep, out, 8, NULL, me, out));
	owner.calling = true;
	while (owner.written < 4)
		assert_int_equal(fi_cntr_read(cntr), 0);
	assert_int_equal(count.good, 3);
	assert_int_equal(count.bad, 1);
	assert_int_equal(fi_close(&owner.ep->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* What a peer counter counts, its owner counts. */
static void test_counted(void **state)
{
	(void)state;
	t_two(NULL, counts, idle, NULL);
}
#endif

static void test_refused(void **state)
{
	(void)state;
	t_two(NULL, refuses, idle, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posted),
		cmocka_unit_test(test_queued),
		cmocka_unit_test(test_discarded),
		cmocka_unit_test(test_too_short),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_beside_counters),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_closed_when_told),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_strangers),
#if FI_MAJOR_VERSION >= 2
		cmocka_unit_test(test_counted),
#endif
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
