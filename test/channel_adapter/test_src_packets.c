/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC, packet by packet: what a requester puts on the wire, byte by byte; and what a responder makes of packets by
 * hand, of honest peers and of others.
 *
 * Links: udp.
 */
#include "channel_adapter/by_hand.h"

#include "wire/psn.h"

#include <sys/socket.h>
#include <unistd.h>

#define JOBS 3u /* the last one is in another domain */

static struct job jobs[JOBS];
static struct rwk_src_domain *other;
static struct sender sender;
static uint64_t packets; /* sent to far by hand */
static uint8_t bytes[4 * PMTU];

static void open_all(void)
{
	ends_open(RWK_QP_SRC);
	assert_int_equal(rwk_src_domain_create(far.adapter, &other), 0);
	for (unsigned i = 0; i < JOBS; i++)
		ends_open_job(&jobs[i], &far, i < 2 ? far.domain : other, 0x100 + i);
	sender = open_sender(1);
	packets = 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 5 + i / 256);
}

static void close_all(void)
{
	close(sender.fd);
	for (unsigned i = 0; i < JOBS; i++)
		ends_close_job(&jobs[i]);
	assert_int_equal(rwk_src_domain_destroy(other), 0);
	ends_close();
}

static void give(const struct rwk_wire *w, size_t len)
{
	send_packet(&sender, w, bytes, len);
	await_packets(++packets);
}

static struct rwk_wire request(unsigned operation, uint32_t ahead, uint32_t srqn)
{
	struct rwk_wire w = to_far(RWK_WIRE_SRC | operation, rwk_psn_add(PSN, ahead));

	w.ack_request = true;
	w.srqn = srqn;
	w.reth.address = (uintptr_t)jobs[0].in;
	w.reth.key = rwk_mr_key(jobs[0].mr);
	return w;
}

static void give_send(unsigned operation, uint32_t ahead, uint32_t srqn, size_t len)
{
	struct rwk_wire w = request(operation, ahead, srqn);

	give(&w, len);
}

static void give_write(unsigned operation, uint32_t ahead, uint32_t srqn, size_t len, size_t whole)
{
	struct rwk_wire w = request(operation, ahead, srqn);

	w.reth.length = (uint32_t)whole;
	give(&w, len);
}

/* Adds 1 to the first word of the first job's memory. */
static void give_add(uint32_t ahead, uint32_t srqn)
{
	struct rwk_wire w = request(RWK_WIRE_FETCH_ADD, ahead, srqn);

	w.atomic.address = w.reth.address;
	w.atomic.key = w.reth.key;
	w.atomic.swap_add = 1;
	give(&w, 0);
}

/* far's next answer, to the sender. */
static struct rwk_wire answer(void)
{
	uint8_t payload[PACKET];
	struct rwk_wire w;

	assert_int_equal(take_packet(&sender, &w, payload), 0);
	return w;
}

static void acknowledged(uint32_t ahead)
{
	struct rwk_wire w = answer();

	assert_int_equal(w.opcode, RWK_WIRE_SRC | RWK_WIRE_ACK);
	assert_int_equal(w.psn, rwk_psn_add(PSN, ahead));
	assert_in_range(w.aeth.syndrome, 0, 0x1f);
}

/* With the value before. */
static void added(uint32_t ahead)
{
	struct rwk_wire w = answer();
	uint64_t before;

	memcpy(&before, bytes, sizeof(before));
	assert_int_equal(w.opcode, RWK_WIRE_SRC | RWK_WIRE_ATOMIC_ACK);
	assert_int_equal(w.psn, rwk_psn_add(PSN, ahead));
	assert_int_equal(w.atomic_ack, before);
}

/* The job's next completion. */
static struct rwk_wc next(struct job *j)
{
	struct rwk_wc wc = {.status = 1};

	assert_int_equal(rwk_cq_poll(j->cq, &wc, 1), 1);
	return wc;
}

