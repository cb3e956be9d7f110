/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of interfaces: what can be read, and how it is taken apart. */
#include "rwk_test.h"

#include "base/interfaces.h"

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
		{"!", "\"\""},
		{"eth0,!", "\"\""},
		{"docker*", "\"docker*\""},
		{"eth0:1", "\"eth0:1\""},
		{"!!eth0", "\"!eth0\""},
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

/* What to use and what not to use, in the order in which it was written. */
static void splitting(void **state)
{
	static const struct {
		const char *list, *include, *exclude;
	} cases[] = {
		{NULL, "", ""},
		{"", "", ""},
		{"eth0", "eth0", ""},
		{"!eth0", "", "eth0"},
		{"eth0,10.0.0.0/8,!docker0", "eth0,10.0.0.0/8", "docker0"},
		{"!a,b,!c,d", "b,d", "a,c"},
		{" eth0 ,\t!eth1 , fd00::/8 ", "eth0,fd00::/8", "eth1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t room = cases[i].list ? strlen(cases[i].list) + 1 : 1;
		char *include = malloc(room), *exclude = malloc(room);

		assert_non_null(include);
		assert_non_null(exclude);
		rwk_interfaces_split(cases[i].list, include, exclude);
		assert_string_equal(include, cases[i].include);
		assert_string_equal(exclude, cases[i].exclude);
		free(include);
		free(exclude);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading),
		cmocka_unit_test(splitting),
	};

	return cmocka_run_group_tests_name("base/interfaces", tests, NULL, NULL);
}
