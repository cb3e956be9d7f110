/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of interfaces: what can be read, and who is allowed by it. */
#include "rwk_test.h"

#include "base/interfaces.h"

#include <arpa/inet.h>

static void to_ip(const char *text, uint8_t ip[16])
{
	memset(ip, 0, 16);
	if (inet_pton(AF_INET, text, ip + 12) == 1)
		ip[10] = ip[11] = 0xff;
	else
		assert_int_equal(inet_pton(AF_INET6, text, ip), 1);
}

/* Lists that can be read, and those that cannot, with what is wrong in them. */
static void reading(void **state)
{
	static const struct {
		const char *list, *wrong; /* NULL: good */
	} cases[] = {
		{"", NULL},
		{"eth0", NULL},
		{" eth0 , !eth1 ", NULL},
		{"enp0s31f6.100", NULL},
		{"10.0.0.0/8,!10.1.0.0/16", NULL},
		{"0.0.0.0/0,::/0,255.255.255.255/32,2001:db8::/128", NULL},
		{"fe80::1", NULL},
		{"123456789012345", NULL},
		{",", "\"\""},
		{"eth0,", "\"\""},
		{"eth0,,eth1", "\"\""},
		{"!", "\"!\""},
		{"eth0,!", "\"!\""},
		{"!!eth0", "\"!!eth0\""},
		{"eth0 eth1", "\"eth0 eth1\""},
		{"1234567890123456", "\"1234567890123456\""},
		{"10.0.0.0/33", "\"10.0.0.0/33\""},
		{"10.0.0.0/", "\"10.0.0.0/\""},
		{"10.0.0.0/8x", "\"10.0.0.0/8x\""},
		{"10.0.0.0/-8", "\"10.0.0.0/-8\""},
		{"10.0.0.0/4294967304", "\"10.0.0.0/4294967304\""},
		{"10.0.0/8", "\"10.0.0/8\""},
		{"10.0.0.256", "\"10.0.0.256\""},
		{"eth0/8", "\"eth0/8\""},
		{"::/129", "\"::/129\""},
		{"2001:db8:::1", "\"2001:db8:::1\""},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"\"aaaaaaa"},
	};
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = rwk_interfaces_check(cases[i].list, why, sizeof(why));

		if (rc != (cases[i].wrong ? -EINVAL : 0))
			fail_msg("\"%s\" gives %d", cases[i].list, rc);
		if (rc && !strstr(why, cases[i].wrong))
			fail_msg("\"%s\" is said to be %s", cases[i].list, why);
	}
	assert_int_equal(rwk_interfaces_check(NULL, why, sizeof(why)), 0);
}

/* Which of a host's addresses a list allows. */
static void allowing(void **state)
{
	static const struct {
		const char *list, *name, *ip;
		bool allowed;
	} cases[] = {
		{NULL, "eth0", "10.1.2.3", true},
		{"", "eth0", "10.1.2.3", true},
		{"eth0", "eth0", "10.1.2.3", true},
		{"eth0", "eth1", "10.1.2.3", false},
		{"eth0", "eth00", "10.1.2.3", false},
		{"eth*", "eth12", "10.1.2.3", true},
		{"eth?", "eth12", "10.1.2.3", false},
		{"!docker*", "docker0", "172.17.0.1", false},
		{"!docker*", "eth0", "10.1.2.3", true},
		{"eth*,!eth1", "eth1", "10.1.2.3", false},
		{"!eth1,eth*", "eth1", "10.1.2.3", false},
		{"!eth1,eth*", "ib0", "10.1.2.3", false},
		{"eth*, !eth1", "eth0", "10.1.2.3", true},
		{"10.0.0.0/8", "eth0", "10.255.255.255", true},
		{"10.0.0.0/8", "eth0", "11.0.0.0", false},
		{"10.1.2.3", "eth0", "10.1.2.3", true},
		{"10.1.2.3", "eth0", "10.1.2.2", false},
		{"192.168.128.0/17", "eth0", "192.168.128.1", true},
		{"192.168.128.0/17", "eth0", "192.168.127.1", false},
		{"10.0.0.0/31", "eth0", "10.0.0.1", true},
		{"10.0.0.0/31", "eth0", "10.0.0.2", false},
		{"0.0.0.0/0", "eth0", "9.9.9.9", true},
		{"0.0.0.0/0", "eth0", "2001:db8::1", false},
		{"::/0", "eth0", "2001:db8::1", true},
		{"2001:db8::/33", "eth0", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "eth0", "2001:db8:8000::1", false},
		{"eth0,10.0.0.0/8,!10.1.0.0/16", "ib0", "10.2.0.1", true},
		{"eth0,10.0.0.0/8,!10.1.0.0/16", "eth0", "10.1.0.1", false},
		{"eth0,10.0.0.0/8,!10.1.0.0/16", "eth0", "172.16.0.1", true},
	};
	uint8_t ip[16];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		to_ip(cases[i].ip, ip);
		if (rwk_interfaces_allow(cases[i].list, cases[i].name, ip) != cases[i].allowed)
			fail_msg("\"%s\" %s %s with %s", cases[i].list, cases[i].allowed ? "refuses" : "allows",
				cases[i].name, cases[i].ip);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading),
		cmocka_unit_test(allowing),
	};

	return cmocka_run_group_tests_name("base/interfaces", tests, NULL, NULL);
}
