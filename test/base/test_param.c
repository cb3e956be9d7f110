/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: each type takes what it says, and refuses the rest with a reason that names what would be right. */
#include "rwk_test.h"

#include "base/log.h"
#include "base/param.h"
#include "rc/rc.h"
#include "wire/wire.h"

static char last_warning[1024];

static void keep_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	snprintf(last_warning, sizeof(last_warning), "%s", text);
}

/* A size takes decimal, hexadecimal and a unit, and refuses what is out of its range, with the range in the reason. */
static void sizes(void **state)
{
	const struct rwk_param *p = rwk_param_find("eager_max");
	static const struct {
		const char *text;
		size_t value; /* 0: refused */
	} cases[] = {{"256", 256}, {"0300", 300}, {"0x1000", 4096}, {"8K", 8192}, {"1m", 1 << 20}, {"255", 0},
		{"2M", 0}, {"", 0}, {"-1", 0}, {"8KB", 0}, {"K", 0}, {"99999999999999999999", 0},
		{"18014398509481984K", 0}, {"18014398509481985K", 0}};
	struct rwk_params v;
	char why[160];

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = rwk_param_set(&v, p, cases[i].text, why, sizeof(why));

		if (cases[i].value) {
			assert_int_equal(rc, 0);
			assert_int_equal(v.eager_max, cases[i].value);
		} else {
			assert_int_equal(rc, -EINVAL);
			assert_non_null(strstr(why, "256 to 1048576"));
		}
	}
}

