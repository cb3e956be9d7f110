/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations between two adapters, over UDP and on a TCP connection: what each does, in which order, and
 * what is refused.
 *
 * Links: udp, tcp.
 */
#define _GNU_SOURCE /* REG_ERR */
#include "channel_adapter/world.h"

#include "watched.h"

static const size_t lengths[] = {0, 1, 3, PMTU - 1, PMTU, PMTU + 1, 2 * PMTU, 2 * PMTU + 1, 70000};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static uint64_t there(size_t at)
{
	return (uintptr_t)far.in + at;
}

/* S0-1: with UC far has sent nothing, whatever it was sent. */
static void far_is_silent(void)
{
	struct rwk_adapter_counters c;

	rwk_adapter_get_counters(far.adapter, &c);
	assert_int_equal(c.packets_out, 0);
}

/* S3-1, S3-9, S4-5: a Send goes where the target has posted a receive, in pieces there and here, at each length. */
static void send_to_receive(enum rwk_qp_type type)
{
	ends_open(type);
	for (unsigned i = 0; i < LENGTHS; i++) {
		size_t n = lengths[i];
		struct rwk_sge from[3] = {{near.out, n / 3, rwk_mr_key(near.out_mr)}, {near.out + n / 3, 0, 0},
			{near.out + n / 3, n - n / 3, rwk_mr_key(near.out_mr)}};
		struct rwk_sge to[2] = {{far.in + 50, n / 2, rwk_mr_key(far.in_mr)},
			{far.in + 50 + n / 2, n - n / 2 + 8, rwk_mr_key(far.in_mr)}};
		struct rwk_receive receive = {.id = i, .sge = to, .sge_count = 2};
		struct rwk_request send = {.id = 100 + i, .sge = from, .sge_count = 3, .imm = 0xabcd0000 + i};
		struct rwk_wc wc;

		send.flags = i & 1 ? RWK_REQUEST_IMM | RWK_REQUEST_SOLICITED : 0;
		memset(far.in, 0xee, REGION);
		assert_int_equal(rwk_qp_post_receive(far.qp, &receive), 0);
		assert_int_equal(rwk_qp_post(near.qp, &send), 0);
		wc = ends_await(&far, far.receive_cq);
		assert_true(wc.type == RWK_WC_RECEIVE && wc.id == i && !wc.status && wc.length == n);
		assert_int_equal(wc.has_imm, i & 1);
		assert_int_equal(wc.solicited, i & 1);
		assert_int_equal(wc.imm, i & 1 ? 0xabcd0000 + i : 0);
		assert_memory_equal(far.in + 50, near.out, n);
		assert_true(far.in[49] == 0xee && far.in[50 + n] == 0xee);
		wc = ends_await(&near, near.send_cq);
		assert_true(wc.type == RWK_WC_SEND && wc.id == 100 + i && !wc.status && wc.length == n);
	}
	if (type == RWK_QP_UC)
		far_is_silent();
	ends_close();
}

static void send_rc(void **state)
{
	(void)state;
	send_to_receive(RWK_QP_RC);
}

static void send_uc(void **state)
{
	(void)state;
	send_to_receive(RWK_QP_UC);
}

/* S3-2, S4-15: a Write goes where its sender says; the target hears of it only with an immediate. */
static void write_to(enum rwk_qp_type type)
{
	ends_open(type);
	for (unsigned i = 0; i < LENGTHS; i++) {
		struct rwk_sge sge = {near.out, lengths[i], rwk_mr_key(near.out_mr)};
		struct rwk_request write = {.type = RWK_REQUEST_WRITE,
			.sge = &sge,
			.sge_count = 1,
			.imm = i,
			.remote = there(9),
			.key = rwk_mr_key(far.in_mr)};
		struct rwk_wc wc;

		memset(far.in, 0xee, REGION);
		assert_int_equal(rwk_qp_post(near.qp, &write), 0);
		wc = ends_await(&near, near.send_cq);
		assert_true(wc.type == RWK_WC_WRITE && !wc.status && wc.length == lengths[i]);
		ends_receive(&far, 7, 0);
		write.flags = RWK_REQUEST_IMM;
		assert_int_equal(rwk_qp_post(near.qp, &write), 0);
		wc = ends_await(&far, far.receive_cq);
		assert_true(wc.type == RWK_WC_RECEIVE_WRITE && wc.id == 7 && wc.has_imm && wc.imm == i);
		assert_int_equal(wc.length, lengths[i]);
		assert_memory_equal(far.in + 9, near.out, lengths[i]);
		assert_true(far.in[8] == 0xee && far.in[9 + lengths[i]] == 0xee);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	}
	ends_quiet();
	if (type == RWK_QP_UC)
		far_is_silent();
	ends_close();
}

