/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_MSG: what comes to no connection, because somebody says no, goes, says nothing, or talks nonsense. Two sides in
 * one process, each with a fabric of its own.
 */
#include "fi_msg.h"

#include <netinet/in.h>
#include <unistd.h>

static struct t_side client, server;

/* The server's program says no, with a reason; another try of somebody else is another matter. */
static void rejects(void **state)
{
	unsigned char data[T_CM_DATA];
	struct fi_eq_err_entry err;
	struct fid_ep *first;
	struct t_event e;
	char byte;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_recv(client.ep, &byte, 1, NULL, 0, &byte), 0);
	assert_int_equal(fi_connect(client.ep, &server.name, "hello", 5), 0);
	e = t_side_event(&server, &client, FI_CONNREQ);
	assert_int_equal(e.len, 5);
	assert_int_equal(fi_reject(server.pep, e.info->handle, "no room", 7), 0);
	fi_freeinfo(e.info);
	err = t_side_error(&client, &server, data);
	assert_ptr_equal(err.fid, &client.ep->fid);
	assert_ptr_equal(err.context, &client);
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_int_equal(err.err_data_size, 7);
	assert_memory_equal(data, "no room", 7);
	assert_int_equal(t_wait_error(client.cq, server.cq).err, FI_ECANCELED); /* the receive */
	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), -FI_EISCONN);
	first = client.ep;
	assert_int_equal(fi_close(&client.cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(fi_close(&client.cq->fid), 0);
	client.ep = NULL;
	t_side_connect(&client, &server);
	t_sides_close(&client, &server);
}

/* Of what programs add to request and refusal there goes what fits. */
static void cuts_data(void **state)
{
	unsigned char data[T_CM_DATA + 44], got[T_CM_DATA];
	struct t_event e;

	(void)state;
	t_fill(data, sizeof(data), 1);
	t_sides_listen(&client, &server, NULL);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, &server.name, data, sizeof(data)), 0);
	e = t_side_event(&server, &client, FI_CONNREQ);
	assert_int_equal(e.len, T_CM_DATA);
	t_check(e.data, e.len, 1);
	assert_int_equal(fi_reject(server.pep, e.info->handle, data, sizeof(data)), 0);
	fi_freeinfo(e.info);
	assert_int_equal(t_side_error(&client, &server, got).err_data_size, T_CM_DATA);
	t_check(got, sizeof(got), 1);
	t_sides_close(&client, &server);
}

/* Nobody listens there. The data that there is none of has no buffer. */
static void refused(void **state)
{
	struct fi_eq_err_entry err = {0};
	struct t_event e;
	uint32_t number;
	ssize_t n;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	assert_int_equal(fi_close(&server.pep->fid), 0);
	server.pep = NULL;
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
	while ((n = fi_eq_read(client.eq, &number, &e, sizeof(e), 0)) == -FI_EAGAIN)
		;
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(client.eq, &err, 0), sizeof(err));
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_int_equal(err.err_data_size, 0);
	assert_int_equal(fi_eq_readerr(client.eq, &err, 0), -FI_EAGAIN);
	t_sides_close(&client, &server);
}

/* A socket that listens, of a program that never looks: its queue is full, so its kernel does not answer. */
static int full_queue(int waiting[2], struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)at, len) && !listen(fd, 0));
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &len), 0);
	for (int i = 0; i < 2; i++) {
		waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		connect(waiting[i], (struct sockaddr *)at, len);
	}
	return fd;
}

/* Not even the kernel answers there: after FI_ROPEWALK_CONNECT_WAIT that is an error. */
static void times_out(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	struct fi_eq_err_entry err = {0};
	struct sockaddr_in at;
	struct t_event e;
	uint32_t number;
	int waiting[2], fd = full_queue(waiting, &at);

	(void)state;
	t_sides_listen(&client, &server, &o);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, &at, NULL, 0), 0);
	assert_int_equal(fi_eq_sread(client.eq, &number, &e, sizeof(e), T_PATIENCE, 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(client.eq, &err, 0), sizeof(err));
	assert_int_equal(err.err, FI_ETIMEDOUT);
	t_sides_close(&client, &server);
	close(fd);
	for (int i = 0; i < 2; i++)
		close(waiting[i]);
}

/* A client that goes before it is answered: its request can be rejected, and accepted with an error. */
static void withdrawn(void **state)
{
	struct t_event e;

	(void)state;
	for (int accepts = 0; accepts < 2; accepts++) {
		t_sides_listen(&client, &server, NULL);
		t_side_endpoint(&client, NULL);
		assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
		e = t_side_event(&server, &client, FI_CONNREQ);
		assert_int_equal(fi_close(&client.ep->fid), 0);
		client.ep = NULL;
		t_side_no_event(&server, &client);
		if (accepts) {
			t_side_endpoint(&server, e.info);
			assert_int_equal(fi_accept(server.ep, NULL, 0), -FI_ENOTCONN);
		} else {
			assert_int_equal(fi_reject(server.pep, e.info->handle, NULL, 0), 0);
		}
		fi_freeinfo(e.info);
		t_sides_close(&client, &server);
	}
}

