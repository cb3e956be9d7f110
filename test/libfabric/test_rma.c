/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and writes of another process's memory, and of one's own: each call, over each link. The target looks at all of
 * its memory after each write, so what is written beside is seen too.
 */
#include "fi_target.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA    0x8877665544332211u
#define LONGEST ((size_t)1 << 20)

static const size_t lengths[] = {0, 1, 8, 100, 256, 1000, 4096, 5000, 70000, LONGEST};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Cuts a buffer, and as much of the target's memory in other places, into n pieces. */
static void cut(
	struct t_user *u, void *buf, size_t at, size_t len, struct iovec *iov, struct fi_rma_iov *remote, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t from = len * i / n, to = len * (i + 1) / n;
		size_t rfrom = i ? len * i / n + (len > n) : 0, rto = i + 1 < n ? to + (len > n) : len;

		iov[i] = (struct iovec){(char *)buf + from, to - from};
		remote[i] = (struct fi_rma_iov){u->base + at + rfrom, rto - rfrom, u->key};
	}
}

typedef ssize_t start(struct t_user *u, void *buf, size_t len, size_t at);

static struct fi_msg_rma msg_of(
	struct t_user *u, struct iovec *iov, size_t n, struct fi_rma_iov *remote, size_t ranges, void *buf)
{
	return (struct fi_msg_rma){.msg_iov = iov,
		.iov_count = n,
		.addr = u->to,
		.rma_iov = remote,
		.rma_iov_count = ranges,
		.context = buf,
		.data = DATA};
}

static ssize_t writemsg(struct t_user *u, void *buf, size_t len, size_t at, size_t n, uint64_t flags)
{
	struct iovec iov[8];
	struct fi_rma_iov remote[8];
	struct fi_msg_rma msg;

	cut(u, buf, at, len, iov, remote, n);
	msg = msg_of(u, iov, n, remote, n, buf);
	return fi_writemsg(u->e.ep, &msg, flags);
}

static ssize_t readmsg(struct t_user *u, void *buf, size_t len, size_t at, size_t n, uint64_t flags)
{
	struct iovec iov[8];
	struct fi_rma_iov remote[8];
	struct fi_msg_rma msg;

	cut(u, buf, at, len, iov, remote, n);
	msg = msg_of(u, iov, n, remote, n, buf);
	return fi_readmsg(u->e.ep, &msg, flags);
}

static ssize_t w_write(struct t_user *u, void *buf, size_t len, size_t at)
{
	return fi_write(u->e.ep, buf, len, NULL, u->to, u->base + at, u->key, buf);
}
static ssize_t w_writev(struct t_user *u, void *buf, size_t len, size_t at)
{
	struct fi_rma_iov remote[8];
	struct iovec iov[8];

	cut(u, buf, at, len, iov, remote, 8);
	return fi_writev(u->e.ep, iov, NULL, 8, u->to, u->base + at, u->key, buf);
}
static ssize_t w_writemsg(struct t_user *u, void *buf, size_t len, size_t at)
{
	return writemsg(u, buf, len, at, 1, FI_COMPLETION | FI_TRANSMIT_COMPLETE);
}
static ssize_t w_writemsg8(struct t_user *u, void *buf, size_t len, size_t at)
{
	return writemsg(u, buf, len, at, 8, FI_MORE | FI_DELIVERY_COMPLETE);
}
static ssize_t w_writemsg_all(struct t_user *u, void *buf, size_t len, size_t at)
{
	return writemsg(u, buf, len, at, 2, FI_INJECT | FI_REMOTE_CQ_DATA | FI_FENCE | FI_INJECT_COMPLETE);
}
static ssize_t w_inject(struct t_user *u, void *buf, size_t len, size_t at)
{
	ssize_t rc = fi_inject_write(u->e.ep, buf, len, u->to, u->base + at, u->key);

	if (!rc)
		memset(buf, 0xee, len); /* it is ours again */
	return rc;
}
static ssize_t w_writedata(struct t_user *u, void *buf, size_t len, size_t at)
{
	return fi_writedata(u->e.ep, buf, len, NULL, DATA, u->to, u->base + at, u->key, buf);
}
static ssize_t w_inject_writedata(struct t_user *u, void *buf, size_t len, size_t at)
{
	return fi_inject_writedata(u->e.ep, buf, len, DATA, u->to, u->base + at, u->key);
}
static ssize_t r_read(struct t_user *u, void *buf, size_t len, size_t at)
{
	return fi_read(u->e.ep, buf, len, NULL, u->to, u->base + at, u->key, buf);
}
static ssize_t r_readv(struct t_user *u, void *buf, size_t len, size_t at)
{
	struct fi_rma_iov remote[8];
	struct iovec iov[8];

	cut(u, buf, at, len, iov, remote, 8);
	return fi_readv(u->e.ep, iov, NULL, 8, u->to, u->base + at, u->key, buf);
}
static ssize_t r_readmsg(struct t_user *u, void *buf, size_t len, size_t at)
{
	return readmsg(u, buf, len, at, 1, FI_DELIVERY_COMPLETE | FI_FENCE);
}
static ssize_t r_readmsg8(struct t_user *u, void *buf, size_t len, size_t at)
{
	return readmsg(u, buf, len, at, 8, FI_COMPLETION | FI_MORE);
}

