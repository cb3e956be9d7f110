/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aliases (fi_ep_alias): with queues of selective completion, what is started by an alias with FI_COMPLETION has an
 * entry in the endpoint's queue, and what is started by the endpoint has none.
 */
#include "fi_msg.h"

#define TAG 5

static struct t_domain domain;
static struct t_end from, to;
static fi_addr_t number;
static struct fid_ep *tx, *rx; /* of from and of to */

static int open_ends(void **state)
{
	const struct t_options o = {.bind_flags = FI_SELECTIVE_COMPLETION};

	(void)state;
	t_domain_open(&domain, 0, FI_THREAD_DOMAIN);
	t_end_open(&from, &domain, &o);
	t_end_open(&to, &domain, &o);
	number = t_insert(&from, to.name);
	assert_int_equal(fi_ep_alias(from.ep, &tx, FI_TRANSMIT | FI_COMPLETION), 0);
	assert_int_equal(fi_ep_alias(to.ep, &rx, FI_RECV | FI_COMPLETION), 0);
	return 0;
}

static int close_ends(void **state)
{
	(void)state;
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&rx->fid), 0);
	t_end_close(&to);
	t_end_close(&from);
	t_domain_close(&domain);
	return 0;
}

/* One message each way that an alias sends: told of there, and by the alias's receive here. */
static void messages(void **state)
{
	unsigned in, out;
	struct iovec iov_in = {&in, sizeof(in)}, iov_out = {&out, sizeof(out)};

	(void)state;
	for (unsigned n = 0; n < 8; n++) {
		struct fi_cq_tagged_entry entry;
		bool tagged = n % 2;

		in = 0;
		out = n + 1;
		if (tagged)
			assert_int_equal(n < 4 ? fi_trecv(rx, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, TAG, 0, &in)
					       : fi_trecvv(rx, &iov_in, NULL, 1, FI_ADDR_UNSPEC, TAG, 0, &in),
				0);
		else
			assert_int_equal(n < 4 ? fi_recv(rx, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in)
					       : fi_recvv(rx, &iov_in, NULL, 1, FI_ADDR_UNSPEC, &in),
				0);
		switch (n) {
		case 0:
			t_post(fi_send(tx, &out, sizeof(out), NULL, number, &out), from.cq, to.cq);
			break;
		case 1:
			t_post(fi_tsend(tx, &out, sizeof(out), NULL, number, TAG, &out), from.cq, to.cq);
			break;
		case 2:
			t_post(fi_senddata(tx, &out, sizeof(out), NULL, 77, number, &out), from.cq, to.cq);
			break;
		case 3:
			t_post(fi_tsenddata(tx, &out, sizeof(out), NULL, 77, number, TAG, &out), from.cq, to.cq);
			break;
		case 4:
			t_post(fi_sendv(tx, &iov_out, NULL, 1, number, &out), from.cq, to.cq);
			break;
		case 5:
			t_post(fi_tsendv(tx, &iov_out, NULL, 1, number, TAG, &out), from.cq, to.cq);
			break;
		case 6:
			t_post(fi_injectdata(tx, &out, sizeof(out), 77, number), from.cq, to.cq);
			break;
		case 7:
			t_post(fi_tinject(tx, &out, sizeof(out), number, TAG), from.cq, to.cq);
			break;
		}
		entry = t_wait(to.cq, from.cq, NULL);
		assert_ptr_equal(entry.op_context, &in);
		assert_int_equal(in, n + 1);
		assert_int_equal(entry.flags & FI_REMOTE_CQ_DATA ? entry.data : 0, n == 2 || n == 3 || n == 6 ? 77 : 0);
		if (n < 6)
			assert_ptr_equal(t_wait(from.cq, to.cq, NULL).op_context, &out);
	}
}

/* The endpoints themselves have no entries, beside their aliases. */
static void beside_it(void **state)
{
	unsigned in = 0, out = 3;

	(void)state;
	assert_int_equal(fi_trecv(to.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, TAG, 0, NULL), 0);
	t_post(fi_tsend(from.ep, &out, sizeof(out), NULL, number, TAG, NULL), from.cq, to.cq);
	for (int64_t end = t_now() + T_PATIENCE; !*(volatile unsigned *)&in;) {
		assert_true(t_now() < end);
		t_drive(from.cq);
		t_drive(to.cq);
	}
	t_nothing(from.cq, to.cq);
	t_nothing(to.cq, from.cq);
}

