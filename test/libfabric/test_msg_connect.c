/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_EP_MSG: how connections come about, from fi_passive_ep to FI_CONNECTED. Two sides in one process, each with a
 * fabric of its own:
 *
 *     client ---- TCP on loopback: handshake, then packets ---- server, which listens
 */
#include "fi_msg.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define SLOW 1500 /* ms: more than FI_ROPEWALK_CONNECT_WAIT */

static struct t_side client, server;

/* What programs add to request and answer is at the other end, all that fits; both ends know their names. */
static void connects(void **state)
{
	unsigned char to_server[T_CM_DATA], to_client[T_CM_DATA + 1]; /* of which the last one is cut off */
	struct sockaddr_in peer, *in = (struct sockaddr_in *)&server.name;
	size_t len = sizeof(peer), room = 0;
	struct t_event e;
	size_t size = sizeof(room);

	(void)state;
	t_sides_listen(&client, &server, NULL);
	assert_int_equal(fi_getopt(&server.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &room, &size), 0);
	assert_int_equal(room, T_CM_DATA);
	t_fill(to_server, sizeof(to_server), 1);
	t_fill(to_client, sizeof(to_client), 2);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_getpeer(client.ep, &peer, &len), -FI_ENOTCONN);
	assert_int_equal(fi_connect(client.ep, &server.name, to_server, sizeof(to_server)), 0);
	e = t_side_event(&server, &client, FI_CONNREQ);
	assert_ptr_equal(e.fid, &server.pep->fid);
	assert_int_equal(e.len, sizeof(to_server));
	t_check(e.data, e.len, 1);
	assert_int_equal(e.info->ep_attr->type, FI_EP_MSG);
	assert_int_equal(e.info->caps, server.info->caps);
	assert_string_equal(e.info->fabric_attr->prov_name, "ropewalk");
	peer = *(struct sockaddr_in *)e.info->dest_addr;
	assert_int_equal(ntohl(peer.sin_addr.s_addr), INADDR_LOOPBACK);
	t_side_endpoint(&server, e.info);
	fi_freeinfo(e.info);
	assert_int_equal(fi_accept(server.ep, to_client, sizeof(to_client)), 0);
	e = t_side_event(&client, &server, FI_CONNECTED);
	assert_ptr_equal(e.fid, &client.ep->fid);
	assert_int_equal(e.len, T_CM_DATA);
	t_check(e.data, e.len, 2);
	e = t_side_event(&server, &client, FI_CONNECTED);
	assert_int_equal(e.len, 0);
	assert_int_equal(fi_getpeer(client.ep, &peer, &len), 0);
	assert_memory_equal(&peer, in, sizeof(peer));
	t_sides_close(&client, &server);
}

/* The domain may be opened with what FI_CONNREQ tells, too, and by IPv6. */
static void connects_by_ipv6(void **state)
{
	const struct t_msg_options o = {.addr_format = FI_SOCKADDR_IN6};

	(void)state;
	if (access("/proc/net/if_inet6", F_OK))
		skip();
	t_sides_open(&client, &server, &o);
	assert_int_equal(((struct sockaddr *)&server.name)->sa_family, AF_INET6);
	t_sides_close(&client, &server);
}

/* Endpoints without an event queue have the domain's. */
static void by_the_queue_of_the_domain(void **state)
{
	const struct t_msg_options o = {.domain_eq = true};

	(void)state;
	t_sides_open(&client, &server, &o);
	assert_int_equal(fi_close(&client.eq->fid), -FI_EBUSY);
	assert_int_equal(fi_shutdown(client.ep, 0), 0);
	assert_ptr_equal(t_side_event(&client, &server, FI_SHUTDOWN).fid, &client.ep->fid);
	assert_ptr_equal(t_side_event(&server, &client, FI_SHUTDOWN).fid, &server.ep->fid);
	t_sides_close(&client, &server);
}

