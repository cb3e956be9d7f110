/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S4-4, S0-13: memory windows, of which near's requests reach what far has bound, and nothing else. Over UDP and on the
 * simulated network.
 *
 *     near   qp ----------------------- qp      far: pd with in_mr, and in it the window
 *                  (a peer that is not) other   far: a second qp, of the same pd or of another one
 *
 * Links: udp, sim, tcp.
 */
#include "channel_adapter/world.h"

#define AT     1000u /* of far.in */
#define LENGTH 100u

static struct rwk_qp *other;
static bool uc;

static struct rwk_bind part(size_t at, size_t length, unsigned access)
{
	return (struct rwk_bind){.mr = far.in_mr, .address = far.in + at, .length = length, .access = access};
}

static void work(void)
{
	for (unsigned i = 0; i < 200; i++) {
		rwk_cq_poll(near.send_cq, NULL, 0);
		rwk_cq_poll(far.send_cq, NULL, 0);
		if (ends_step)
			ends_step();
	}
}

static struct rwk_wc done(struct end *e)
{
	struct rwk_wc wc;

	work();
	assert_int_equal(rwk_cq_poll(e->send_cq, &wc, 1), 1);
	return wc;
}

/* As a request of that qp of far's; its completion is taken. */
static int bind_by(struct rwk_qp *qp, struct rwk_mw *mw, enum rwk_mw_type type, const struct rwk_bind *b)
{
	struct rwk_request r = {.id = 9, .type = RWK_REQUEST_BIND, .mw = mw, .bind = b};
	int rc = type == RWK_MW_1 ? rwk_mw_bind(qp, mw, 9, 0, b) : rwk_qp_post(qp, &r);
	struct rwk_wc wc;

	if (rc)
		return rc;
	wc = done(&far);
	assert_true(wc.type == RWK_WC_BIND && wc.id == 9 && !wc.status && wc.qpn == rwk_qp_number(qp) && !wc.length);
	return 0;
}

static int invalidate_by(struct rwk_qp *qp, uint32_t key)
{
	struct rwk_request r = {.id = 8, .type = RWK_REQUEST_LOCAL_INVALIDATE, .key = key};
	struct rwk_wc wc;
	int rc = rwk_qp_post(qp, &r);

	if (rc)
		return rc;
	wc = done(&far);
	assert_true(wc.type == RWK_WC_LOCAL_INVALIDATE && wc.id == 8 && !wc.status);
	return 0;
}

/* A second qp of far's, in RTS, of that pd. */
static void open_other(struct rwk_pd *pd, enum rwk_qp_type type)
{
	struct rwk_qp_create_attr create = {.type = type, .send_cq = far.send_cq, .send_max = 4};
	struct rwk_qp_attr attr = {.peer_port = 9, .peer_qpn = 5, .pmtu = PMTU};

	create.domain = type == RWK_QP_SRC ? far.domain : NULL;
	create.receive_cq = type == RWK_QP_SRC ? NULL : far.receive_cq;
	create.receive_max = type != RWK_QP_SRC;
	ends_ip(attr.peer_ip, 1);
	assert_int_equal(rwk_qp_create(pd, &create, &other), 0);
	assert_int_equal(rwk_qp_modify(other, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(other, RWK_QPS_RTR, &attr), 0);
	assert_int_equal(rwk_qp_modify(other, RWK_QPS_RTS, NULL), 0);
}

/* A connection that has failed is made anew. */
static void again(void)
{
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RESET, NULL), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	work();
	ends_connect(&near, &far, ACCESS);
	ends_connect(&far, &near, ACCESS);
}