static bool is_empty(struct job *j)
{
	struct rwk_wc wc;

	return !rwk_cq_poll(j->cq, &wc, 1);
}

/* far has refused: its qp is in ERR, after one NAK. */
static void refused(int err)
{
	assert_int_equal(info().state, RWK_QPS_ERR);
	assert_int_equal(info().error, err);
	assert_int_equal(info().naks_out, 1);
}

/* ---- what goes out ---- */

/* far's qp, connected with the sender's socket: numbers that show in each byte. */
static void open_requester(void)
{
	ends_open_one(&far, 2, RWK_QP_SRC);
	sender = open_sender(1);
	connect_with(&sender, 0xfffffe);
}

/* The next packet has these headers, so much payload of far.out from `at` on, and a pad. */
static void expect(const char *what, const uint8_t *headers, size_t count, size_t at, size_t len)
{
	uint8_t packet[PACKET];
	ssize_t got = recv(sender.fd, packet, sizeof(packet), 0);

	if (got != (ssize_t)(count + len + (-len & 3) + 4))
		fail_msg("%s: %zd bytes", what, got);
	for (size_t i = 0; i < count; i++)
		if (packet[i] != headers[i])
			fail_msg("%s: byte %zu is 0x%02x, not 0x%02x", what, i, packet[i], headers[i]);
	assert_memory_equal(packet + count, far.out + at, len);
}

/*
 * S1-4: every packet of a request has XRCETH behind BTH, the SRQ number in it, Middle and Last packets too. Written
 * down here byte by byte: BTH; XRCETH; what the operation has.
 */
static void on_the_wire(void **state)
{
	/* clang-format off */
	static const uint8_t send_first[] = {0xa0, 0x40, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0, 0xff, 0xff, 0xfe,
		0, 0x12, 0x34, 0x56};
	static const uint8_t send_middle[] = {0xa1, 0x40, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0, 0xff, 0xff, 0xff,
		0, 0x12, 0x34, 0x56};
	static const uint8_t send_last[] = {0xa2, 0x70, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0x80, 0, 0, 0,
		0, 0x12, 0x34, 0x56};
	static const uint8_t write_first[] = {0xa6, 0x40, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0, 0, 0, 1,
		0, 0xff, 0xff, 0xff,
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0x04, 0x02};
	static const uint8_t write_last[] = {0xa8, 0x60, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0x80, 0, 0, 2,
		0, 0xff, 0xff, 0xff};
	static const uint8_t read[] = {0xac, 0x40, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0x80, 0, 0, 3,
		0, 0, 0, 1,
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0, 9};
	static const uint8_t fetch_add[] = {0xb4, 0x40, 0xff, 0xff, 0, 0xab, 0xcd, 0xef, 0x80, 0, 0, 4,
		0, 0x65, 0x43, 0x21,
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xa1, 0xa2, 0xa3, 0xa4,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	/* clang-format on */
	static const uint64_t remote = 0x1122334455667788;
	static const uint32_t key = 0xa1a2a3a4;

	(void)state;
	open_requester();
	assert_int_equal(ends_request_src(&far, RWK_REQUEST_SEND, 2 * PMTU + 1, 0x123456, 0, 0), 0);
	assert_int_equal(ends_request_src(&far, RWK_REQUEST_WRITE, PMTU + 2, 0xffffff, remote, key), 0);
	assert_int_equal(ends_request_src(&far, RWK_REQUEST_READ, 9, 1, remote, key), 0);
	assert_int_equal(ends_request_src(&far, RWK_REQUEST_FETCH_ADD, 8, 0x654321, remote, key), 0);
	expect("Send First", send_first, sizeof(send_first), 0, PMTU);
	expect("Send Middle", send_middle, sizeof(send_middle), PMTU, PMTU);
	expect("Send Last", send_last, sizeof(send_last), 2 * PMTU, 1);
	expect("Write First", write_first, sizeof(write_first), 0, PMTU);
	expect("Write Last", write_last, sizeof(write_last), PMTU, 2);
	expect("Read Request", read, sizeof(read), 0, 0);
	expect("Fetch and Add", fetch_add, sizeof(fetch_add), 0, 0);
	close(sender.fd);
	ends_close_one(&far);
}

/* ---- what comes in ---- */

/*
 * S1-5: what RC does with packets that are not the expected one it does here, whatever SRQ they name: a gap is said and
 * nothing more, a duplicate acknowledged again, or answered with the value that it brought, and the connection goes on.
 */
static void transport_first(void **state)
{
	uint64_t sum;

	(void)state;
	open_all();
	connect_with(&sender, 0);
	ends_receive_job(&jobs[0], 1, 100);
	give_send(RWK_WIRE_SEND_ONLY, 5, 0x999, 8);
	assert_int_equal(answer().aeth.syndrome, RWK_WIRE_NAK_SEQUENCE);
	assert_int_equal(info().early, 1);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t srqn = i == 0 ? jobs[0].number : i == 1 ? 0x999 : jobs[2].number;

		give_send(RWK_WIRE_SEND_ONLY, 0, srqn, 8);
		acknowledged(i ? 2 : 0);
		give_write(RWK_WIRE_WRITE_ONLY, 1, srqn, 8, 8);
		acknowledged(i ? 2 : 1);
		give_add(2, srqn);
		added(2);
		memcpy(&sum, bytes, sizeof(sum));
		sum++;
		assert_memory_equal(jobs[0].in, &sum, sizeof(sum));
		assert_int_equal(info().duplicates, 3 * i);
	}
	assert_int_equal(next(&jobs[0]).length, 8);
	assert_int_equal(info().naks_out, 1);
	assert_int_equal(info().state, RWK_QPS_RTS);
	assert_true(is_empty(&jobs[0]) && is_empty(&jobs[2]));
	close_all();
}