static void write_rc(void **state)
{
	(void)state;
	write_to(RWK_QP_RC);
}

static void write_uc(void **state)
{
	(void)state;
	write_to(RWK_QP_UC);
}

/* Near's request of that type and length, to the watched page. */
static void watch_request(enum rwk_request_type type, size_t len, const struct rwk_mr *mr)
{
	watched_begin();
	assert_int_equal(ends_request(&near, type, len, (uintptr_t)watched.page, rwk_mr_key(mr)), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	watched_end();
}

/*
 * A program may wait for a word, take it away and wait for the next: it is written once. It may change one that is
 * being read: what is read is no mixture, so it is read once.
 */
static void words(void **state)
{
	struct rwk_mr *mr;

	(void)state;
	watched_open();
	if (!watched.page)
		skip();
	ends_open(RWK_QP_RC);
	assert_int_equal(
		rwk_mr_register(far.pd, watched.page, watched.length, ACCESS | RWK_ACCESS_LOCAL_WRITE, &mr), 0);
	for (size_t len = 1; len <= 16; len *= 2) {
		watch_request(RWK_REQUEST_WRITE, len, mr);
		assert_memory_equal(watched.page, near.out, len);
		assert_int_equal(watched.stores, 1);
		memset(near.out, 0xee, len);
		watch_request(RWK_REQUEST_READ, len, mr);
		assert_memory_equal(near.out, watched.page, len);
		assert_int_equal(watched.loads, 1);
	}
	rwk_mr_deregister(mr);
	ends_close();
	watched_close();
}

/* Packets of both ends for 200 messages of that length, each received before the next but `ahead` is sent. */
static uint64_t packets_for(enum rwk_qp_type type, size_t len, unsigned ahead)
{
	struct rwk_adapter_counters n, f;
	unsigned sent = 0, received = 0;

	ends_open(type);
	while (received < 200) {
		for (; sent < 200 && sent - received < ahead; sent++) {
			ends_receive(&far, sent, len);
			assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, len, 0, 0), 0);
		}
		assert_int_equal(ends_await(&far, far.receive_cq).status, 0);
		assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		received++;
	}
	ends_quiet();
	assert_int_equal(ends_lost(&far), 0);
	rwk_adapter_get_counters(near.adapter, &n);
	rwk_adapter_get_counters(far.adapter, &f);
	ends_close();
	return n.packets_out + f.packets_out;
}

/* S0-14: the same load takes UC as many packets as there are pieces, and RC more. */
static void fewer_packets(void **state)
{
	static const size_t len[] = {8, PMTU, 5 * PMTU, 10 * PMTU}; /* no more than any socket has room for */

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned ahead = 1; ahead <= 8; ahead += 7) {
			uint64_t pieces = 200 * ((len[i] + PMTU - 1) / PMTU);
			uint64_t uc = packets_for(RWK_QP_UC, len[i], ahead), rc = packets_for(RWK_QP_RC, len[i], ahead);

			print_message("200 Sends of %zu bytes, %u at once: UC %llu packets, RC %llu\n", len[i], ahead,
				(unsigned long long)uc, (unsigned long long)rc);
			assert_int_equal(uc, pieces);
			assert_true(rc > uc);
		}
	}
}

static size_t requests_for(size_t len)
{
	return len ? (len - 1) / (32 * PMTU) + 1 : 1;
}