/* Values of the other parameters: what is set, and the reason given where it is refused. */
static void values(void **state)
{
	static const struct {
		const char *name, *text;
		const char *shown; /* NULL: refused */
		const char *why;
	} cases[] = {
		{"ports", "any", "any", NULL},
		{"ports", "ANY", "any", NULL},
		{"ports", "4791", "4791", NULL},
		{"ports", "1-65535", "1-65535", NULL},
		{"ports", "5000-5000", "5000", NULL},
		{"ports", "0", NULL, "no range of ports; any, or first-last from 1 to 65535 would be right"},
		{"ports", "", NULL, "first-last"},
		{"ports", "-", NULL, "first-last"},
		{"ports", "5001-5000", NULL, "first-last"},
		{"ports", "5000-", NULL, "first-last"},
		{"ports", "-5000", NULL, "first-last"},
		{"ports", "5000-65536", NULL, "first-last"},
		{"ports", "70000", NULL, "first-last"},
		{"ports", "4294967297", NULL, "first-last"},
		{"ports", "5000-6000-", NULL, "first-last"},
		{"ports", "5000 - 6000", NULL, "first-last"},
		{"ports", "5000,6000", NULL, "first-last"},
		{"pmtu", "auto", "auto", NULL},
		{"pmtu", "256", "256", NULL},
		{"pmtu", "4096", "4096", NULL},
		{"pmtu", "1500", NULL, "not one of: auto 256 512 1024 2048 4096"},
		{"pmtu", "8192", NULL, "not one of: auto"},
		{"pmtu", "0", NULL, "not one of: auto"},
		{"window", "0", "0", NULL},
		{"window", "256", "256", NULL},
		{"window", "257", NULL, "0 to 256"},
		{"window", "-1", NULL, "0 to 256"},
		{"receive_buffer", "0", "0", NULL},
		{"receive_buffer", "208K", "212992", NULL},
		{"receive_buffer", "1G", "1073741824", NULL},
		{"receive_buffer", "2G", NULL, "0 to 1073741824"},
		{"rendezvous", "Read", "read", NULL},
		{"rendezvous", "write", "write", NULL},
		{"rendezvous", "rdma", NULL, "not one of: auto read write"},
		{"udp", "off", "no", NULL},
		{"tcp", "on", "yes", NULL},
		{"udp", "auto", NULL, "not one of: yes no"},
		{"stats", "1", "yes", NULL},
		{"stats", "2", NULL, "not one of: yes no"},
		{"interfaces", "eth0,!docker0", "eth0,!docker0", NULL},
		{"interfaces", "", "", NULL},
		{"interfaces", "eth0,10.0.0.0/33", NULL,
			"no list of interfaces: \"10.0.0.0/33\" is neither a name nor a network; one as "
			"eth0,10.0.0.0/8,!docker0 would be right"},
		{"pcap", "/tmp/%r.pcapng", "/tmp/%r.pcapng", NULL},
		{"job_key", "correct horse", "(set)", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rwk_param *p = rwk_param_find(cases[i].name);
		struct rwk_params v, before;
		char why[200] = "", shown[100];
		int rc;

		assert_non_null(p);
		memset(&v, 0, sizeof(v));
		before = v;
		rc = rwk_param_set(&v, p, cases[i].text, why, sizeof(why));
		if (!cases[i].shown && (rc != -EINVAL || !strstr(why, cases[i].why) || memcmp(&v, &before, sizeof(v))))
			fail_msg("%s=%s gives %d and \"%s\"", p->name, cases[i].text, rc, why);
		if (cases[i].shown && (rc || strcmp(rwk_param_show(&v, p, shown, sizeof(shown)), cases[i].shown)))
			fail_msg("%s=%s gives %d and is shown as %s", p->name, cases[i].text, rc, shown);
	}
}

/* A PMTU in bytes, and bounds that are the machines'. */
static void packet_bounds(void **state)
{
	const struct rwk_param *p = rwk_param_find("pmtu");
	struct rwk_params v = {0};
	char why[160], text[8];

	(void)state;
	assert_int_equal(rwk_param_pmtu(&v), 0);
	for (unsigned bytes = 256; bytes <= RWK_WIRE_PMTU_MAX; bytes *= 2) {
		snprintf(text, sizeof(text), "%u", bytes);
		assert_int_equal(rwk_param_set(&v, p, text, why, sizeof(why)), 0);
		assert_int_equal(rwk_param_pmtu(&v), bytes);
	}
	assert_int_equal(rwk_param_find("window")->max, RWK_RC_WINDOW_MAX);
}

/* A bad value in the environment leaves the default in force and is warned of, with variable, value and the good ones.
 */
static void environment(void **state)
{
	(void)state;
	rwk_log_set_sink(keep_warning);
	setenv("FI_ROPEWALK_LINK", "carrier-pigeon", 1);
	setenv("FI_ROPEWALK_EXPLAIN", "On", 1);
	assert_int_equal(rwk_param_load(), 1);
	assert_int_equal(rwk_params.link, RWK_LINK_AUTO);
	assert_true(rwk_params.explain);
	assert_string_equal(
		last_warning, "FI_ROPEWALK_LINK=carrier-pigeon is not one of: auto shm udp tcp; auto is used");
	setenv("FI_ROPEWALK_LINK", "shm", 1);
	assert_int_equal(rwk_param_load(), 0);
	assert_int_equal(rwk_params.link, RWK_LINK_SHM);
}

/* Every default in the table is a valid value of its own type, and shows as it was written. */
static void defaults(void **state)
{
	char why[160], buf[160];
	struct rwk_params v = {0};

	(void)state;
	for (size_t i = 0; i < rwk_param_count; i++) {
		const struct rwk_param *p = &rwk_param_table[i];

		if (!p->initial)
			continue;
		assert_int_equal(rwk_param_set(&v, p, p->initial, why, sizeof(why)), 0);
		assert_int_equal(rwk_param_set(&v, p, rwk_param_show(&v, p, buf, sizeof(buf)), why, sizeof(why)), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(values),
		cmocka_unit_test(packet_bounds),
		cmocka_unit_test(environment),
		cmocka_unit_test(defaults),
	};

	return cmocka_run_group_tests_name("base/param", tests, NULL, NULL);
}