/* S1-5: a packet that is wrong in itself is refused as such, and the SRQ is not asked for. */
static void wrong_first(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		open_all();
		switch (i) {
		case 0: /* no Send is under way */
			give_send(RWK_WIRE_SEND_LAST, 0, 0x999, 8);
			break;
		case 1: /* First carries one PMTU */
			give_send(RWK_WIRE_SEND_FIRST, 0, 0x999, 8);
			break;
		case 2:
			give_send(RWK_WIRE_READ_REQUEST, 0, 0x999, 8);
			break;
		case 3: /* more than RETH says */
			give_write(RWK_WIRE_WRITE_ONLY, 0, 0x999, 8, 7);
			break;
		default: /* in the middle of a Send */
			ends_receive_job(&jobs[0], 1, 2 * PMTU);
			give_send(RWK_WIRE_SEND_FIRST, 0, jobs[0].number, PMTU);
			give_add(1, 0x999);
		}
		refused(-EINVAL);
		assert_int_equal(info().bad_access, 0);
		close_all();
	}
}

/* S1-6: the NAK's code, as it is on the wire: 0x62, remote access. */
static void nak_code(void **state)
{
	uint8_t packet[PACKET];

	(void)state;
	open_all();
	connect_with(&sender, 0);
	ends_receive_job(&jobs[2], 1, 100);
	give_send(RWK_WIRE_SEND_ONLY, 0, jobs[2].number, 8);
	/* BTH, AETH, ICRC: an answer has no XRCETH. */
	assert_int_equal(recv(sender.fd, packet, sizeof(packet), 0), 20);
	assert_int_equal(packet[0], 0xb1);
	assert_int_equal(packet[12], 0x62);
	refused(-EACCES);
	close_all();
}