static const struct way {
	const char *name;
	start *start;
	bool read, data, completes;
	size_t most;
} ways[] = {
	{"write", w_write, false, false, true, LONGEST},
	{"writev", w_writev, false, false, true, LONGEST},
	{"writemsg", w_writemsg, false, false, true, LONGEST},
	{"writemsg in 8 pieces", w_writemsg8, false, false, true, LONGEST},
	{"writemsg with all flags", w_writemsg_all, false, true, true, 4096},
	{"inject_write", w_inject, false, false, false, 4096},
	{"writedata", w_writedata, false, true, true, LONGEST},
	{"inject_writedata", w_inject_writedata, false, true, false, 4096},
	{"read", r_read, true, false, true, LONGEST},
	{"readv", r_readv, true, false, true, LONGEST},
	{"readmsg", r_readmsg, true, false, true, LONGEST},
	{"readmsg in 8 pieces", r_readmsg8, true, false, true, LONGEST},
};

/* All that was started before is done: a read comes after it. */
static void settle(struct t_user *u)
{
	char byte;

	t_post(fi_read(u->e.ep, &byte, 1, NULL, u->to, u->base, u->key, &byte), u->e.cq, NULL);
	assert_ptr_equal(t_done(u).op_context, &byte);
}

static void check_data(struct t_user *u, size_t len)
{
	struct t_answer a = t_ask(u, T_ENTRY, 0, 0, 0);

	assert_int_equal(a.entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	assert_int_equal(a.entry.len, len);
	assert_int_equal(a.entry.data, DATA);
	assert_int_equal(a.source, 0); /* its first and only address */
}

static void one_way(struct t_user *u, const struct way *w, size_t len, unsigned seed)
{
	size_t at = 3 * seed % 4001;
	unsigned char *buf = malloc(len + 1);

	if (w->read)
		memset(buf, 0, len);
	else
		t_fill(buf, len, seed);
	t_post(w->start(u, buf, len, at), u->e.cq, NULL);
	if (w->data && u->host)
		check_data(u, len); /* in one queue it comes first */
	if (w->completes) {
		struct fi_cq_tagged_entry e = t_done(u);

		assert_ptr_equal(e.op_context, buf);
		assert_int_equal(e.flags, FI_RMA | (w->read ? FI_READ : FI_WRITE));
	} else if (!w->data) {
		settle(u);
	}
	if (w->data && !u->host)
		check_data(u, len);
	if (w->read) {
		unsigned char *all = malloc(T_MEMORY);

		t_fill(all, T_MEMORY, T_BEFORE);
		if (memcmp(buf, all + at, len))
			fail_msg("%s: %zu bytes from %zu on are not what stands there", w->name, len, at);
		free(all);
	} else {
		t_ask(u, T_CHECK, at, len, seed);
		t_ask(u, T_FILL, 0, 0, 0);
	}
	free(buf);
}

static void all_ways(struct t_user *u)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (size_t n = 0; n < LENGTHS; n++) {
			if (lengths[n] <= ways[i].most)
				one_way(u, &ways[i], lengths[n], (unsigned)(10 + 10 * i + n));
		}
	}
	t_ask(u, T_EMPTY, 0, 0, 0);
}