/* An endpoint for which there was no queue pair left is enabled once there is one, and as good as any. */
static void enabled_later(void **state)
{
	enum { MOST = 2048 };
	static struct fid_ep *ep[MOST];
	int n, err = 0;
	char byte;

	(void)state;
	t_side_open(&client, NULL);
	t_side_endpoint(&client, NULL);
	client.info->tx_attr->size = client.info->rx_attr->size = 2;
	for (n = 0; !err; n++) {
		assert_in_range(n, 0, MOST - 1);
		assert_int_equal(fi_endpoint(client.domain, client.info, &ep[n], NULL), 0);
		assert_int_equal(fi_ep_bind(ep[n], &client.eq->fid, 0), 0);
		assert_int_equal(fi_ep_bind(ep[n], &client.cq->fid, FI_SEND | FI_RECV), 0);
		err = fi_enable(ep[n]);
	}
	assert_int_equal(err, -FI_ENOSPC);
	assert_int_equal(fi_close(&ep[0]->fid), 0);
	assert_int_equal(fi_enable(ep[n - 1]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_recv(ep[n - 1], &byte, 1, NULL, 0, NULL), 0);
	assert_int_equal(fi_recv(ep[n - 1], &byte, 1, NULL, 0, NULL), -FI_EAGAIN);
	while (--n > 0)
		assert_int_equal(fi_close(&ep[n]->fid), 0);
	t_side_close(&client);
}

static void nothing_for(struct t_side *s, int ms)
{
	struct t_event e;
	uint32_t number;

	assert_int_equal(fi_eq_sread(s->eq, &number, &e, sizeof(e), ms, 0), -FI_EAGAIN);
}

/*
 * Programs that take longer than FI_ROPEWALK_CONNECT_WAIT, a second here: the server to look, and then to accept (it
 * touches its memory); the client to hear that it was.
 */
static void slow_programs(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	struct t_event e;

	(void)state;
	t_sides_listen(&client, &server, &o);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
	nothing_for(&client, SLOW);
	e = t_side_event(&server, &client, FI_CONNREQ);
	nothing_for(&client, SLOW);
	nothing_for(&server, 1); /* the request stands */
	t_side_endpoint(&server, e.info);
	fi_freeinfo(e.info);
	assert_int_equal(fi_accept(server.ep, NULL, 0), 0);
	nothing_for(&server, SLOW);
	t_side_event(&client, &server, FI_CONNECTED);
	t_side_event(&server, &client, FI_CONNECTED);
	t_sides_close(&client, &server);
}

/* What a request's info says of the interface is what that says by which the program listens. */
static void tells_of_the_nic(void **state)
{
	struct fi_device_attr device = {.name = (char *)"made-up"};
	struct fi_bus_attr bus = {.bus_type = FI_BUS_UNKNOWN};
	struct fi_link_attr link = {.mtu = 4321};
	struct fid_nic nic = {.device_attr = &device, .bus_attr = &bus, .link_attr = &link},
		       bare = {.link_attr = &link};
	struct fid_nic *said[] = {&nic, &bare, NULL};
	struct t_event e;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct fid_nic *own;

		t_side_open(&server, NULL);
		own = server.info->nic;
		server.info->nic = said[i];
		t_side_listen(&server);
		server.info->nic = own;
		t_side_open(&client, NULL);
		t_side_endpoint(&client, NULL);
		assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
		e = t_side_event(&server, &client, FI_CONNREQ);
		assert_int_equal(e.info->nic != NULL, said[i] == &nic);
		if (e.info->nic) {
			assert_string_equal(e.info->nic->device_attr->name, "made-up");
			assert_int_equal(e.info->nic->link_attr->mtu, 4321);
		}
		assert_int_equal(fi_reject(server.pep, e.info->handle, NULL, 0), 0);
		fi_freeinfo(e.info);
		t_sides_close(&client, &server);
	}
}