/* S1-5, S1-7: pieces of one Send name one srq; who goes on with another is refused, and what he has begun ends. */
static void send_changes_srq(void **state)
{
	static const struct {
		uint8_t operation;
		unsigned job;
		int err;
	} cases[] = {
		{RWK_WIRE_SEND_MIDDLE, 1, -EINVAL}, {RWK_WIRE_SEND_LAST, 1, -EINVAL},
		{RWK_WIRE_SEND_LAST, 2, -EACCES}, /* of another domain: S1-6 */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_wc wc;

		open_all();
		for (unsigned k = 0; k < JOBS; k++)
			ends_receive_job(&jobs[k], 10 + k, 3 * PMTU);
		ends_receive_job(&jobs[0], 20, 3 * PMTU);
		give_send(RWK_WIRE_SEND_FIRST, 0, jobs[0].number, PMTU);
		assert_true(is_empty(&jobs[0]));
		give_send(cases[i].operation, 1, jobs[cases[i].job].number, PMTU);
		refused(cases[i].err);
		wc = next(&jobs[0]);
		assert_true(wc.id == 10 && wc.status == -ECANCELED && wc.srqn == jobs[0].number);
		assert_int_equal(wc.qpn, rwk_qp_number(far.qp));
		for (unsigned k = 0; k < JOBS; k++)
			assert_true(is_empty(&jobs[k]));
		assert_int_equal(jobs[1].in[0], 0xee);
		close_all();
	}
}

/* S1-8: nor does a Write change over, even to an srq whose pd has the same memory. */
static void write_changes_srq(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct rwk_srq_attr attr = {.receive_max = 1, .number = 0x200};
		struct rwk_srq *sibling;

		open_all();
		attr.domain = far.domain;
		attr.cq = jobs[0].cq;
		assert_int_equal(rwk_srq_create(jobs[0].pd, &attr, &sibling), 0);
		assert_int_equal(rwk_srq_post_receive(sibling, &(struct rwk_receive){.id = 1}), 0);
		ends_receive_job(&jobs[0], 2, 0);
		give_write(RWK_WIRE_WRITE_FIRST, 0, jobs[0].number, PMTU, PMTU + 8);
		give_write(i ? RWK_WIRE_WRITE_LAST_IMM : RWK_WIRE_WRITE_LAST, 1, 0x200, 8, 0);
		refused(-EINVAL);
		assert_memory_equal(jobs[0].in, bytes, PMTU);
		assert_int_equal(jobs[0].in[PMTU], 0xee);
		assert_true(is_empty(&jobs[0]));
		assert_int_equal(rwk_srq_destroy(sibling), 0);
		close_all();
	}
}

static void open_srq_again(struct job *j)
{
	struct rwk_srq_attr attr = {.receive_max = 1, .domain = far.domain, .number = j->number, .cq = j->cq};

	assert_int_equal(rwk_srq_create(j->pd, &attr, &j->srq), 0);
}

/* An srq in the middle of a Send stays; in the middle of a Write it may go, and the Write ends there. */
static void srq_goes(void **state)
{
	(void)state;
	open_all();
	ends_receive_job(&jobs[0], 1, 3 * PMTU);
	give_send(RWK_WIRE_SEND_FIRST, 0, jobs[0].number, PMTU);
	assert_int_equal(rwk_srq_destroy(jobs[0].srq), -EBUSY);
	give_send(RWK_WIRE_SEND_LAST, 1, jobs[0].number, 8);
	assert_int_equal(next(&jobs[0]).length, PMTU + 8);
	give_write(RWK_WIRE_WRITE_FIRST, 2, jobs[0].number, PMTU, PMTU + 8);
	assert_int_equal(rwk_srq_destroy(jobs[0].srq), 0);
	memset(jobs[0].in, 0xee, JOB_MEMORY);
	give_write(RWK_WIRE_WRITE_LAST, 3, jobs[0].number, 8, 0);
	refused(-EACCES);
	assert_int_equal(jobs[0].in[PMTU], 0xee);
	open_srq_again(&jobs[0]);
	close_all();
}

/* A qp that goes in the middle of a Send: to ERR, the receive comes back with an error; to RESET, it is the next again.
 */