/* Who listens goes: requests that its program has not read are hung up on, and so is one that it has not answered. */
static void nobody_answers(void **state)
{
	unsigned char data[T_CM_DATA];
	struct t_event e;

	(void)state;
	for (int read = 0; read < 4; read++) {
		t_sides_listen(&client, &server, NULL);
		t_side_endpoint(&client, NULL);
		assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
		if (read) {
			e = t_side_event(&server, &client, FI_CONNREQ);
			if (read == 2) { /* by an endpoint that is closed without an answer */
				t_side_endpoint(&server, e.info);
				assert_int_equal(fi_close(e.info->handle), -FI_EBUSY);
				assert_int_equal(fi_close(&server.ep->fid), 0);
				server.ep = NULL;
			}
			if (read == 3) /* the request itself is closed */
				assert_int_equal(fi_close(e.info->handle), 0);
			fi_freeinfo(e.info);
		} else {
			for (int i = 0; i < 100; i++) {
				t_side_drive(&client);
				t_side_drive(&server);
			}
		}
		if (read < 2)
			t_side_close(&server);
		assert_int_equal(t_side_error(&client, NULL, data).err, FI_ECONNRESET);
		t_side_close(&client);
		if (read >= 2)
			t_side_close(&server);
	}
}

static int bare_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&server.name, sizeof(struct sockaddr_in)), 0);
	return fd;
}

/* Bytes until the other end hangs up. */
static size_t all_bytes(int fd, unsigned char *buf, size_t room)
{
	int64_t end = t_now() + T_PATIENCE;
	size_t at = 0;
	ssize_t n = -1;

	while (n) {
		n = recv(fd, buf + at, room - at, MSG_DONTWAIT);
		at += n > 0 ? (size_t)n : 0;
		t_side_drive(&server);
		assert_true(t_now() < end);
		if (n < 0 && errno == ECONNRESET)
			break;
	}
	close(fd);
	return at;
}

/*
 * Strangers make no event: who says nonsense is hung up on, who says nothing keeps nobody from connecting, and who asks
 * for a service that endpoints do not have (UC, by the bytes of CONNECT.md) is told no.
 */
static void strangers(void **state)
{
	unsigned char ask[32] = "ropecon\n\1\1\1\1\0\0", buf[64];
	int silent, fd;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	silent = bare_socket();
	fd = bare_socket();
	assert_int_equal(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	assert_int_equal(all_bytes(fd, buf, sizeof(buf)), 0);
	memcpy(ask + 16, (uint16_t[]){1024}, 2);
	memcpy(ask + 20, (uint32_t[]){77, 5}, 8);
	fd = bare_socket();
	assert_int_equal(send(fd, ask, sizeof(ask), 0), sizeof(ask));
	assert_int_equal(all_bytes(fd, buf, sizeof(buf)), 32);
	assert_memory_equal(buf, "ropecon\n\1\3", 10); /* REJECT */
	t_side_no_event(&server, NULL);
	t_side_connect(&client, &server);
	close(silent);
	t_sides_close(&client, &server);
}

/* What is missing, or too much, or comes too late, is said at once. */
static void refused_at_once(void **state)
{
	struct sockaddr_in name;
	struct fid_ep *ep;
	size_t len = 4;
	char byte = 0;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	assert_int_equal(fi_listen(server.pep), -FI_EOPBADSTATE);
	assert_int_equal(fi_setname(&server.pep->fid, &server.name, sizeof(struct sockaddr_in)), -FI_EOPBADSTATE);
	assert_int_equal(fi_getname(&server.pep->fid, &name, &len), -FI_ETOOSMALL);
	assert_int_equal(len, sizeof(name));
	assert_int_equal(fi_reject(server.pep, &server.pep->fid, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_endpoint(client.domain, client.info, &ep, NULL), 0);
	assert_int_equal(fi_send(ep, &byte, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_tsend(ep, &byte, 1, NULL, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_read(ep, &byte, 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_connect(ep, &server.name, NULL, 0), -FI_ENOEQ);
	assert_int_equal(fi_ep_bind(ep, &client.eq->fid, 0), 0);
	assert_int_equal(fi_connect(ep, &server.name, NULL, 0), -FI_ENOCQ);
	assert_int_equal(fi_accept(ep, NULL, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(ep, &server.eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, NULL, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_send(client.ep, &byte, 1, NULL, 0, NULL), -FI_ENOTCONN);
	assert_int_equal(fi_enable(client.ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&client.eq->fid), -FI_EBUSY);
	t_side_connect(&client, &server);
	t_sides_close(&client, &server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rejects),
		cmocka_unit_test(cuts_data),
		cmocka_unit_test(refused),
		cmocka_unit_test(times_out),
		cmocka_unit_test(withdrawn),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(strangers),
		cmocka_unit_test(refused_at_once),
	};

	setenv("FI_ROPEWALK_CONNECT_WAIT", "1", 1);
	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