/* S3-3, S3-10: Reads, of each length, are always answered; one request asks for as much as 32 packets. */
static void reads(void **state)
{
	struct rwk_qp_info before, after;
	struct rwk_wc wc;

	(void)state;
	ends_open(RWK_QP_RC);
	for (unsigned i = 0; i < LENGTHS; i++) {
		for (size_t k = 0; k < REGION; k++)
			far.in[k] = (uint8_t)(k * 11 + i);
		memset(near.out, 0xee, REGION);
		rwk_qp_query(near.qp, &before);
		assert_int_equal(ends_request(&near, RWK_REQUEST_READ, lengths[i], there(3), rwk_mr_key(far.in_mr)), 0);
		wc = ends_await(&near, near.send_cq);
		assert_true(wc.type == RWK_WC_READ && !wc.status && wc.length == lengths[i]);
		rwk_qp_query(near.qp, &after);
		if (after.sent_again == before.sent_again) /* loopback, too, may be late */
			assert_int_equal(after.packets_out - before.packets_out, requests_for(lengths[i]));
		assert_memory_equal(near.out, far.in + 3, lengths[i]);
		assert_int_equal(near.out[lengths[i]], 0xee);
	}
	ends_quiet();
	ends_close();
}

static uint64_t atomic(enum rwk_request_type type, uint64_t swap_add, uint64_t compare)
{
	struct rwk_sge sge = {near.out, 8, rwk_mr_key(near.out_mr)};
	struct rwk_request r = {.type = type,
		.sge = &sge,
		.sge_count = 1,
		.remote = there(16),
		.key = rwk_mr_key(far.in_mr),
		.swap_add = swap_add,
		.compare = compare};
	struct rwk_wc wc;
	uint64_t before;

	assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	wc = ends_await(&near, near.send_cq);
	assert_true(!wc.status && wc.length == 8 && wc.type == (int)type);
	memcpy(&before, near.out, 8);
	return before;
}

/* S3-4, S3-5, S3-11: what atomics do there, and what they bring back. */
static void atomics(void **state)
{
	uint64_t *value;

	(void)state;
	ends_open(RWK_QP_RC);
	value = (uint64_t *)(far.in + 16);
	*value = 0x1122334455667788;
	assert_int_equal(atomic(RWK_REQUEST_FETCH_ADD, 0x10, 0), 0x1122334455667788);
	assert_int_equal(*value, 0x1122334455667798);
	assert_int_equal(atomic(RWK_REQUEST_FETCH_ADD, UINT64_MAX, 0), 0x1122334455667798);
	assert_int_equal(*value, 0x1122334455667797);
	assert_int_equal(atomic(RWK_REQUEST_COMPARE_SWAP, 5, 0x1122334455667796), 0x1122334455667797);
	assert_int_equal(*value, 0x1122334455667797);
	assert_int_equal(atomic(RWK_REQUEST_COMPARE_SWAP, 5, 0x1122334455667797), 0x1122334455667797);
	assert_int_equal(*value, 5);
	assert_true(far.in[15] == 0xee && far.in[24] == 0xee);
	ends_close();
}

/* S3-6 over UC: the Write is dropped without a word, and what follows comes. */
static void denied_uc(void **state)
{
	struct rwk_qp_info info;

	(void)state;
	ends_open(RWK_QP_UC);
	ends_receive(&far, 1, 10);
	assert_int_equal(ends_request(&near, RWK_REQUEST_WRITE, 5000, there(0), rwk_mr_key(far.in_mr) + 1), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	assert_int_equal(ends_request(&near, RWK_REQUEST_WRITE, 5000, there(REGION - 4999), rwk_mr_key(far.in_mr)), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 10, 0, 0), 0);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 10);
	for (size_t k = 10; k < REGION; k++)
		assert_int_equal(far.in[k], 0xee);
	rwk_qp_query(far.qp, &info);
	assert_int_equal(info.bad_access, 2);
	assert_int_equal(info.state, RWK_QPS_RTS);
	assert_int_equal(ends_lost(&far), 0);
	far_is_silent();
	ends_close();
}

/* S4-3: many outstanding, Reads and atomics among them, complete in the order of posting; so do receives. */
static void in_order(void **state)
{
	static const uint8_t types[] = {RWK_REQUEST_SEND, RWK_REQUEST_READ, RWK_REQUEST_WRITE, RWK_REQUEST_FETCH_ADD};
	struct rwk_wc wc;

	(void)state;
	ends_open(RWK_QP_RC);
	for (unsigned i = 0; i < DEPTH / 4; i++)
		ends_receive(&far, i, 8);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(ends_request(&near, types[i % 4], 8, there(8 * i), rwk_mr_key(far.in_mr)), 0);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), -EAGAIN);
	for (unsigned i = 0; i < DEPTH; i++) {
		wc = ends_await(&near, near.send_cq);
		assert_true(!wc.status && wc.type == types[i % 4]);
	}
	for (unsigned i = 0; i < DEPTH / 4; i++)
		assert_int_equal(ends_await(&far, far.receive_cq).id, i);
	assert_int_equal(ends_request(&near, RWK_REQUEST_WRITE, 8, there(0), rwk_mr_key(far.in_mr)), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	ends_close();
}