static void qp_goes(void **state)
{
	struct rwk_wc wc;

	(void)state;
	open_all();
	for (unsigned i = 1; i <= 3; i++)
		ends_receive_job(&jobs[0], i, 3 * PMTU);
	give_send(RWK_WIRE_SEND_FIRST, 0, jobs[0].number, PMTU);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	wc = next(&jobs[0]);
	assert_true(wc.id == 1 && wc.status == -ECANCELED && wc.type == RWK_WC_RECEIVE);
	assert_true(is_empty(&jobs[0]));

	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	ends_connect(&far, &near, ACCESS);
	give_send(RWK_WIRE_SEND_FIRST, 0, jobs[0].number, PMTU);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	assert_true(is_empty(&jobs[0]));
	ends_connect(&far, &near, ACCESS);
	for (unsigned i = 0; i < 2; i++) {
		give_send(RWK_WIRE_SEND_ONLY, i, jobs[0].number, 8);
		wc = next(&jobs[0]);
		assert_true(wc.id == 2 + i && !wc.status && wc.length == 8);
	}
	close_all();
}

/* S1-7: two connections in the middle of Sends to one srq: each has a receive of its own, and ends when it ends. */
static void two_at_once(void **state)
{
	struct rwk_qp_create_attr create = {.type = RWK_QP_SRC, .send_max = 1};
	struct end second;
	struct rwk_wire w;
	struct rwk_wc wc;

	(void)state;
	open_all();
	second = far;
	create.send_cq = far.send_cq;
	create.domain = far.domain;
	assert_int_equal(rwk_qp_create(far.pd, &create, &second.qp), 0);
	ends_connect(&second, &near, ACCESS);
	for (unsigned i = 0; i < 2; i++) {
		struct rwk_sge sge = {jobs[0].in + i * 3 * PMTU, 3 * PMTU, rwk_mr_key(jobs[0].mr)};

		assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &(struct rwk_receive){i, &sge, 1}), 0);
	}
	give_send(RWK_WIRE_SEND_FIRST, 0, jobs[0].number, PMTU);
	w = request(RWK_WIRE_SEND_FIRST, 0, jobs[0].number);
	w.qpn = rwk_qp_number(second.qp);
	give(&w, PMTU);
	w = request(RWK_WIRE_SEND_LAST, 1, jobs[0].number);
	w.qpn = rwk_qp_number(second.qp);
	give(&w, 9);
	wc = next(&jobs[0]);
	assert_true(wc.id == 1 && wc.length == PMTU + 9 && wc.qpn == rwk_qp_number(second.qp));
	give_send(RWK_WIRE_SEND_LAST, 1, jobs[0].number, 5);
	wc = next(&jobs[0]);
	assert_true(wc.id == 0 && wc.length == PMTU + 5 && wc.qpn == rwk_qp_number(far.qp));
	assert_memory_equal(jobs[0].in, bytes, PMTU);
	assert_memory_equal(jobs[0].in + PMTU, bytes, 5);
	assert_int_equal(jobs[0].in[PMTU + 5], 0xee);
	assert_memory_equal(jobs[0].in + 4 * PMTU, bytes, 9);
	rwk_qp_destroy(second.qp);
	close_all();
}

