/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams between two processes, over loopback or between two hosts that share this machine: what is left for
 * anything that travels in UDP. Both sides poll. */
#define _GNU_SOURCE
#include "bench/machine/mate.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BURST          ((size_t)60 << 10) /* the kernel takes less than 64 KB at once */
#define BURSTS_ON_WAY  2                  /* as many as the usual receive buffer, 212,992 bytes, holds for sure */
#define SPINS_PER_LOOK 100000

static int own = -1; /* this side's socket, connected to the other's */

static void call_failed(const char *call)
{
	fprintf(stderr, "limits: %s: %s, although it worked before\n", call, strerror(errno));
	exit(2);
}

static void give(struct mate *m, size_t size)
{
	if (send(own, m->private_data, size, 0) != (ssize_t)size)
		call_failed("send");
}

/* Takes a datagram, or several that were one burst; returns the bytes. */
static size_t take(struct mate *m)
{
	double since = 0;
	ssize_t n;

	for (unsigned long spins = 1;; spins++) {
		n = recv(own, m->private_data + MATE_LARGEST, MATE_LARGEST, MSG_DONTWAIT);
		if (n >= 0)
			return (size_t)n;
		if (errno != EAGAIN)
			call_failed("recv");
		if (spins % SPINS_PER_LOOK == 0)
			mate_look_round(m, &since);
	}
}

static void pingpong(struct mate *m, size_t size, uint64_t iterations)
{
	for (uint64_t i = 0; i < iterations; i++) {
		if (m->side)
			take(m);
		give(m, size);
		if (!m->side)
			take(m);
	}
}

/* That nothing is lost is seen to over shared memory: the receiver says there what it has taken. */
static void bursts(struct mate *m, size_t size, uint64_t iterations)
{
	uint64_t *taken = &m->shared->taken[1].word, got = 0;

	if (m->side) {
		while (got < iterations * size) {
			got += take(m);
			__atomic_store_n(taken, got, __ATOMIC_RELEASE);
		}
		return;
	}
	for (uint64_t i = 0; i < iterations; i++) {
		if (i >= BURSTS_ON_WAY)
			mate_await(m, taken, (i + 1 - BURSTS_ON_WAY) * size);
		give(m, size);
	}
	mate_await(m, taken, iterations * size);
}

/* Moves this process to its host's network. Returns NULL or the call that failed. */
static const char *enter_host(pid_t keeper)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", keeper);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return "open of a host's network";
	err = setns(fd, CLONE_NEWNET);
	close(fd);
	return err ? "setns to a host's network" : NULL;
}

/* The first address that others can reach, or loopback where that is wanted. */
static bool own_address(bool loopback, struct sockaddr_in *address)
{
	struct ifaddrs *all, *i;

	if (getifaddrs(&all))
		return false;
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
			!(i->ifa_flags & IFF_LOOPBACK) == !loopback)
			break;
	if (i)
		memcpy(address, i->ifa_addr, sizeof(*address));
	freeifaddrs(all);
	errno = EADDRNOTAVAIL;
	return i;
}

/* Makes this side's socket, at an address that the other side is told. Returns NULL or what failed. */
static const char *open_socket(struct mate *m)
{
	struct sockaddr_in *address = &m->shared->address[m->side];
	socklen_t len = sizeof(*address);
	const char *failed = NULL;
	int on = 1;

	if (m->between[m->side])
		failed = enter_host(m->between[m->side]);
	if (failed)
		return failed;
	if (!own_address(!m->between[m->side], address))
		return "an IPv4 address";
	address->sin_port = 0;
	own = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (own < 0)
		return "socket";
	if (setsockopt(own, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)))
		return "UDP_GRO";
	if (bind(own, (struct sockaddr *)address, len) || getsockname(own, (struct sockaddr *)address, &len))
		return "bind";
	return NULL;
}

/* Whether both sides have their sockets. */
static bool connected(struct mate *m)
{
	const char *failed = open_socket(m);
	bool both;

	m->shared->line[m->side].word = !failed;
	if (failed)
		fprintf(stderr, "limits: process %d: %s: %s; UDP is not measured\n", m->side, failed, strerror(errno));
	mate_meet(m);
	both = m->shared->line[0].word && m->shared->line[1].word;
	if (both && connect(own, (struct sockaddr *)&m->shared->address[!m->side], sizeof(m->shared->address[0])))
		call_failed("connect");
	mate_meet(m);
	return both;
}

/* Bytes of payload in the largest packet on the way to the other side. */
static size_t largest_packet(void)
{
	int mtu;
	socklen_t len = sizeof(mtu);

	if (getsockopt(own, IPPROTO_IP, IP_MTU, &mtu, &len))
		call_failed("IP_MTU");
	return (size_t)mtu - 28; /* without the headers of IPv4 and UDP */
}

void measure_udp(struct mate *m)
{
	const char *where = m->between[0] ? "UDP between hosts" : "UDP over loopback";
	char name[64];
	size_t most;

	if (!connected(m))
		return;
	most = largest_packet();
	snprintf(name, sizeof(name), "%s, one way", where);
	for (size_t size = 8; size <= 8192 && size <= most; size *= size == 8 ? 128 : 8)
		mate_measure(m, &(struct mate_measurement){
					.name = name, .size = size, .unit = MATE_US, .operations = 2, .run = pingpong});
	for (int packet = 1024; packet <= 8192 && (size_t)packet <= most; packet *= 2) {
		if (setsockopt(own, IPPROTO_UDP, UDP_SEGMENT, &packet, sizeof(packet)))
			call_failed("UDP_SEGMENT");
		snprintf(name, sizeof(name), "%s, bursts of %d-byte packets", where, packet);
		mate_measure(m, &(struct mate_measurement){.name = name,
					.size = BURST - BURST % (size_t)packet,
					.unit = MATE_MB_S,
					.operations = 1,
					.run = bursts});
	}
	close(own);
}