static void every_way(void **state)
{
	static const struct t_setup setup = {0};

	(void)state;
	for (int i = 0; i < T_LINKS; i++)
		t_with_target(t_links[i], &setup, all_ways);
}

/* The same to a target that calls nothing but reads of its queue when it is asked what came. */
static void a_passive_target(void **state)
{
	static const struct t_setup setup = {.progress = FI_PROGRESS_AUTO, .threading = FI_THREAD_DOMAIN};

	(void)state;
	for (int i = 0; i < T_LINKS; i++)
		t_with_target(t_links[i], &setup, all_ways);
}

/* An access that must be refused: its entry says so, and the memory is as it was. */
static void refused(struct t_user *u, bool read, uint64_t address, size_t len, uint64_t key)
{
	unsigned char *buf = malloc(len + 1);
	struct fi_cq_err_entry e;

	t_fill(buf, len, 77);
	if (read)
		t_post(fi_read(u->e.ep, buf, len, NULL, u->to, address, key, buf), u->e.cq, NULL);
	else
		t_post(fi_write(u->e.ep, buf, len, NULL, u->to, address, key, buf), u->e.cq, NULL);
	e = t_failed(u);
	assert_int_equal(e.err, FI_EACCES);
	assert_ptr_equal(e.op_context, buf);
	assert_int_equal(e.flags, FI_RMA | (read ? FI_READ : FI_WRITE));
	t_check(buf, len, 77);
	t_ask(u, T_CHECK, 0, 0, 0);
	free(buf);
}

static void refusals(struct t_user *u)
{
	static const size_t some[] = {1, 8, 300, 5000, 100000};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		for (int read = 0; read < 2; read++) {
			size_t len = some[i];

			refused(u, read, u->base, len, u->key + 1);
			refused(u, read, u->base + T_MEMORY - len + 1, len, u->key);
			refused(u, read, u->base + T_MEMORY, len, u->key);
			refused(u, read, u->base - 1, len, u->key);
			refused(u, read, UINT64_MAX - len / 2, len, u->key);
			/* Others are not disturbed: the last bytes that there are. */
			one_way(u, &ways[read ? 8 : 0], len, (unsigned)i + 20);
		}
	}
}

static void wrong_ranges(void **state)
{
	static const struct t_setup setup = {0};

	(void)state;
	for (int i = 0; i < T_LINKS; i++)
		t_with_target(t_links[i], &setup, refusals);
}

/* What a registration permits; what happens to its key when it is closed, and when it is another's. */
static void permissions(struct t_user *u)
{
	static const size_t some[] = {8, 5000, 100000};
	struct t_answer a;

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		one_way(u, &ways[0], some[i], 20);
		t_ask(u, T_CLOSE, 0, 0, 0);
		refused(u, false, u->base, some[i], u->key);
		refused(u, true, u->base, some[i], u->key);
		a = t_ask(u, T_REGISTER, FI_REMOTE_READ, 0x1000, 0);
		u->base = a.word[0];
		u->key = a.word[1];
		refused(u, false, u->base, some[i], u->key);
		one_way(u, &ways[8], some[i], 20);
		t_ask(u, T_CLOSE, 0, 0, 0);
		a = t_ask(u, T_REGISTER, FI_REMOTE_WRITE, 0x1000, 0);
		u->key = a.word[1];
		refused(u, true, u->base, some[i], u->key);
		one_way(u, &ways[0], some[i], 20);
		one_way(u, &ways[0], some[i], 21);
		refused(u, true, u->base, some[i], u->key); /* also where the region is known and written directly */
		t_ask(u, T_CLOSE, 0, 0, 0);
		a = t_ask(u, T_REGISTER, 0, 0x1000, 0);
		refused(u, true, u->base, some[i], 0x1000);
		t_ask(u, T_CLOSE, 0, 0, 0);
		a = t_ask(u, T_REGISTER, FI_REMOTE_READ | FI_REMOTE_WRITE, 0x1000, 0);
		u->key = a.word[1];
	}
}