/* UC on a shared srq: a Send that loses its end leaves its receive to the qp's next; a reset gives it back. */
static void uc_half_way(void **state)
{
	struct rwk_srq_attr attr = {.receive_max = 2};
	struct rwk_qp_create_attr create = {.type = RWK_QP_UC, .send_max = 1};
	struct rwk_wire w;
	struct end uc;
	struct rwk_srq *srq;
	struct rwk_wc wc;

	(void)state;
	open_all();
	assert_int_equal(rwk_srq_create(far.pd, &attr, &srq), 0);
	uc = far;
	create.send_cq = far.send_cq;
	create.receive_cq = far.receive_cq;
	create.srq = srq;
	assert_int_equal(rwk_qp_create(far.pd, &create, &uc.qp), 0);
	ends_connect(&uc, &near, ACCESS);
	for (unsigned i = 0; i < 2; i++) {
		struct rwk_sge sge = {far.in, 3 * PMTU, rwk_mr_key(far.in_mr)};

		assert_int_equal(rwk_srq_post_receive(srq, &(struct rwk_receive){i, &sge, 1}), 0);
	}
	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_FIRST, PSN);
	w.qpn = rwk_qp_number(uc.qp);
	give(&w, PMTU);
	w.opcode = RWK_WIRE_UC | RWK_WIRE_SEND_ONLY;
	w.psn = rwk_psn_add(PSN, 5);
	give(&w, 8);
	assert_int_equal(rwk_cq_poll(far.receive_cq, &wc, 1), 1);
	assert_true(wc.id == 0 && wc.length == 8);
	w.opcode = RWK_WIRE_UC | RWK_WIRE_SEND_FIRST;
	w.psn = rwk_psn_add(PSN, 6);
	give(&w, PMTU);
	assert_int_equal(rwk_qp_modify(uc.qp, RWK_QPS_RESET, NULL), 0);
	ends_connect(&uc, &near, ACCESS);
	w.opcode = RWK_WIRE_UC | RWK_WIRE_SEND_ONLY;
	w.psn = PSN;
	give(&w, 7);
	assert_int_equal(rwk_cq_poll(far.receive_cq, &wc, 1), 1);
	assert_true(wc.id == 1 && wc.length == 7);
	rwk_qp_destroy(uc.qp);
	assert_int_equal(rwk_srq_destroy(srq), 0);
	close_all();
}

/* Packets of RC to an SRC qp are another service's, and the other way round. */
static void wrong_service(void **state)
{
	struct rwk_wire w;

	(void)state;
	open_all();
	w = to_far(RWK_WIRE_RC | RWK_WIRE_SEND_ONLY, PSN);
	give(&w, 8);
	assert_int_equal(counters().wrong_service, 1);
	assert_int_equal(info().packets_in, 0);
	close_all();
	ends_open(RWK_QP_RC);
	sender = open_sender(1);
	packets = 0;
	w = to_far(RWK_WIRE_SRC | RWK_WIRE_SEND_ONLY, PSN);
	give(&w, 8);
	assert_int_equal(counters().wrong_service, 1);
	close(sender.fd);
	ends_close();
}

/* S1-5: an srq without a receive; behind it nothing is taken; and while the peer waits the srq goes. */
static void not_ready(void **state)
{
	(void)state;
	open_all();
	ends_receive_job(&jobs[1], 1, 100);
	give_send(RWK_WIRE_SEND_ONLY, 0, jobs[0].number, 8);
	assert_int_equal(info().rnr_out, 1);
	give_send(RWK_WIRE_SEND_ONLY, 1, jobs[1].number, 8);
	assert_int_equal(info().naks_out, 0);
	assert_true(is_empty(&jobs[1]));
	assert_int_equal(rwk_srq_destroy(jobs[0].srq), 0);
	give_send(RWK_WIRE_SEND_ONLY, 0, jobs[0].number, 8);
	refused(-EACCES);
	open_srq_again(&jobs[0]);
	close_all();
}

/* ---- anything ---- */

static uint64_t random_state;

static uint32_t pick(uint32_t bound)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % bound);
}

/* Some packet of the class, near what is expected, with fields that are often right. */
static struct rwk_wire any(uint32_t expected, size_t *len)
{
	static const uint8_t operations[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 19, 20, 22, 23, 17};
	unsigned operation = operations[pick(sizeof(operations))];
	struct rwk_wire w = request(operation, expected + (pick(6) ? 0 : pick(5) - 2), 0);
	bool middle = operation < 2 || operation == 6 || operation == 7;
	struct job *memory = &jobs[pick(8) ? 0 : pick(JOBS)];