/* RC waits for a receive that is posted late; UC drops what finds none, counts it, and tells who asked (S0-11). */
static void no_receive(void **state)
{
	struct rwk_qp_info info;

	(void)state;
	ends_open(RWK_QP_RC);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 3000, 0, 0), 0);
	ends_quiet();
	rwk_qp_query(far.qp, &info);
	assert_true(info.rnr_out > 0);
	ends_receive(&far, 1, 3000);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 3000);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	assert_memory_equal(far.in, near.out, 3000);
	ends_close();

	ends_open(RWK_QP_UC);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 3000, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	ends_quiet();
	ends_receive(&far, 1, 3000);
	ends_quiet();
	assert_int_equal(ends_lost(&far), 1);
	rwk_qp_query(far.qp, &info);
	assert_int_equal(info.lost, 1);
	far_is_silent();
	ends_close();
}

/* A Send that is longer than its receive: an error for both, and no byte behind the receive. */
static void too_long(void **state)
{
	(void)state;
	ends_open(RWK_QP_RC);
	ends_receive(&far, 1, 1500);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 1501, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, -EINVAL);
	assert_int_equal(ends_await(&far, far.receive_cq).status, -EMSGSIZE);
	assert_int_equal(far.in[1500], 0xee);
	ends_close();
}

/* S0-7, S4-4: what is refused when it is posted. */
static void refused(void **state)
{
	struct rwk_sge sge[RWK_SGE_MAX + 1];
	struct rwk_request r = {.sge = sge};
	struct rwk_receive v = {.sge = sge};
	struct rwk_mr *mr;

	(void)state;
	ends_open(RWK_QP_UC);
	for (unsigned type = RWK_REQUEST_READ; type <= RWK_REQUEST_FETCH_ADD; type++)
		assert_int_equal(ends_request(&near, type, 8, there(0), rwk_mr_key(far.in_mr)), -EOPNOTSUPP);
	assert_int_equal(ends_request(&near, RWK_REQUEST_FETCH_ADD + 1, 8, there(0), 0), -EINVAL);
	ends_close();

	ends_open(RWK_QP_RC);
	assert_int_equal(rwk_mr_register(near.pd, near.out, REGION, RWK_ACCESS_READ, &mr), 0);
	for (unsigned i = 0; i <= RWK_SGE_MAX; i++)
		sge[i] = (struct rwk_sge){near.out, 8, rwk_mr_key(near.out_mr)};
	r.sge_count = v.sge_count = RWK_SGE_MAX + 1;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EINVAL);
	assert_int_equal(rwk_qp_post_receive(near.qp, &v), -EINVAL);
	r.sge_count = v.sge_count = 1;
	sge[0].key = rwk_mr_key(mr); /* memory that is not to be written to */
	assert_int_equal(rwk_qp_post_receive(near.qp, &v), -EACCES);
	r.type = RWK_REQUEST_READ;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EACCES);
	sge[0].key = rwk_mr_key(far.in_mr);
	r.type = RWK_REQUEST_SEND;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EACCES);
	sge[0] = (struct rwk_sge){near.out + REGION - 7, 8, rwk_mr_key(near.out_mr)};
	assert_int_equal(rwk_qp_post(near.qp, &r), -EACCES);
	sge[0] = (struct rwk_sge){near.out, 4, rwk_mr_key(near.out_mr)};
	r.type = RWK_REQUEST_FETCH_ADD;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EMSGSIZE);
	r.type = RWK_REQUEST_SEND;
	r.flags = 1u << 30;
	assert_int_equal(rwk_qp_post(near.qp, &r), -EINVAL);
	rwk_mr_deregister(mr);
	assert_int_equal(rwk_mr_register(near.pd, near.out, 8, 1 << 7, &mr), -EINVAL);
	ends_quiet();
	ends_close();
}

