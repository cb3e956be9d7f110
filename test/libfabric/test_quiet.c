/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that asks for the provider and then does not use it has nothing of it: before the first endpoint is enabled
 * there is no thread, no socket and no other descriptor, whatever else is open. What an endpoint brings goes with it.
 */
#include "fi_test.h"

#include <dirent.h>
#include <rdma/fi_eq.h>

/** Entries of a folder of /proc/self; that of descriptors has its own among them, each time. */
static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct taken {
	unsigned descriptors, threads;
};

static struct taken now(void)
{
	return (struct taken){entries("/proc/self/fd"), entries("/proc/self/task")};
}

static void same_as(const struct taken *before, const char *what)
{
	struct taken t = now();

	if (t.descriptors != before->descriptors || t.threads != before->threads)
		fail_msg("%s: %u descriptors and %u threads, before it was %u and %u", what, t.descriptors, t.threads,
			before->descriptors, before->threads);
}

static void nothing_before_an_endpoint(void **state)
{
	struct fi_info *hints = t_hints(), *info;
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct taken none, some;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;

	(void)state;
	setenv("FI_PROVIDER", "ropewalk", 1); /* what others open when they are asked is theirs */
	none = now();
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	assert_int_equal(t_getinfo(hints, &info), 0);
	same_as(&none, "fi_getinfo");
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	same_as(&none, "fi_fabric");
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	same_as(&none, "fi_domain");
	assert_int_equal(fi_av_open(domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	same_as(&none, "fi_av_open, fi_cq_open");
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	same_as(&none, "fi_endpoint");
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV), 0);
	same_as(&none, "fi_ep_bind");

	assert_int_equal(fi_enable(ep), 0);
	some = now();
	assert_true(some.descriptors > none.descriptors);
	assert_int_equal(some.threads, none.threads);

	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	same_as(&none, "after all is closed");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_before_an_endpoint),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