	*len = operation > 11 && operation < 22 ? 0 : middle ? PMTU : pick(20);
	w.srqn = pick(8) ? jobs[pick(12) ? 0 : pick(JOBS)].number : pick(0x1000000);
	w.reth.address = w.atomic.address = (uintptr_t)memory->in + pick(4) * 8;
	w.reth.key = w.atomic.key = rwk_mr_key(memory->mr);
	w.reth.length = (uint32_t)(middle ? PMTU + pick(2 * PMTU) : *len ? *len : pick(3000));
	w.aeth.syndrome = (uint8_t)pick(256);
	return w;
}

/* Gives it. Returns by how much the number that far expects has grown. */
static uint32_t give_any(uint32_t expected)
{
	struct rwk_qp_info before = info(), after;
	size_t len;
	struct rwk_wire w = any(expected, &len);

	give(&w, len);
	after = info();
	if (RWK_WIRE_OPERATION(w.opcode) == RWK_WIRE_ACK || after.duplicates != before.duplicates ||
		after.early != before.early || after.rnr_out != before.rnr_out || after.state != before.state)
		return 0;
	return RWK_WIRE_OPERATION(w.opcode) == RWK_WIRE_READ_REQUEST ? (w.reth.length + PMTU - 1) / PMTU : 1;
}

/* Takes what has completed at the first two jobs, whose receives complete in their order. Returns how many were not
 * flushed. */
static unsigned take_all(unsigned completed[2])
{
	unsigned received = 0;
	struct rwk_wc wc;

	for (unsigned k = 0; k < 2; k++) {
		while (rwk_cq_poll(jobs[k].cq, &wc, 1)) {
			assert_true(wc.id == completed[k] && wc.srqn == jobs[k].number);
			completed[k]++;
			received += !wc.status;
		}
	}
	return received;
}

static void begin_anew(void)
{
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	ends_connect(&far, &near, ACCESS);
}

/*
 * S1-6, S1-7, S1-8: whatever comes, the job of the other domain keeps its receives, and its memory is what it was; no
 * receive is lost or completes twice; and in the end the connection works.
 */
static void anything(void **state)
{
	unsigned posted[2] = {0}, completed[2] = {0}, errors = 0, received = 0;
	uint32_t expected = 0;
	struct rwk_wc wc;

	(void)state;
	open_all();
	random_state = 7;
	ends_receive_job(&jobs[2], 1, JOB_MEMORY);
	for (unsigned i = 0; i < 4000; i++) {
		for (unsigned k = 0; k < 2; k++)
			for (; posted[k] - completed[k] < 8; posted[k]++)
				ends_receive_job(&jobs[k], posted[k], JOB_MEMORY);
		expected += give_any(expected);
		received += take_all(completed);
		if (info().state == RWK_QPS_RTS && pick(200))
			continue;
		errors++;
		if (pick(2))
			assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
		assert_int_equal(take_all(completed), 0);
		begin_anew();
		expected = 0;
	}
	print_message("%u times in error, %u messages received\n", errors, received);
	assert_true(errors > 100 && received > 100);
	assert_true(is_empty(&jobs[2]));
	for (size_t i = 0; i < JOB_MEMORY; i++)
		assert_int_equal(jobs[2].in[i], 0xee);
	begin_anew();
	for (unsigned i = 0; i < 4; i++)
		ends_quiet(); /* near drops the answers to all that it has not asked */
	for (unsigned k = 0; k < 2; k++) {
		while (completed[k] < posted[k]) {
			assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 5, jobs[k].number, 0, 0), 0);
			wc = ends_await(&far, jobs[k].cq);
			assert_true(wc.id == completed[k]++ && !wc.status && wc.length == 5);
			assert_int_equal(ends_await(&near, near.send_cq).status, 0);
		}
	}
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_the_wire),
		cmocka_unit_test(transport_first),
		cmocka_unit_test(wrong_first),
		cmocka_unit_test(nak_code),
		cmocka_unit_test(send_changes_srq),
		cmocka_unit_test(write_changes_srq),
		cmocka_unit_test(srq_goes),
		cmocka_unit_test(qp_goes),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(uc_half_way),
		cmocka_unit_test(wrong_service),
		cmocka_unit_test(not_ready),
		cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