/* What may be posted in each state, and what comes back. */
static void posting(enum rwk_qp_type type)
{
	struct rwk_receive receive = {0};
	struct rwk_wc wc;

	ends_open_one(&near, 1, type);
	assert_int_equal(rwk_qp_post_receive(near.qp, &receive), -EINVAL);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), -EINVAL);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	ends_receive(&near, 1, 8);
	ends_receive(&near, 2, 8);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), -EINVAL);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_ERR, NULL), 0);
	ends_receive(&near, 3, 8);
	for (unsigned i = 1; i <= 3; i++) {
		wc = ends_await(&near, near.receive_cq);
		assert_true(wc.id == i && wc.status == -ECANCELED);
	}
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, -ECANCELED);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RESET, NULL), 0);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		ends_receive(&near, 4, 8);
	assert_int_equal(rwk_qp_post_receive(near.qp, &receive), -EAGAIN);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RESET, NULL), 0);
	ends_quiet();
	ends_close_one(&near);
}

static void states(void **state)
{
	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_UC; type++)
		posting(type);
}

/* RC notices that nobody answers; how often it asks is its retry count. */
static void nobody(void **state)
{
	struct rwk_qp_attr attr = {.peer_port = 9, .peer_qpn = 5, .retry = 2, .timeout_ns = 1000000};
	struct rwk_qp_info info;

	(void)state;
	ends_open_one(&near, 1, RWK_QP_RC);
	ends_ip(attr.peer_ip, 2);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTR, &attr), 0);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTS, NULL), 0);
	ends_receive(&near, 1, 8);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, -ETIMEDOUT);
	assert_int_equal(ends_await(&near, near.receive_cq).status, -ECANCELED);
	rwk_qp_query(near.qp, &info);
	assert_int_equal(info.sent_again, 2);
	assert_int_equal(info.error, -ETIMEDOUT);
	ends_close_one(&near);
}

/* S4-1, S4-2: objects belong to one adapter; there are as many qps and regions as it says. */
static void limits(void **state)
{
	static struct rwk_qp *qps[RWK_QPS_MAX];
	static struct rwk_mr *mrs[RWK_MRS_MAX];
	struct rwk_qp_create_attr create = {.type = RWK_QP_UC, .send_max = 1, .receive_max = 1};
	struct rwk_cq *cq;
	unsigned n = 0;

	(void)state;
	ends_open(RWK_QP_RC);
	create.send_cq = create.receive_cq = far.send_cq;
	assert_int_equal(rwk_qp_create(near.pd, &create, &qps[0]), -EINVAL);
	create.send_cq = create.receive_cq = near.send_cq;
	create.send_max = 0;
	assert_int_equal(rwk_qp_create(near.pd, &create, &qps[0]), -EINVAL);
	create.send_max = 1;
	for (; n < RWK_QPS_MAX - 1; n++) {
		assert_int_equal(rwk_qp_create(near.pd, &create, &qps[n]), 0);
		assert_in_range(rwk_qp_number(qps[n]), 2, 0xfffffe);
		assert_int_not_equal(rwk_qp_number(qps[n]), rwk_qp_number(n ? qps[n - 1] : near.qp));
	}
	assert_int_equal(rwk_qp_create(near.pd, &create, &qps[n]), -ENOSPC);
	while (n)
		rwk_qp_destroy(qps[--n]);
	for (; n < RWK_MRS_MAX - 2; n++)
		assert_int_equal(rwk_mr_register(near.pd, near.in, 1, 0, &mrs[n]), 0);
	assert_int_equal(rwk_mr_register(near.pd, near.in, 1, 0, &mrs[n]), -ENOSPC);
	while (n)
		rwk_mr_deregister(mrs[--n]);
	assert_int_equal(rwk_cq_create(near.adapter, 0, &cq), -EINVAL);
	assert_int_equal(rwk_cq_create(near.adapter, RWK_QUEUE_MAX + 1, &cq), -EINVAL);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(send_rc),
		in_world(send_uc),
		in_world(write_rc),
		in_world(write_uc),
		in_world(words),
		in_world(fewer_packets),
		in_world(reads),
		in_world(atomics),
		in_world(denied_uc),
		in_world(in_order),
		in_world(no_receive),
		in_world(too_long),
		in_world(refused),
		in_world(states),
		in_world(nobody),
		in_world(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
