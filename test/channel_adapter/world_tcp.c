/* SPDX-License-Identifier: BSD-3-Clause */
/* The two qps of a test on a TCP connection on loopback: both are told, and nothing is said of it there. */
#include "channel_adapter/world.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum rwk_qp_type world_rc = RWK_QP_RC, world_uc = RWK_QP_UC;
const bool world_has_fd = true;
const bool world_has_src = false;
const bool world_is_stream = true;
void (*const world_corrupt)(uint64_t nth) = NULL;

static struct leg {
	struct end *e;
	struct rwk_event_channel *channel;
	struct rwk_connection *c;
} legs[2];

static void tcp_pair(int fd[2])
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int listening = socket(AF_INET, SOCK_STREAM, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&in, sizeof(in)) | listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&in, sizeof(in)), 0);
	fd[1] = accept(listening, NULL, NULL);
	assert_true(fd[1] >= 0);
	close(listening);
}

static void enter(struct leg *l, struct end *e, const struct end *peer, int fd)
{
	struct rwk_connection_attr attr = {.transport = RWK_TRANSPORT_STREAM, .told = true};
	struct rwk_connection_event event;

	attr.qp = (struct rwk_qp_attr){.peer_qpn = rwk_qp_number(peer->qp),
		.send_psn = e == &near ? 0xfffff0 : 5,
		.receive_psn = e == &near ? 5 : 0xfffff0,
		.pmtu = PMTU,
		.access = e == &far ? ends_far_access : ACCESS,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 1};
	l->e = e;
	assert_int_equal(rwk_event_channel_create(e->adapter, &l->channel), 0);
	assert_int_equal(rwk_convert(l->channel, e->qp, fd, &attr, &l->c), 0);
	while (!rwk_event_channel_poll(l->channel, &event))
		;
	assert_int_equal(event.type, RWK_CONNECTION_ESTABLISHED);
}

static void join(void)
{
	int fd[2];

	tcp_pair(fd);
	enter(&legs[0], &near, &far, fd[0]);
	enter(&legs[1], &far, &near, fd[1]);
}

static void leave(const struct end *e)
{
	for (unsigned i = 0; i < 2; i++)
		if (legs[i].e == e) {
			rwk_connection_destroy(legs[i].c);
			assert_int_equal(rwk_event_channel_destroy(legs[i].channel), 0);
			legs[i].e = NULL;
		}
}

int world_open(void **state)
{
	(void)state;
	ends_join = join;
	ends_leave = leave;
	return 0;
}

int world_close(void **state)
{
	(void)state;
	return 0;
}