/* near asks for it; SRC: for the memory of that srq's pd. Is it done? If not, nothing is touched, and RC says so. */
static bool does(enum rwk_request_type type, size_t at, size_t len, uint32_t key, uint32_t srqn, uint8_t *memory)
{
	uint8_t *there = malloc(len);
	struct rwk_wc wc;
	bool is_done;

	assert_non_null(there);
	memset(memory + at, 0xee, len);
	memcpy(there, memory + at, len);
	memset(near.out, 0x33, len);
	assert_int_equal(ends_request_src(&near, type, len, srqn, (uintptr_t)memory + at, key), 0);
	wc = done(&near);
	is_done = uc ? memcmp(memory + at, there, len) != 0 : !wc.status;
	if (type == RWK_REQUEST_WRITE && is_done)
		memcpy(there, near.out, len);
	if (type != RWK_REQUEST_FETCH_ADD || !is_done)
		assert_memory_equal(memory + at, there, len);
	if (type == RWK_REQUEST_READ)
		assert_int_equal(near.out[0], is_done ? 0xee : 0x33);
	if (!is_done && !uc) {
		assert_int_equal(wc.status, -EACCES);
		again();
	}
	free(there);
	return is_done;
}

static void open_by(enum rwk_qp_type type)
{
	ends_open(type);
	uc = type == RWK_QP_UC;
}

static bool writes(size_t at, size_t len, uint32_t key)
{
	return does(RWK_REQUEST_WRITE, at, len, key, 0, far.in);
}

/*
 * S0-13, S4-4: what lies within the window, to the byte; what the window grants, and no more. Also
 * in several packets.
 */
static void range_and_rights(void **state, enum rwk_mw_type type)
{
	static const struct {
		size_t at, len;
		bool reached;
	} cases[] = {
		{AT, LENGTH, true},
		{AT - 1, 2, false},
		{AT + LENGTH - 1, 1, true},
		{AT + LENGTH - 1, 2, false},
		{AT + LENGTH, 1, false},
		{AT - 1, 1, false},
		{AT, LENGTH + 1, false},
		{0, 8, false},
	};
	struct rwk_bind b = part(0, 0, 0), longer;
	struct rwk_mw *mw;

	open_by(service_of(state));
	b = part(AT, LENGTH, RWK_ACCESS_WRITE);
	longer = part(AT, 3 * PMTU + 1, RWK_ACCESS_WRITE);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(rwk_mw_create(far.pd, type, &mw), 0);
		assert_int_equal(bind_by(far.qp, mw, type, &b), 0);
		assert_int_equal(writes(cases[i].at, cases[i].len, rwk_mw_key(mw)), cases[i].reached);
		assert_true(writes(cases[i].at, cases[i].len, rwk_mr_key(far.in_mr))); /* the mr is as it was */
		rwk_mw_destroy(mw);
	}
	assert_int_equal(rwk_mw_create(far.pd, type, &mw), 0);
	assert_int_equal(bind_by(far.qp, mw, type, &longer), 0);
	assert_true(writes(AT, 3 * PMTU + 1, rwk_mw_key(mw)));
	assert_false(writes(AT, 3 * PMTU + 2, rwk_mw_key(mw)));
	rwk_mw_destroy(mw);
	ends_close();
}

static void range_1(void **state)
{
	range_and_rights(state, RWK_MW_1);
}

static void range_2(void **state)
{
	range_and_rights(state, RWK_MW_2);
}

/* S4-4: each right by itself, over RC; none beyond those of the mr can be bound. */
static void rights(void **state)
{
	static const enum rwk_request_type types[] = {RWK_REQUEST_READ, RWK_REQUEST_WRITE, RWK_REQUEST_FETCH_ADD};
	struct rwk_bind b;
	struct rwk_mr *mr;
	struct rwk_mw *mw;

	(void)state;
	open_by(RWK_QP_RC);
	for (unsigned granted = 0; granted < 8; granted++) {
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(rwk_mw_create(far.pd, RWK_MW_2, &mw), 0);
			b = part(AT, LENGTH, granted);
			assert_int_equal(bind_by(far.qp, mw, RWK_MW_2, &b), 0);
			assert_int_equal(does(types[i], AT, 8, rwk_mw_key(mw), 0, far.in), granted >> i & 1);
			rwk_mw_destroy(mw);
		}
	}
	assert_int_equal(rwk_mr_register(far.pd, far.in, REGION, RWK_ACCESS_READ | RWK_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_1, &mw), 0);
	b = part(AT, LENGTH, RWK_ACCESS_READ | RWK_ACCESS_WRITE);
	b.mr = mr;
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), -EACCES);
	b.access = RWK_ACCESS_READ | RWK_ACCESS_LOCAL_WRITE;
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), -EINVAL);
	b.access = RWK_ACCESS_READ;
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), 0);
	rwk_mw_destroy(mw);
	assert_int_equal(rwk_mr_deregister(mr), 0);
	ends_close();
}