/* Reads, writes and atomics. */
static void one_sided(void **state)
{
	static const uint64_t after[] = {1, 2, 2, 2, 20, 2, 10}; /* `here` */
	uint64_t there[2] = {1, 2}, here = 0, two = 2, ten = 10;
	struct iovec iov = {&here, sizeof(here)};
	struct fid_mr *mr;

	(void)state;
	assert_int_equal(fi_mr_reg(domain.domain, there, sizeof(there), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr,
				 NULL),
		0);
	for (unsigned n = 0; n < 7; n++) {
		const uint64_t key = fi_mr_key(mr);
		struct fi_cq_tagged_entry entry;

		switch (n) {
		case 0:
			t_post(fi_read(tx, &here, 8, NULL, number, 0, key, &here), from.cq, to.cq);
			break;
		case 1:
			t_post(fi_readv(tx, &iov, NULL, 1, number, 8, key, &here), from.cq, to.cq);
			break;
		case 2:
			t_post(fi_write(tx, &ten, 8, NULL, number, 0, key, &here), from.cq, to.cq);
			break;
		case 3:
			t_post(fi_atomic(tx, &ten, 1, NULL, number, 0, key, FI_UINT64, FI_SUM, &here), from.cq, to.cq);
			break;
		case 4:
			t_post(fi_fetch_atomic(
				       tx, &ten, 1, NULL, &here, NULL, number, 0, key, FI_UINT64, FI_SUM, &here),
				from.cq, to.cq);
			break;
		case 5:
			t_post(fi_compare_atomic(tx, &ten, 1, NULL, &two, NULL, &here, NULL, number, 8, key, FI_UINT64,
				       FI_CSWAP, &here),
				from.cq, to.cq);
			break;
		case 6:
			t_post(fi_fetch_atomic(tx, NULL, 1, NULL, &here, NULL, number, 8, key, FI_UINT64,
				       FI_ATOMIC_READ, &here),
				from.cq, to.cq);
			break;
		}
		entry = t_wait(from.cq, to.cq, NULL);
		assert_ptr_equal(entry.op_context, &here);
		assert_int_equal(here, after[n]);
	}
	assert_int_equal(there[0], 30);
	assert_int_equal(there[1], 10);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* Flags of one direction; an endpoint stays while it has aliases; they have its name, and ask for other flags later. */
static void rules(void **state)
{
	unsigned char name[sizeof(to.name)];
	size_t len = sizeof(name);
	struct fid_ep *other;
	uint64_t flags = FI_TRANSMIT;

	(void)state;
	assert_int_equal(fi_ep_alias(from.ep, &other, FI_COMPLETION), -FI_EINVAL);
	assert_int_equal(fi_ep_alias(from.ep, &other, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_alias(from.ep, &other, FI_TRANSMIT | FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_close(&from.ep->fid), -FI_EBUSY);
	assert_int_equal(fi_getname(&rx->fid, name, &len), 0);
	assert_memory_equal(name, to.name, len);
	assert_int_equal(fi_control(&tx->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, FI_COMPLETION);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	assert_int_equal(fi_control(&tx->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	assert_int_equal(fi_control(&tx->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, FI_DELIVERY_COMPLETE);
	assert_int_equal(fi_cancel(&rx->fid, &len), -FI_ENOENT);
	assert_int_equal(fi_ep_bind(tx, &from.cq->fid, FI_TRANSMIT), -FI_ENOSYS);
}

/* Of a connected endpoint. */
static void connected(void **state)
{
	const struct t_msg_options o = {.bind_flags = FI_SELECTIVE_COMPLETION};
	struct fid_ep *sends = NULL, *receives = NULL;
	struct t_side client, server;
	char in = 0, out = 1;

	(void)state;
	t_sides_open(&client, &server, &o);
	assert_int_equal(fi_ep_alias(client.ep, &sends, FI_TRANSMIT | FI_COMPLETION), 0);
	assert_int_equal(fi_ep_alias(server.ep, &receives, FI_RECV | FI_COMPLETION), 0);
	assert_int_equal(fi_close(&client.ep->fid), -FI_EBUSY);
	assert_int_equal(fi_recv(server.ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_recv(receives, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	t_post(fi_send(client.ep, &out, 1, NULL, 0, NULL), client.cq, server.cq);
	t_post(fi_send(sends, &out, 1, NULL, 0, &out), client.cq, server.cq);
	assert_ptr_equal(t_wait(server.cq, client.cq, NULL).op_context, &in);
	assert_ptr_equal(t_wait(client.cq, server.cq, NULL).op_context, &out);
	t_nothing(server.cq, client.cq);
	t_nothing(client.cq, server.cq);
	assert_int_equal(fi_close(&sends->fid), 0);
	assert_int_equal(fi_close(&receives->fid), 0);
	t_sides_close(&client, &server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(beside_it, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(one_sided, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(rules, open_ends, close_ends),
		cmocka_unit_test(connected),
	};

	t_use_provider();
	return cmocka_run_group_tests_name("aliases", tests, NULL, NULL);
}
