/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A way that becomes narrower than the path MTU that qps on it were connected with: the link says so to each packet
 * that it does not carry any more, which is no lack of room that passes. In a network of this process's own:
 *
 *     near   qps ---- lo, of 9000 bytes, then of 1500 ---- qps   far
 *
 * Links: udp.
 */
#define _GNU_SOURCE /* unshare */
#include "channel_adapter/ends.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
#define LONG         4096u /* bytes, in one packet */
#define SHORT        100u

/* Two qps that are connected, each with a cq of its own. */
struct pair {
	struct rwk_qp *near, *far;
	struct rwk_cq *near_cq, *far_cq;
};

static int loopback(unsigned long what, struct ifreq value)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), rc;

	memcpy(value.ifr_name, "lo", 3);
	rc = ioctl(fd, what, &value);
	close(fd);
	return rc;
}

static void set_mtu(int mtu)
{
	assert_int_equal(loopback(SIOCSIFMTU, (struct ifreq){.ifr_mtu = mtu}), 0);
}

static void make(const struct end *e, enum rwk_qp_type type, struct rwk_qp **qp, struct rwk_cq **cq)
{
	struct rwk_qp_create_attr create = {.type = type, .send_max = DEPTH, .receive_max = DEPTH};

	assert_int_equal(rwk_cq_create(e->adapter, 2 * DEPTH, cq), 0);
	create.send_cq = create.receive_cq = *cq;
	assert_int_equal(rwk_qp_create(e->pd, &create, qp), 0);
}

static void connect_to(struct rwk_qp *qp, const struct end *peer, const struct rwk_qp *peer_qp)
{
	struct rwk_qp_attr attr = {
		.peer_port = rwk_adapter_port(peer->adapter),
		.peer_qpn = rwk_qp_number(peer_qp),
		.send_psn = 5,
		.receive_psn = 5,
		.pmtu = LONG,
		.retry = 3,
		.rnr_retry = 7,
		.rnr_timer = 1,
		.timeout_ns = 20000000,
	};

	memcpy(attr.peer_ip, peer->ip, 16);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_RTR, &attr), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_RTS, NULL), 0);
}

static void open_pair(struct pair *p, enum rwk_qp_type type)
{
	make(&near, type, &p->near, &p->near_cq);
	make(&far, type, &p->far, &p->far_cq);
	connect_to(p->near, &far, p->far);
	connect_to(p->far, &near, p->near);
}

static void close_pair(struct pair *p)
{
	rwk_qp_destroy(p->near);
	rwk_qp_destroy(p->far);
	assert_int_equal(rwk_cq_destroy(p->near_cq) | rwk_cq_destroy(p->far_cq), 0);
}

static struct rwk_wc await(struct rwk_cq *cq)
{
	time_t until = time(NULL) + 20;
	struct rwk_wc wc;

	while (!rwk_cq_poll(cq, &wc, 1)) {
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0) | rwk_cq_poll(far.send_cq, NULL, 0), 0);
		assert_true(time(NULL) < until);
	}
	return wc;
}

static void post(struct pair *p, size_t len)
{
	struct rwk_sge from = {near.out, len, rwk_mr_key(near.out_mr)}, to = {far.in, LONG, rwk_mr_key(far.in_mr)};
	struct rwk_receive receive = {.sge = &to, .sge_count = 1};
	struct rwk_request send = {.sge = &from, .sge_count = 1};

	assert_int_equal(rwk_qp_post_receive(p->far, &receive), 0);
	assert_int_equal(rwk_qp_post(p->near, &send), 0);
}

static void check_passes(struct pair *p, size_t len)
{
	struct rwk_wc wc;

	memset(far.in, 0, LONG);
	post(p, len);
	wc = await(p->far_cq);
	assert_true(!wc.status && wc.length == len);
	assert_memory_equal(far.in, near.out, len);
	assert_int_equal(await(p->near_cq).status, 0);
}

/*
 * S3-7: a packet has 4096 bytes at most, and less where the way has no room for them, then and later: UC loses what the
 * way does not carry, the packet that the kernel refuses as those that the link refuses then; RC
 * sends it again and gives up. What fits passes.
 */
static void narrower(void **state)
{
	struct pair uc, rc[2];

	(void)state;
	set_mtu(9000);
	ends_open_one(&near, 1, RWK_QP_RC);
	ends_open_one(&far, 2, RWK_QP_RC);
	assert_int_equal(rwk_adapter_pmtu(near.adapter, far.ip), LONG);
	open_pair(&uc, RWK_QP_UC);
	for (unsigned i = 0; i < 2; i++) {
		open_pair(&rc[i], RWK_QP_RC);
		check_passes(&rc[i], LONG);
	}
	check_passes(&uc, LONG);
	set_mtu(1500);
	for (unsigned i = 0; i < 3; i++) {
		post(&uc, LONG);
		assert_int_equal(await(uc.near_cq).status, 0);
	}
	check_passes(&uc, SHORT);
	assert_int_equal(rwk_adapter_pmtu(near.adapter, far.ip), 1024);
	assert_true(ends_lost(&far) > 0);
	for (unsigned i = 0; i < 2; i++) {
		check_passes(&rc[i], SHORT);
		post(&rc[i], LONG);
		assert_int_equal(await(rc[i].near_cq).status, -ETIMEDOUT);
		close_pair(&rc[i]);
	}
	close_pair(&uc);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrower),
	};

	if (unshare(CLONE_NEWNET) || loopback(SIOCSIFFLAGS, (struct ifreq){.ifr_flags = IFF_UP | IFF_LOOPBACK})) {
		print_message("no network of its own, whose way could become narrower\n");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