/* Who sleeps on the queue's descriptor is woken by what connections have to do; FI_PEEK leaves the event. */
static void sleeps(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	_Alignas(struct fi_eq_cm_entry) unsigned char buf[sizeof(struct fi_eq_cm_entry)];
	struct fid *fids[] = {NULL};
	struct pollfd p = {.events = POLLIN};
	struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *)(void *)buf;
	int64_t end = t_now() + T_PATIENCE;
	ssize_t n = -FI_EAGAIN;
	uint32_t number;

	(void)state;
	t_sides_listen(&client, &server, &o);
	fids[0] = &server.eq->fid;
	assert_int_equal(fi_control(fids[0], FI_GETWAIT, &p.fd), 0);
	assert_int_equal(fi_trywait(server.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, &server.name, "data that has no room", 21), 0);
	while (n == -FI_EAGAIN && t_now() < end) {
		t_side_drive(&client);
		if (!fi_trywait(server.fabric, fids, 1))
			assert_int_equal(poll(&p, 1, 100) >= 0, 1);
		n = fi_eq_read(server.eq, &number, buf, sizeof(buf), FI_PEEK);
	}
	assert_int_equal(n, sizeof(buf)); /* of the data there comes what fits */
	assert_int_equal(fi_trywait(server.fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(fi_eq_read(server.eq, &number, buf, sizeof(buf) - 1, 0), -FI_ETOOSMALL);
	assert_int_equal(fi_eq_sread(server.eq, &number, buf, sizeof(buf), -1, 0), sizeof(buf));
	assert_int_equal(number, FI_CONNREQ);
	assert_int_equal(fi_reject(server.pep, entry->info->handle, NULL, 0), 0);
	fi_freeinfo(entry->info);
	assert_int_equal(fi_eq_sread(server.eq, &number, buf, sizeof(buf), 20, 0), -FI_EAGAIN);
	t_sides_close(&client, &server);
}

static void on_signal(int number)
{
	(void)number;
}

/* Who sleeps without end returns for a signal: a server that is to stop, say. */
static void woken_by_a_signal(void **state)
{
	const struct t_msg_options o = {.wait = FI_WAIT_FD};
	const struct itimerval soon = {.it_interval.tv_usec = 10000, .it_value.tv_usec = 10000}, never = {0};
	const struct sigaction action = {.sa_handler = on_signal};
	struct sigaction before;
	struct t_event e;
	uint32_t number;

	(void)state;
	t_side_open(&server, &o);
	t_side_listen(&server);
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(fi_eq_sread(server.eq, &number, &e, sizeof(e), T_PATIENCE, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_sread(server.eq, &number, &e, sizeof(e), -1, 0), -FI_EAGAIN);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	t_side_close(&server);
}

/* Many clients of one server, all at once, of one fabric. */
static void many(void **state)
{
	enum { N = 20 };
	struct fid_ep *ep[N], *accepted[N];
	unsigned connected[2] = {0, 0};
	struct t_event e;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	t_side_endpoint(&client, NULL);
	t_side_endpoint(&server, NULL);
	for (int i = 0; i < N; i++) {
		assert_int_equal(fi_endpoint(client.domain, client.info, &ep[i], NULL), 0);
		assert_int_equal(fi_ep_bind(ep[i], &client.eq->fid, 0), 0);
		assert_int_equal(fi_ep_bind(ep[i], &client.cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_connect(ep[i], &server.name, &i, sizeof(i)), 0);
	}
	for (int i = 0; i < N; i++) {
		int from;

		e = t_side_event(&server, &client, FI_CONNREQ);
		memcpy(&from, e.data, sizeof(from));
		assert_int_equal(fi_endpoint(server.domain, e.info, &accepted[from], NULL), 0);
		assert_int_equal(fi_ep_bind(accepted[from], &server.eq->fid, 0), 0);
		assert_int_equal(fi_ep_bind(accepted[from], &server.cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_accept(accepted[from], &from, sizeof(from)), 0);
		fi_freeinfo(e.info);
	}
	for (int i = 0; i < N; i++) {
		int from;

		e = t_side_event(&client, &server, FI_CONNECTED);
		memcpy(&from, e.data, sizeof(from));
		assert_ptr_equal(e.fid, &ep[from]->fid);
		connected[0]++;
		t_side_event(&server, &client, FI_CONNECTED);
		connected[1]++;
	}
	assert_true(connected[0] == N && connected[1] == N);
	for (int i = 0; i < N; i++) {
		assert_int_equal(fi_close(&ep[i]->fid), 0);
		assert_ptr_equal(t_side_event(&server, &client, FI_SHUTDOWN).fid, &accepted[i]->fid);
		assert_int_equal(fi_close(&accepted[i]->fid), 0);
	}
	t_sides_close(&client, &server);
}

/* One whom the server has accepted is connected before another one asks, though that one was heard of first. */
static void accepted_before_asked(void **state)
{
	struct t_side late;
	struct t_event e;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	t_side_open(&late, NULL);
	t_side_endpoint(&client, NULL);
	t_side_endpoint(&late, NULL);
	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
	e = t_side_event(&server, &client, FI_CONNREQ);
	t_side_endpoint(&server, e.info);
	fi_freeinfo(e.info);
	assert_int_equal(fi_accept(server.ep, NULL, 0), 0);
	assert_int_equal(fi_connect(late.ep, &server.name, NULL, 0), 0);
	t_side_no_event(&late, NULL);
	t_side_event(&client, NULL, FI_CONNECTED);
	assert_ptr_equal(t_side_event(&server, NULL, FI_CONNECTED).fid, &server.ep->fid);
	e = t_side_event(&server, NULL, FI_CONNREQ);
	assert_int_equal(fi_reject(server.pep, e.info->handle, NULL, 0), 0);
	fi_freeinfo(e.info);
	t_side_close(&late);
	t_sides_close(&client, &server);
}

static struct t_event request; /* that both threads answer at once */
static pthread_barrier_t both;

static void *open_with_it(void *arg)
{
	struct fid_ep **ep = arg;

	pthread_barrier_wait(&both);
	if (fi_endpoint(server.domain, request.info, ep, NULL))
		*ep = NULL;
	return NULL;
}

/* Two threads that open an endpoint with the same request: one of them gets it, and it can be rejected no more. */
static void answered_once(void **state)
{
	struct fid_ep *ep[2];
	pthread_t other;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 50; i++) {
		t_side_endpoint(&client, NULL);
		assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
		request = t_side_event(&server, &client, FI_CONNREQ);
		assert_int_equal(pthread_create(&other, NULL, open_with_it, &ep[1]), 0);
		open_with_it(&ep[0]);
		assert_int_equal(pthread_join(other, NULL), 0);
		assert_true(!ep[0] != !ep[1]);
		assert_int_equal(fi_reject(server.pep, request.info->handle, NULL, 0), -FI_EINVAL);
		assert_int_equal(fi_close(&ep[!ep[0]]->fid), 0);
		fi_freeinfo(request.info);
		assert_int_equal(fi_close(&client.ep->fid), 0);
		assert_int_equal(fi_close(&client.cq->fid), 0);
	}
	client.ep = NULL;
	client.cq = NULL;
	pthread_barrier_destroy(&both);
	t_sides_close(&client, &server);
}

/* Of one that is at loopback. */
static uint16_t port_of(struct fid *fid)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(fid, &name, &len), 0);
	assert_int_equal(ntohl(name.sin_addr.s_addr), INADDR_LOOPBACK);
	return ntohs(name.sin_port);
}

/* A passive endpoint has a port as soon as somebody asks for it, and listens there; nobody else has it meanwhile. */
static void named_before_it_listens(void **state)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct fid_pep *pep[2];
	uint16_t port[2];

	(void)state;
	t_side_open(&server, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_passive_ep(server.fabric, server.info, &pep[i], NULL), 0);
		assert_int_equal(fi_setname(&pep[i]->fid, &name, sizeof(name)), 0);
		port[i] = port_of(&pep[i]->fid);
		assert_int_not_equal(port[i], 0);
		assert_int_equal(fi_pep_bind(pep[i], &server.eq->fid, 0), 0);
	}
	assert_int_not_equal(port[0], port[1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_listen(pep[i]), 0);
		assert_int_equal(port_of(&pep[i]->fid), port[i]);
		assert_int_equal(fi_close(&pep[i]->fid), 0);
	}
	t_side_close(&server);
}