/* S4-4: what is not all in the mr, of another pd, or of the wrong type is not bound; and the window is as it was. */
static void not_bound(void **state)
{
	struct rwk_bind good, b;
	struct rwk_mw *mw[2], *theirs;
	struct rwk_pd *pd;
	struct rwk_mr *mr;
	uint32_t key;

	open_by(service_of(state));
	assert_int_equal(rwk_pd_create(far.adapter, &pd), 0);
	assert_int_equal(rwk_mr_register(pd, far.in, REGION, ACCESS, &mr), 0);
	assert_int_equal(rwk_mw_create(pd, RWK_MW_1, &theirs), 0);
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_2 + 1, &mw[0]), -EINVAL);
	for (unsigned type = RWK_MW_1; type <= RWK_MW_2; type++) {
		assert_int_equal(rwk_mw_create(far.pd, type, &mw[type]), 0);
		good = b = part(AT, LENGTH, RWK_ACCESS_WRITE);
		b.length = REGION - AT + 1;
		assert_int_equal(bind_by(far.qp, mw[type], type, &b), -EACCES);
		b = good;
		b.address = far.in - 1;
		assert_int_equal(bind_by(far.qp, mw[type], type, &b), -EACCES);
		b = good;
		b.mr = mr;
		assert_int_equal(bind_by(far.qp, mw[type], type, &b), -EACCES);
		assert_int_equal(bind_by(far.qp, mw[type], !type, &good), -EINVAL);
		assert_int_equal(bind_by(far.qp, mw[type], type, NULL), -EINVAL);
		b.mr = NULL;
		assert_int_equal(bind_by(far.qp, mw[type], type, &b), -EINVAL);
	}
	assert_int_equal(bind_by(far.qp, theirs, RWK_MW_1, &good), -EACCES);
	good.length = 0;
	assert_int_equal(bind_by(far.qp, mw[RWK_MW_2], RWK_MW_2, &good), -EINVAL);
	good.length = LENGTH;
	assert_int_equal(bind_by(far.qp, mw[RWK_MW_2], RWK_MW_2, &good), 0);
	key = rwk_mw_key(mw[RWK_MW_2]);
	assert_int_equal(bind_by(far.qp, mw[RWK_MW_2], RWK_MW_2, &good), -EBUSY);
	assert_int_equal(rwk_mw_key(mw[RWK_MW_2]), key);
	assert_true(writes(AT, LENGTH, key));
	rwk_mw_destroy(mw[0]);
	rwk_mw_destroy(mw[1]);
	assert_int_equal(rwk_pd_destroy(pd), -EBUSY);
	assert_int_equal(rwk_mr_deregister(mr), 0);
	assert_int_equal(rwk_pd_destroy(pd), -EBUSY); /* a window is a child, too */
	rwk_mw_destroy(theirs);
	assert_int_equal(rwk_pd_destroy(pd), 0);
	ends_close();
}

/* S4-4: type 1 is bound again elsewhere, or to nothing: the key before opens nothing from then on, the new one does. */
static void bound_again(void **state)
{
	struct rwk_bind b;
	struct rwk_mw *mw;
	uint32_t key;

	open_by(service_of(state));
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_1, &mw), 0);
	b = part(AT, LENGTH, RWK_ACCESS_WRITE);
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), 0);
	key = rwk_mw_key(mw);
	assert_true(writes(AT, 8, key));
	b = part(AT + 500, LENGTH, RWK_ACCESS_WRITE);
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), 0);
	assert_int_not_equal(rwk_mw_key(mw), key);
	assert_true(writes(AT + 500, 8, rwk_mw_key(mw)));
	assert_false(writes(AT, 8, key));
	assert_true(writes(AT + 500, 8, rwk_mw_key(mw))); /* a qp's RESET leaves it */
	assert_int_equal(rwk_mr_deregister(far.in_mr), -EBUSY);
	b.length = 0;
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), 0);
	assert_false(writes(AT + 500, 8, rwk_mw_key(mw)));
	assert_int_equal(invalidate_by(far.qp, rwk_mw_key(mw)), -EACCES);
	rwk_mw_destroy(mw);
	ends_close();
}

