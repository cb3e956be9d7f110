/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: each type takes what it says, and refuses the rest with a reason that names what would be right. */
#include "rwk_test.h"

#include "base/log.h"
#include "base/param.h"

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
		cmocka_unit_test(environment),
		cmocka_unit_test(defaults),
	};

	return cmocka_run_group_tests_name("base/param", tests, NULL, NULL);
}