static void closed_and_reused(void **state)
{
	static const struct t_setup setup = {0}, names = {.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY};

	(void)state;
	for (int i = 0; i < T_LINKS; i++) {
		t_with_target(t_links[i], &setup, permissions);
		t_with_target(t_links[i], &names, permissions);
	}
}

/* What is wrong with the call itself is answered by it. */
static void bad_calls(struct t_user *u)
{
	char buf[4097] = {0};
	struct iovec iov[9] = {{buf, 8}};
	struct fi_rma_iov remote[9] = {{u->base, 8, u->key}};
	struct fi_msg_rma msg = msg_of(u, iov, 1, remote, 1, buf);
	struct fi_info *info = fi_dupinfo(u->d.info);
	struct fid_ep *ep;

	assert_int_equal(fi_writemsg(u->e.ep, &msg, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(u->e.ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(u->e.ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	assert_int_equal(fi_inject_write(u->e.ep, buf, 4097, u->to, u->base, u->key), -FI_EMSGSIZE);
	assert_int_equal(fi_writev(u->e.ep, iov, NULL, 9, u->to, u->base, u->key, NULL), -FI_EINVAL);
	msg.rma_iov_count = 9;
	assert_int_equal(fi_writemsg(u->e.ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 1;
	remote[0].len = 7;
	assert_int_equal(fi_writemsg(u->e.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_write(u->e.ep, buf, 8, NULL, 77, u->base, u->key, NULL), -FI_EINVAL);
	assert_int_equal(fi_endpoint(u->d.domain, info, &ep, NULL), 0);
	assert_int_equal(fi_write(ep, buf, 8, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&ep->fid), 0);
	fi_freeinfo(info);
	t_nothing(u->e.cq, NULL);
	t_ask(u, T_CHECK, 0, 0, 0);
}

static void no_reads(struct t_user *u)
{
	char byte = 0;

	assert_int_equal(fi_read(u->e.ep, &byte, 1, NULL, u->to, u->base, u->key, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(
		fi_atomic(u->e.ep, &byte, 1, NULL, u->to, u->base, u->key, FI_UINT8, FI_SUM, NULL), -FI_EOPNOTSUPP);
	t_post(fi_write(u->e.ep, &byte, 1, NULL, u->to, u->base, u->key, NULL), u->e.cq, NULL);
	t_done(u);
}

/* An endpoint that is no target refuses all. */
static void no_target(struct t_user *u)
{
	refused(u, false, u->base, 8, u->key);
	refused(u, true, u->base, 8, u->key);
}

/* One that has said only what may be done to its memory, and sends, reads; and writes, as far as the region lets it. */
static void reads_unasked(struct t_user *u)
{
	char byte = 0;

	t_post(fi_read(u->e.ep, &byte, 1, NULL, u->to, u->base, u->key, NULL), u->e.cq, NULL);
	t_done(u);
	t_check(&byte, 1, T_BEFORE);
	refused(u, false, u->base, 8, u->key);
}

static void refused_calls(void **state)
{
	static const struct t_setup setup = {0}, writes = {.caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE},
				    source = {.caps = FI_RMA | FI_WRITE | FI_READ},
				    unasked = {.caps = FI_MSG | FI_RMA | FI_REMOTE_READ, .access = FI_REMOTE_READ};

	(void)state;
	for (int i = 0; i < T_LINKS; i++) {
		t_with_target(t_links[i], &setup, bad_calls);
		t_with_target(t_links[i], &writes, no_reads);
		t_with_target(t_links[i], &source, no_target);
		t_with_target(t_links[i], &unasked, reads_unasked);
	}
}

static void wait_count(struct t_user *u, struct fid_cntr *cntr, uint64_t count, uint64_t errors)
{
	int64_t end = t_now() + T_PATIENCE;

	while (fi_cntr_read(cntr) < count || fi_cntr_readerr(cntr) < errors) {
		t_drive(u->e.cq);
		if (t_now() > end)
			fail_msg("%llu operations and %llu errors are counted, not %llu and %llu",
				(unsigned long long)fi_cntr_read(cntr), (unsigned long long)fi_cntr_readerr(cntr),
				(unsigned long long)count, (unsigned long long)errors);
	}
	for (int i = 0; i < 50; i++)
		t_drive(u->e.cq);
	assert_int_equal(fi_cntr_read(cntr), count);
	assert_int_equal(fi_cntr_readerr(cntr), errors);
}

/* Counters count each operation, entries are for those that ask for one, and for failures with a context. */
static void selective(struct t_user *u)
{
	char buf[300] = {0};
	struct iovec iov = {buf, 8};
	struct fi_rma_iov remote = {u->base, 8, u->key};
	struct fi_msg_rma msg = msg_of(u, &iov, 1, &remote, 1, &iov);

	t_post(fi_write(u->e.ep, buf, 300, NULL, u->to, u->base, u->key, buf), u->e.cq, NULL);
	t_post(fi_inject_write(u->e.ep, buf, 8, u->to, u->base, u->key), u->e.cq, NULL);
	t_post(fi_read(u->e.ep, buf, 300, NULL, u->to, u->base, u->key, buf), u->e.cq, NULL);
	wait_count(u, u->writes, 2, 0);
	wait_count(u, u->reads, 1, 0);
	t_nothing(u->e.cq, NULL);
	t_post(fi_writemsg(u->e.ep, &msg, FI_COMPLETION), u->e.cq, NULL);
	assert_ptr_equal(t_done(u).op_context, &iov);
	t_post(fi_writemsg(u->e.ep, &msg, 0), u->e.cq, NULL);
	t_post(fi_inject_write(u->e.ep, buf, 8, u->to, u->base, u->key + 1), u->e.cq, NULL);
	t_post(fi_write(u->e.ep, buf, 8, NULL, u->to, u->base, u->key + 1, NULL), u->e.cq, NULL);
	t_post(fi_read(u->e.ep, buf, 8, NULL, u->to, u->base, u->key + 1, buf), u->e.cq, NULL);
	assert_ptr_equal(t_failed(u).op_context, buf);
	wait_count(u, u->writes, 4, 2);
	wait_count(u, u->reads, 1, 1);
	t_nothing(u->e.cq, NULL);
}

static void counted(void **state)
{
	static const struct t_setup setup = {.cntrs = true, .options.bind_flags = FI_SELECTIVE_COMPLETION};

	(void)state;
	for (int i = 0; i < T_LINKS; i++)
		t_with_target(t_links[i], &setup, selective);
}

static void expect_counts(struct t_user *u, uint64_t reads, uint64_t writes)
{
	int64_t end = t_now() + T_PATIENCE;
	struct t_answer a;

	do {
		a = t_ask(u, T_COUNT, 0, 0, 0);
		if (t_now() > end)
			fail_msg("%llu reads, %llu writes; at the registration %llu and %llu",
				(unsigned long long)a.word[0], (unsigned long long)a.word[1],
				(unsigned long long)a.word[2], (unsigned long long)a.word[3]);
	} while (a.word[0] < reads || a.word[1] < writes || a.word[2] < reads || a.word[3] < writes);
	assert_true(a.word[0] == reads && a.word[2] == reads && a.word[1] == writes && a.word[3] == writes);
}

/* The target's counters, of its endpoint (bound late) and of its registration. */
static void remote_counts(struct t_user *u)
{
	static const size_t some[] = {1, 256, 5000, LONGEST};
	struct t_answer a;
	uint64_t n = 0;

	one_way(u, &ways[0], LONGEST,
		5); /* before there are counters: what is known of the region then must be told anew */
	a = t_ask(u, T_BIND, 0, 0, 0);
	u->key = a.word[1];
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		for (int again = 0; again < 2; again++) {
			one_way(u, &ways[2], some[i], 30);
			one_way(u, &ways[8], some[i], 30);
			n++;
			expect_counts(u, n, n);
		}
	}
	refused(u, false, u->base, 8, u->key + 1);
	refused(u, true, u->base, T_MEMORY + 1, u->key);
	expect_counts(u, n, n);
}

static void counted_there(void **state)
{
	static const struct t_setup setup = {0}, events = {.mr_mode = FI_MR_RMA_EVENT},
				    passive = {.progress = FI_PROGRESS_AUTO};

	(void)state;
	for (int i = 0; i < T_LINKS; i++) {
		t_with_target(t_links[i], &setup, remote_counts);
		t_with_target(t_links[i], &events, remote_counts);
	}
	t_with_target("shm", &passive, remote_counts);
}

/* Entries have the format that their queue was opened with. */
static void short_entries(struct t_user *u)
{
	unsigned char entry[sizeof(struct fi_cq_tagged_entry) + 8], byte = 0;
	size_t size = u->setup->options.format == FI_CQ_FORMAT_CONTEXT ? 8
		      : u->setup->options.format == FI_CQ_FORMAT_MSG   ? 24
								       : 40;
	struct fi_cq_msg_entry msg;
	int64_t end = t_now() + T_PATIENCE;

	memset(entry, 0xaa, sizeof(entry));
	t_post(fi_write(u->e.ep, &byte, 1, NULL, u->to, u->base, u->key, &end), u->e.cq, NULL);
	while (fi_cq_read(u->e.cq, entry, 1) == -FI_EAGAIN)
		assert_true(t_now() < end);
	memcpy(&msg, entry, sizeof(msg));
	assert_ptr_equal(msg.op_context, &end);
	if (size > 8)
		assert_int_equal(msg.flags, FI_RMA | FI_WRITE);
	assert_int_equal(entry[size], 0xaa);
}

static void formats(void **state)
{
	static const enum fi_cq_format all[] = {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		t_with_target("shm", &(struct t_setup){.options.format = all[i]}, short_entries);
}

#define SPOT 1024 /* max_order_*_size */

/* Many at once on one spot: each sees those before it, and none of those after. A fence orders what is longer. */
static void ordered(struct t_user *u)
{
	unsigned char *out = malloc(50 * SPOT), *in = malloc(50 * SPOT), *longer = malloc(200000);
	uint64_t word = 0;
	int done = 0;

	for (unsigned i = 0; i < 50; i++) {
		t_fill(out + i * SPOT, SPOT, i);
		t_post(fi_write(u->e.ep, out + i * SPOT, SPOT, NULL, u->to, u->base, u->key, out), u->e.cq, NULL);
		t_post(fi_read(u->e.ep, in + i * SPOT, SPOT, NULL, u->to, u->base, u->key, in), u->e.cq, NULL);
	}
	for (; done < 100; done++)
		t_done(u);
	for (unsigned i = 0; i < 50; i++)
		t_check(in + i * SPOT, SPOT, i);
	for (unsigned i = 0; i < 20; i++) {
		struct iovec iov = {&word, sizeof(word)};
		struct fi_rma_iov remote = {u->base + 150000, sizeof(word), u->key};
		struct fi_msg_rma msg = msg_of(u, &iov, 1, &remote, 1, NULL);

		t_fill(longer, 200000, i);
		t_post(fi_write(u->e.ep, longer, 200000, NULL, u->to, u->base, u->key, NULL), u->e.cq, NULL);
		word = i | 0xabcdef0000000000u;
		t_post(fi_writemsg(u->e.ep, &msg, FI_FENCE), u->e.cq, NULL);
		t_done(u);
		t_done(u);
		assert_int_equal(t_ask(u, T_COPY, 150000, 0, 0).word[0], word);
	}
	free(out);
	free(in);
	free(longer);
}

/* A fenced send comes after the writes before it. */
static void fenced_send(struct t_user *u)
{
	unsigned char *longer = malloc(200000);
	struct iovec iov = {longer, 8};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = u->to, .context = &iov};
	bool waited = false;

	t_fill(longer, 200000, 1);
	t_post(fi_write(u->e.ep, longer, 200000, NULL, u->to, u->base, u->key, longer), u->e.cq, NULL);
	waited = fi_sendmsg(u->e.ep, &msg, FI_FENCE) == -FI_EAGAIN;
	assert_true(waited || u->host);
	if (waited) {
		assert_ptr_equal(t_done(u).op_context, longer);
		t_post(fi_sendmsg(u->e.ep, &msg, FI_FENCE), u->e.cq, NULL);
	}
	free(longer);
}

static void order(void **state)
{
	static const struct t_setup setup = {0};

	(void)state;
	for (int i = 0; i < T_LINKS; i++)
		t_with_target(t_links[i], &setup, ordered);
	t_with_target("udp", &setup, fenced_send);
}

/* Operations towards a target that is killed end in error, those started before and those after. */
static void outlive(struct t_user *u)
{
	static unsigned char buf[LONGEST];
	int64_t end = t_now() + T_PATIENCE, killed;
	int under_way = 0;
	ssize_t rc = 0;
	bool failed = false;

	one_way(u, &ways[0], 100, 5);
	t_ask(u, T_KILL, 0, 0, 0);
	u->gone = true;
	killed = t_now();
	while ((!failed || under_way) && t_now() < end) {
		struct fi_cq_tagged_entry e;
		struct fi_cq_err_entry err = {0};

		if (!failed && under_way < 20) {
			rc = fi_write(u->e.ep, buf, under_way % 2 ? LONGEST : 8, NULL, u->to, u->base, u->key, buf);
			under_way += !rc;
			failed |= rc == -FI_ECONNRESET || rc == -FI_EHOSTUNREACH;
		}
		rc = fi_cq_read(u->e.cq, &e, 1);
		if (rc == 1) {
			under_way--;
		} else if (rc == -FI_EAVAIL) {
			assert_int_equal(fi_cq_readerr(u->e.cq, &err, 0), 1);
			assert_int_equal(err.err, FI_ECONNRESET);
			under_way--;
			failed = true;
		}
	}
	print_message("           known after %lld ms\n", (long long)(t_now() - killed));
	assert_true(failed);
	assert_int_equal(under_way, 0);
}

static void killed_target(void **state)
{
	static const struct t_setup setup = {0};

	(void)state;
	for (int i = 0; i < T_LINKS - 1; i++)
		t_with_target(t_links[i], &setup, outlive);
}

/* Two writes of 8 bytes, a read of 100, an atomic of 16. */
static void some_of_each(struct t_user *u)
{
	uint64_t buf[16] = {0};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_write(u->e.ep, buf, 8, NULL, u->to, u->base, u->key, buf), 0);
		t_done(u);
	}
	assert_int_equal(fi_read(u->e.ep, buf, 100, NULL, u->to, u->base, u->key, buf), 0);
	t_done(u);
	assert_int_equal(fi_atomic(u->e.ep, buf, 2, NULL, u->to, u->base, u->key, FI_UINT64, FI_SUM, buf), 0);
	t_done(u);
}

/* FI_ROPEWALK_STATS: what the endpoint has done to others' memory is said when it is closed; nothing, if nothing. */
static void statistics(void **state)
{
	static const char line[] = "of others' memory read 1 times, 100 bytes; written 2 times, 16 bytes; changed by 1 "
				   "atomics, 16 bytes";
	static const struct t_setup setup = {.caps = 0};

	(void)state;
	for (int i = 0; i < T_LINKS; i++) {
		char text[8192] = "", *first;
		int fd[2], kept = dup(STDERR_FILENO);
		ssize_t n;

		if (!strcmp(t_links[i], "self"))
			continue;
		assert_int_equal(pipe(fd), 0);
		dup2(fd[1], STDERR_FILENO);
		setenv("FI_ROPEWALK_STATS", "yes", 1);
		t_with_target(t_links[i], &setup, some_of_each);
		unsetenv("FI_ROPEWALK_STATS");
		dup2(kept, STDERR_FILENO);
		n = read(fd[0], text, sizeof(text) - 1);
		for (int k = 0; k < 2; k++)
			close(fd[k]);
		close(kept);
		first = n > 0 ? strstr(text, line) : NULL;
		if (!first || strstr(first + 1, "of others' memory"))
			fail_msg("it says: %s", text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way),
		cmocka_unit_test(a_passive_target),
		cmocka_unit_test(wrong_ranges),
		cmocka_unit_test(closed_and_reused),
		cmocka_unit_test(refused_calls),
		cmocka_unit_test(counted),
		cmocka_unit_test(counted_there),
		cmocka_unit_test(formats),
		cmocka_unit_test(order),
		cmocka_unit_test(killed_target),
		cmocka_unit_test(statistics),
	};

	return cmocka_run_group_tests_name("libfabric/rma", tests, NULL, NULL);
}