/* S4-4: type 2 is reached through the qp that has bound it, and invalidated by that; type 1 through each of the pd. */
static void whose(void **state)
{
	struct rwk_mw *mw[2];
	struct rwk_bind b;
	uint32_t key;

	open_by(service_of(state));
	open_other(far.pd, service_of(state));
	b = part(AT, LENGTH, RWK_ACCESS_WRITE);
	for (unsigned type = RWK_MW_1; type <= RWK_MW_2; type++) {
		assert_int_equal(rwk_mw_create(far.pd, type, &mw[type]), 0);
		assert_int_equal(bind_by(other, mw[type], type, &b), 0);
		assert_int_equal(writes(AT, 8, rwk_mw_key(mw[type])), type == RWK_MW_1);
	}
	assert_int_equal(invalidate_by(far.qp, rwk_mw_key(mw[RWK_MW_2])), -EACCES);
	assert_int_equal(invalidate_by(far.qp, rwk_mw_key(mw[RWK_MW_1])), -EACCES);
	assert_int_equal(invalidate_by(far.qp, rwk_mr_key(far.in_mr)), -EACCES);
	assert_int_equal(invalidate_by(other, rwk_mw_key(mw[RWK_MW_2])), 0);
	assert_int_equal(bind_by(far.qp, mw[RWK_MW_2], RWK_MW_2, &b), 0);
	key = rwk_mw_key(mw[RWK_MW_2]);
	assert_true(writes(AT, 8, key));
	assert_int_equal(invalidate_by(far.qp, key), 0);
	assert_int_equal(invalidate_by(far.qp, key), -EACCES);
	assert_false(writes(AT, 8, key));
	assert_int_equal(bind_by(other, mw[RWK_MW_2], RWK_MW_2, &b), 0);
	rwk_qp_destroy(other); /* its windows with it */
	assert_int_equal(bind_by(far.qp, mw[RWK_MW_2], RWK_MW_2, &b), 0);
	assert_int_equal(rwk_mr_deregister(far.in_mr), -EBUSY);
	rwk_mw_destroy(mw[RWK_MW_2]);
	assert_int_equal(rwk_mr_deregister(far.in_mr), -EBUSY);
	rwk_mw_destroy(mw[RWK_MW_1]);
	ends_close();
}

/* S4-4: a window's key is for peers alone. */
static void not_for_us(void **state)
{
	struct rwk_sge sge = {far.in, 8, 0};
	struct rwk_request r = {.sge = &sge, .sge_count = 1};
	struct rwk_receive v = {.sge = &sge, .sge_count = 1};
	struct rwk_mw *mw;
	struct rwk_bind b;

	open_by(service_of(state));
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_1, &mw), 0);
	b = part(AT, LENGTH, ACCESS);
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), 0);
	sge = (struct rwk_sge){far.in + AT, 8, rwk_mw_key(mw)};
	assert_int_equal(rwk_qp_post(far.qp, &r), -EACCES);
	assert_int_equal(rwk_qp_post_receive(far.qp, &v), -EACCES);
	rwk_mw_destroy(mw);
	ends_close();
}

/*
 * S4-3, S4-4: local requests complete in their turn. Over RC nothing does while the Send before them waits for a
 * receive; the key that a Send behind is to tell is there at once.
 */
