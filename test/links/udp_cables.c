/* SPDX-License-Identifier: BSD-3-Clause */
#include "udp_cables.h"

const struct udp_family families[] = {{"10.9.0.1", "10.9.0.2", "10.9.1.3", 28}, {"fd09::1", "fd09::2", "fd19::3", 48}};

struct udp_end *open_with(int host, const char *ip, struct rwk_udp_attr attr)
{
	struct udp_end *e;

	udp_host_enter(host);
	udp_ip(ip, attr.ip);
	e = udp_end_open_with(&attr);
	udp_host_enter(0);
	return e;
}

struct udp_end *open_at(int host, const char *ip, int receive_buffer)
{
	return open_with(host, ip, (struct rwk_udp_attr){.receive_buffer = receive_buffer});
}

size_t mtu_to(struct udp_end *a, const struct udp_end *b)
{
	return a->link->ops->mtu(a->link, &b->here);
}

void set_mtu(int mtu)
{
	udp_host_run(0, "ip link set v0 mtu %d", mtu);
	udp_host_run(1, "ip link set v1 mtu %d", mtu);
}

void check_arrives(struct udp_end *a, struct udp_end *b, size_t len)
{
	b->arrived = 0;
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(udp_send(a, &b->here, i, len), 0);
	udp_flush(a);
	assert_int_equal(udp_send(a, &b->here, 20, len), 0);
	udp_flush(a);
	udp_receive(b, 21);
	assert_int_equal(b->arrived, 21);
	assert_int_equal(b->damaged, 0);
	for (unsigned i = 0; i < 21; i++)
		assert_int_equal(b->length[i], len);
}

void wait_for_carrier(int host, const char *name)
{
	udp_host_run(host,
		"for i in $(seq 100); do ip link show %s | grep -q 'state UP' && exit 0; sleep 0.1; done; exit 1",
		name);
}

int plug_in(void **state)
{
	(void)state;
	/* For test_own_ip: it is the first in every list. */
	udp_host_run(2, "ip link add abr0 type bridge");
	udp_host_cable(0, "v0", 1, "v1", 9000);
	udp_host_cable(1, "w1", 2, "w2", 9000);
	udp_host_run(0, "ip addr add 10.9.0.1/24 dev v0 && ip addr add fd09::1/64 dev v0 nodad");
	udp_host_run(1, "ip addr add 10.9.0.2/24 dev v1 && ip addr add fd09::2/64 dev v1 nodad");
	udp_host_run(1, "ip addr add 10.9.1.2/24 dev w1 && ip addr add fd19::2/64 dev w1 nodad");
	udp_host_run(2, "ip addr add 10.9.1.3/24 dev w2 && ip addr add fd19::3/64 dev w2 nodad");
	wait_for_carrier(0, "v0");
	wait_for_carrier(2, "w2");
	udp_host_run(1, "echo 1 >/proc/sys/net/ipv4/ip_forward && echo 1 >/proc/sys/net/ipv6/conf/all/forwarding");
	udp_host_run(0, "ip route add 10.9.1.0/24 via 10.9.0.2 && ip route add fd19::/64 via fd09::2");
	udp_host_run(2, "ip route add 10.9.0.0/24 via 10.9.1.2 && ip route add fd09::/64 via fd19::2");
	return 0;
}