/* A port at loopback that somebody else may have, too, as long as he does not listen; its socket. */
static int hold_port(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	*name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)name, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)name, &len), 0);
	return fd;
}

/* The client's endpoint, to be from that address: by its info, or by fi_setname. */
static int open_from(struct sockaddr_in *name, bool by_info)
{
	struct fi_info *info = fi_dupinfo(client.info);
	int err;

	if (by_info) {
		free(info->src_addr);
		info->src_addr = malloc(sizeof(*name));
		memcpy(info->src_addr, name, sizeof(*name));
		info->src_addrlen = sizeof(*name);
	}
	err = fi_endpoint(client.domain, info, &client.ep, NULL);
	fi_freeinfo(info);
	return by_info ? err : fi_setname(&client.ep->fid, name, sizeof(*name));
}

/* An endpoint connects from the port that it was given, or says at once that it cannot: where somebody listens. */
static void connects_from_a_port(void **state)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct sockaddr_in own;
	struct t_event e;

	(void)state;
	for (int by_info = 0; by_info < 2; by_info++) {
		int fd = hold_port(&own);

		t_sides_listen(&client, &server, NULL);
		assert_int_equal(open_from((struct sockaddr_in *)&server.name, by_info), -FI_EADDRINUSE);
		if (!by_info)
			assert_int_equal(fi_close(&client.ep->fid), 0);
		assert_int_equal(open_from(&own, by_info), 0);
		assert_int_equal(fi_setname(&client.ep->fid, &server.name, sizeof(own)), -FI_EADDRINUSE);
		assert_int_equal(port_of(&client.ep->fid), ntohs(own.sin_port));
		assert_int_equal(fi_cq_open(client.domain, &attr, &client.cq, NULL), 0);
		assert_int_equal(fi_ep_bind(client.ep, &client.eq->fid, 0), 0);
		assert_int_equal(fi_ep_bind(client.ep, &client.cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
		e = t_side_event(&server, &client, FI_CONNREQ);
		assert_int_equal(((struct sockaddr_in *)e.info->dest_addr)->sin_port, own.sin_port);
		assert_int_equal(((struct sockaddr_in *)e.info->src_addr)->sin_port,
			((struct sockaddr_in *)&server.name)->sin_port); /* which is not taken from who listens */
		t_side_endpoint(&server, e.info);
		fi_freeinfo(e.info);
		assert_int_equal(fi_accept(server.ep, NULL, 0), 0);
		t_side_event(&client, &server, FI_CONNECTED);
		assert_int_equal(port_of(&client.ep->fid), ntohs(own.sin_port));
		t_sides_close(&client, &server);
		close(fd);
	}
}

/*
 * An endpoint that is opened with a passive one takes its name, and connects from there; one that
 * listens gives none.
 */
static void takes_the_place_of_a_passive_one(void **state)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct fid_ep *none;
	struct t_event e;
	uint16_t port;

	(void)state;
	t_sides_listen(&client, &server, NULL);
	server.info->handle = &server.pep->fid;
	assert_int_equal(fi_endpoint(server.domain, server.info, &none, NULL), -FI_EINVAL);
	server.info->handle = NULL;
	assert_int_equal(fi_passive_ep(client.fabric, client.info, &client.pep, NULL), 0);
	assert_int_equal(fi_setname(&client.pep->fid, &name, sizeof(name)), 0);
	port = port_of(&client.pep->fid);
	client.info->handle = &client.pep->fid;
	t_side_endpoint(&client, NULL);
	client.info->handle = NULL;
	assert_int_equal(fi_close(&client.pep->fid), 0);
	client.pep = NULL;
	assert_int_equal(port_of(&client.ep->fid), port);
	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
	e = t_side_event(&server, &client, FI_CONNREQ);
	assert_int_equal(ntohs(((struct sockaddr_in *)e.info->dest_addr)->sin_port), port);
	t_side_endpoint(&server, e.info);
	fi_freeinfo(e.info);
	assert_int_equal(fi_accept(server.ep, NULL, 0), 0);
	t_side_event(&client, &server, FI_CONNECTED);
	assert_int_equal(port_of(&client.ep->fid), port);
	t_sides_close(&client, &server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects),
		cmocka_unit_test(connects_by_ipv6),
		cmocka_unit_test(by_the_queue_of_the_domain),
		cmocka_unit_test(enabled_later),
		cmocka_unit_test(slow_programs),
		cmocka_unit_test(tells_of_the_nic),
		cmocka_unit_test(sleeps),
		cmocka_unit_test(woken_by_a_signal),
		cmocka_unit_test(many),
		cmocka_unit_test(accepted_before_asked),
		cmocka_unit_test(answered_once),
		cmocka_unit_test(named_before_it_listens),
		cmocka_unit_test(connects_from_a_port),
		cmocka_unit_test(takes_the_place_of_a_passive_one),
	};

	setenv("FI_ROPEWALK_CONNECT_WAIT", "1", 1);
	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