static void in_turn(void **state)
{
	struct rwk_request r[4] = {{.id = 1}, {.id = 2, .type = RWK_REQUEST_BIND},
		{.id = 3, .type = RWK_REQUEST_LOCAL_INVALIDATE}, {.id = 4}};
	enum rwk_qp_type service = service_of(state);
	struct rwk_mw *mw;
	struct rwk_bind b;
	struct rwk_wc wc;

	open_by(service);
	b = part(AT, LENGTH, ACCESS);
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_2, &mw), 0);
	r[1].mw = mw;
	r[1].bind = &b;
	for (unsigned i = 0; i < 4; i++) {
		r[2].key = rwk_mw_key(mw);
		assert_int_equal(rwk_qp_post(far.qp, &r[i]), 0);
	}
	work();
	if (service == RWK_QP_RC)
		assert_int_equal(rwk_cq_poll(far.send_cq, &wc, 1), 0);
	ends_receive(&near, 1, 8);
	ends_receive(&near, 2, 8);
	for (unsigned i = 0; i < 4; i++) {
		wc = ends_await(&far, far.send_cq);
		assert_true(wc.id == i + 1 && !wc.status);
	}
	r[1].flags = RWK_REQUEST_UNSIGNALLED;
	assert_int_equal(rwk_qp_post(far.qp, &r[1]), 0);
	r[1].flags = RWK_REQUEST_FENCE;
	assert_int_equal(rwk_qp_post(far.qp, &r[1]), -EINVAL);
	r[1].type = RWK_REQUEST_LOCAL_INVALIDATE + 1;
	assert_int_equal(rwk_qp_post(far.qp, &r[1]), -EINVAL);
	work();
	assert_int_equal(rwk_cq_poll(far.send_cq, &wc, 1), 0);
	rwk_mw_destroy(mw);
	ends_close();
}

/* S4-3: what is posted in ERR is not done; what was done before has its entry; RESET gives all slots back. */
static void states(void **state)
{
	struct rwk_request r = {.id = 7, .type = RWK_REQUEST_BIND}, send = {.id = 6};
	struct rwk_mw *mw;
	struct rwk_bind b;
	struct rwk_wc wc;

	open_by(service_of(state));
	b = part(AT, LENGTH, ACCESS);
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_2, &mw), 0);
	r.mw = mw;
	r.bind = &b;
	assert_int_equal(rwk_qp_post(far.qp, &send), 0); /* for which there is no receive */
	assert_int_equal(rwk_qp_post(far.qp, &r), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(rwk_qp_post(far.qp, &send), 0);
	r.id = 8;
	assert_int_equal(rwk_qp_post(far.qp, &r), 0);
	assert_int_equal(ends_await(&far, far.send_cq).id, 6);
	wc = ends_await(&far, far.send_cq);
	assert_true(wc.id == 7 && !wc.status);
	assert_int_equal(ends_await(&far, far.send_cq).status, -ECANCELED);
	wc = ends_await(&far, far.send_cq);
	assert_true(wc.id == 8 && wc.status == -ECANCELED);
	assert_int_equal(rwk_mr_deregister(far.in_mr), -EBUSY);
	again();
	assert_int_equal(rwk_qp_post(far.qp, &send), 0);
	assert_int_equal(rwk_qp_post(far.qp, &r), 0);
	again();
	for (unsigned i = 0; i < DEPTH; i++) /* what has come back before leaves room */
		while (rwk_qp_post(far.qp, &send))
			assert_int_equal(rwk_cq_poll(far.send_cq, &wc, 1), 1);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	while (rwk_cq_poll(far.send_cq, &wc, 1))
		;
	rwk_mw_destroy(mw);
	ends_close();
}

/* near sends it; SRC: to that srq. What its completion says. */
static int send_invalidating(uint32_t key, uint32_t srqn)
{
	struct rwk_request r = {.flags = RWK_REQUEST_WITH_INVALIDATE, .key = key, .srqn = srqn, .imm = 0x12345};

	assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	return done(&near).status;
}

/* S4-4: a Send invalidates a window of type 2 of its connection's, and says so at the other end. */
static void by_send(void **state)
{
	struct rwk_mw *mw;
	struct rwk_bind b;
	struct rwk_wc wc;
	uint32_t key;

	(void)state;
	open_by(RWK_QP_RC);
	b = part(AT, LENGTH, ACCESS);
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_2, &mw), 0);
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_2, &b), 0);
	key = rwk_mw_key(mw);
	assert_true(writes(AT, 8, key));
	ends_receive(&far, 1, 8);
	ends_receive(&far, 2, 8);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	assert_int_equal(done(&near).status, 0);
	wc = ends_await(&far, far.receive_cq);
	assert_true(!wc.invalidated && !wc.has_imm && !wc.imm);
	assert_true(writes(AT, 8, key));
	assert_int_equal(send_invalidating(key, 0), 0);
	wc = ends_await(&far, far.receive_cq);
	assert_true(wc.invalidated && !wc.has_imm && wc.imm == key && !wc.status);
	assert_false(writes(AT, 8, key));
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_2, &b), 0);
	assert_true(writes(AT, 8, rwk_mw_key(mw)));
	rwk_mw_destroy(mw);
	ends_close();
}

/* S4-4: what is not the peer's to invalidate is refused, and goes on to open what it did. */
static void not_by_send(void **state)
{
	struct rwk_mw *mw[2];
	struct rwk_bind b;
	uint32_t keys[4];

	(void)state;
	open_by(RWK_QP_RC);
	open_other(far.pd, RWK_QP_RC);
	b = part(AT, LENGTH, RWK_ACCESS_WRITE);
	for (unsigned type = RWK_MW_1; type <= RWK_MW_2; type++) {
		assert_int_equal(rwk_mw_create(far.pd, type, &mw[type]), 0);
		assert_int_equal(bind_by(other, mw[type], type, &b), 0);
		keys[type] = rwk_mw_key(mw[type]);
	}
	keys[2] = rwk_mr_key(far.in_mr);
	keys[3] = keys[2] ^ 1u << 31;
	for (unsigned i = 0; i < 4; i++) {
		ends_receive(&far, 1, 8);
		assert_int_equal(send_invalidating(keys[i], 0), -EINVAL);
		assert_int_equal(ends_await(&far, far.receive_cq).status, -ECANCELED);
		again();
	}
	assert_true(writes(AT, 8, keys[0]) && writes(AT, 8, keys[2]));
	assert_int_equal(bind_by(far.qp, mw[RWK_MW_2], RWK_MW_2, &b), -EBUSY);
	rwk_qp_destroy(other);
	rwk_mw_destroy(mw[0]);
	rwk_mw_destroy(mw[1]);
	ends_close();
}

/* UC's packets have no such operation; and there is one word for an immediate or for a key. */
static void no_such_send(void **state)
{
	struct rwk_request r = {.flags = RWK_REQUEST_WITH_INVALIDATE};

	(void)state;
	open_by(RWK_QP_UC);
	assert_int_equal(rwk_qp_post(near.qp, &r), -EINVAL);
	ends_close();
}

static void one_word(void **state)
{
	struct rwk_request r = {.flags = RWK_REQUEST_WITH_INVALIDATE | RWK_REQUEST_IMM};

	(void)state;
	open_by(RWK_QP_RC);
	assert_int_equal(rwk_qp_post(near.qp, &r), -EINVAL);
	r = (struct rwk_request){.type = RWK_REQUEST_WRITE, .flags = RWK_REQUEST_WITH_INVALIDATE};
	assert_int_equal(rwk_qp_post(near.qp, &r), -EINVAL);
	ends_close();
}

/* S4-4, S1-8: over SRC a window is reached by naming an srq of its pd, and by no other. */
static void by_src(void **state)
{
	struct job jobs[2];
	struct rwk_mw *mw;
	struct rwk_bind b;
	struct rwk_wc wc;
	uint32_t key;

	(void)state;
	if (!world_has_src)
		return;
	open_by(RWK_QP_SRC);
	for (unsigned i = 0; i < 2; i++)
		ends_open_job(&jobs[i], &far, far.domain, 100 + i);
	open_other(jobs[0].pd, RWK_QP_SRC);
	b = (struct rwk_bind){jobs[0].mr, jobs[0].in + AT, LENGTH, ACCESS};
	assert_int_equal(rwk_mw_create(jobs[0].pd, RWK_MW_1, &mw), 0);
	assert_int_equal(bind_by(other, mw, RWK_MW_1, &b), 0);
	key = rwk_mw_key(mw);
	for (unsigned type = RWK_REQUEST_WRITE; type <= RWK_REQUEST_READ; type++) {
		assert_true(does(type, AT, 8, key, 100, jobs[0].in));
		assert_false(does(type, AT, 8, key, 101, jobs[0].in));
		assert_false(does(type, AT + LENGTH, 8, key, 100, jobs[0].in));
	}
	rwk_mw_destroy(mw);

	/* Type 2, of the pd of the qp through which it is reached. */
	rwk_qp_destroy(other);
	assert_int_equal(rwk_mw_create(jobs[0].pd, RWK_MW_2, &mw), 0);
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_2, &b), -EACCES);
	rwk_mw_destroy(mw);
	ends_close_job(&jobs[0]);
	jobs[0] = (struct job){.pd = far.pd, .cq = far.receive_cq};
	assert_int_equal(rwk_srq_create(far.pd,
				 &(struct rwk_srq_attr){
					 .receive_max = 4, .domain = far.domain, .number = 100, .cq = far.receive_cq},
				 &jobs[0].srq),
		0);
	b = part(AT, LENGTH, ACCESS);
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_2, &mw), 0);
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_2, &b), 0);
	key = rwk_mw_key(mw);
	assert_true(does(RWK_REQUEST_READ, AT, 8, key, 100, far.in));
	assert_true(does(RWK_REQUEST_FETCH_ADD, AT, 8, key, 100, far.in));
	assert_int_equal(rwk_srq_post_receive(jobs[0].srq, &(struct rwk_receive){.id = 5}), 0);
	assert_int_equal(send_invalidating(key, 100), 0);
	assert_int_equal(rwk_cq_poll(far.receive_cq, &wc, 1), 1);
	assert_true(wc.id == 5 && wc.invalidated && wc.imm == key && wc.srqn == 100);
	assert_false(does(RWK_REQUEST_READ, AT, 8, key, 100, far.in));
	rwk_mw_destroy(mw);
	assert_int_equal(rwk_srq_destroy(jobs[0].srq), 0);
	ends_close_job(&jobs[1]);
	ends_close();
}

/* S4-4: a window that is bound counts among the adapter's regions. */
static void limit(void **state)
{
	static struct rwk_mr *mrs[RWK_MRS_MAX];
	struct rwk_mw *mw;
	struct rwk_bind b;
	unsigned n = 0;

	(void)state;
	open_by(RWK_QP_UC);
	b = part(AT, LENGTH, ACCESS);
	assert_int_equal(rwk_mw_create(far.pd, RWK_MW_1, &mw), 0);
	while (!rwk_mr_register(far.pd, far.in, 1, 0, &mrs[n]))
		n++;
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), -ENOSPC);
	assert_int_equal(rwk_mr_deregister(mrs[--n]), 0);
	assert_int_equal(bind_by(far.qp, mw, RWK_MW_1, &b), 0);
	assert_int_equal(rwk_mr_register(far.pd, far.in, 1, 0, &mrs[n]), -ENOSPC);
	rwk_mw_destroy(mw);
	assert_int_equal(rwk_mr_register(far.pd, far.in, 1, 0, &mrs[n]), 0);
	for (n++; n; n--)
		assert_int_equal(rwk_mr_deregister(mrs[n - 1]), 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(range_1, world_rc),
		in_world_by(range_1, world_uc),
		in_world_by(range_2, world_rc),
		in_world_by(range_2, world_uc),
		in_world(rights),
		in_world_by(not_bound, world_rc),
		in_world_by(not_bound, world_uc),
		in_world_by(bound_again, world_rc),
		in_world_by(bound_again, world_uc),
		in_world_by(whose, world_rc),
		in_world_by(whose, world_uc),
		in_world_by(not_for_us, world_rc),
		in_world_by(not_for_us, world_uc),
		in_world_by(in_turn, world_rc),
		in_world_by(in_turn, world_uc),
		in_world_by(states, world_rc),
		in_world_by(states, world_uc),
		in_world(by_send),
		in_world(not_by_send),
		in_world(no_such_send),
		in_world(one_word),
		in_world(by_src),
		in_world(limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
