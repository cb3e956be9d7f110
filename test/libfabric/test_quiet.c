/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that asks for the provider and then does not use it has nothing of it: before the first endpoint (with
 * manual progress: before it is enabled) there is no thread, no socket and no other descriptor, whatever else is open.
 * What an endpoint brings goes with it.
 */
#include "fi_test.h"

#include <dirent.h>
#include <rdma/fi_eq.h>
#include <stdio.h>
#include <unistd.h>

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

/* A thread that has been joined may be listed for a moment still. */
static void await_end(unsigned threads)
{
	for (int64_t end = t_now() + T_PATIENCE; now().threads > threads && t_now() < end;)
		usleep(1000);
}

struct what {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void open_domain(struct what *w, enum fi_progress progress, const struct taken *none)
{
	struct fi_info *hints = t_hints();

	setenv("FI_PROVIDER", "ropewalk", 1); /* what others open when they are asked is theirs */
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = progress;
	assert_int_equal(t_getinfo(hints, &w->info), 0);
	fi_freeinfo(hints);
	assert_int_equal(w->info->domain_attr->data_progress, progress);
	same_as(none, "fi_getinfo");
	assert_int_equal(fi_fabric(w->info->fabric_attr, &w->fabric, NULL), 0);
	same_as(none, "fi_fabric");
	assert_int_equal(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
	same_as(none, "fi_domain");
}

static void open_queues(struct what *w, const struct taken *none)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	assert_int_equal(fi_av_open(w->domain, &av_attr, &w->av, NULL), 0);
	assert_int_equal(fi_cq_open(w->domain, &cq_attr, &w->cq, NULL), 0);
	same_as(none, "fi_av_open, fi_cq_open");
}

static void bind_all(struct what *w)
{
	assert_int_equal(fi_ep_bind(w->ep, &w->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(w->ep, &w->cq->fid, FI_SEND | FI_RECV), 0);
}

static void close_all(struct what *w, const struct taken *none)
{
	assert_int_equal(fi_close(&w->ep->fid), 0);
	assert_int_equal(fi_close(&w->cq->fid), 0);
	assert_int_equal(fi_close(&w->av->fid), 0);
	assert_int_equal(fi_close(&w->domain->fid), 0);
	assert_int_equal(fi_close(&w->fabric->fid), 0);
	fi_freeinfo(w->info);
	await_end(none->threads);
	same_as(none, "after all is closed");
}

static void nothing_before_an_endpoint(void **state)
{
	struct taken none = now(), some;
	struct what w;

	(void)state;
	open_domain(&w, FI_PROGRESS_MANUAL, &none);
	open_queues(&w, &none);
	assert_int_equal(fi_endpoint(w.domain, w.info, &w.ep, NULL), 0);
	same_as(&none, "fi_endpoint");
	bind_all(&w);
	same_as(&none, "fi_ep_bind");

	assert_int_equal(fi_enable(w.ep), 0);
	some = now();
	assert_true(some.descriptors > none.descriptors);
	assert_int_equal(some.threads, none.threads);
	close_all(&w, &none);
}

/* Where progress is automatic, its thread comes with the first endpoint, and not before; there is one. */
static void no_thread_before_an_endpoint(void **state)
{
	struct taken none = now();
	struct fid_ep *second;
	struct what w;

	(void)state;
	open_domain(&w, FI_PROGRESS_AUTO, &none);
	open_queues(&w, &none);
	assert_int_equal(fi_endpoint(w.domain, w.info, &w.ep, NULL), 0);
	bind_all(&w);
	assert_int_equal(fi_enable(w.ep), 0);
	assert_int_equal(now().threads, none.threads + 1);
	assert_int_equal(fi_endpoint(w.domain, w.info, &second, NULL), 0);
	assert_int_equal(now().threads, none.threads + 1);
	assert_int_equal(fi_close(&second->fid), 0);
	close_all(&w, &none);
}

/* So it does for connected endpoints, and so do the descriptors. */
static void nothing_before_a_connected_endpoint(void **state)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG};
	struct fi_info *hints = t_hints();
	struct taken none = now();
	struct what w;

	(void)state;
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	assert_int_equal(t_getinfo(hints, &w.info), 0);
	assert_int_equal(fi_fabric(w.info->fabric_attr, &w.fabric, NULL), 0);
	same_as(&none, "fi_getinfo, fi_fabric");
	assert_int_equal(fi_domain(w.fabric, w.info, &w.domain, NULL), 0);
	assert_int_equal(fi_cq_open(w.domain, &attr, &w.cq, NULL), 0);
	assert_int_equal(fi_cq_read(w.cq, NULL, 0), -FI_EAGAIN);
	same_as(&none, "fi_domain, fi_cq_open");
	assert_int_equal(fi_endpoint(w.domain, w.info, &w.ep, NULL), 0);
	assert_int_equal(now().threads, none.threads + 1);
	assert_true(now().descriptors > none.descriptors);
	assert_int_equal(fi_close(&w.ep->fid), 0);
	assert_int_equal(fi_close(&w.cq->fid), 0);
	assert_int_equal(fi_close(&w.domain->fid), 0);
	await_end(none.threads);
	assert_int_equal(now().threads, none.threads);
	assert_int_equal(fi_close(&w.fabric->fid), 0);
	same_as(&none, "after all is closed");
	fi_freeinfo(w.info);
	fi_freeinfo(hints);
}

/** How many descriptors that one of epoll looks at. */
static unsigned watched(int epoll)
{
	char path[64], line[256];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epoll);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "tfd:", 4);
	fclose(f);
	return n;
}

/* A queue that is older than the adapter is woken by it all the same. */
static void older_queue_is_woken(void **state)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	struct fi_info *hints = t_hints();
	int older, younger;
	struct fid_cq *second;
	struct what w;

	(void)state;
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	assert_int_equal(t_getinfo(hints, &w.info), 0);
	assert_int_equal(fi_fabric(w.info->fabric_attr, &w.fabric, NULL), 0);
	assert_int_equal(fi_domain(w.fabric, w.info, &w.domain, NULL), 0);
	assert_int_equal(fi_cq_open(w.domain, &attr, &w.cq, NULL), 0);
	assert_int_equal(fi_control(&w.cq->fid, FI_GETWAIT, &older), 0);
	assert_int_equal(fi_endpoint(w.domain, w.info, &w.ep, NULL), 0);
	assert_int_equal(fi_cq_open(w.domain, &attr, &second, NULL), 0);
	assert_int_equal(fi_control(&second->fid, FI_GETWAIT, &younger), 0);
	assert_true(watched(younger) > 1); /* than by other threads */
	assert_int_equal(watched(older), watched(younger));
	assert_int_equal(fi_close(&w.ep->fid), 0);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_close(&w.cq->fid), 0);
	assert_int_equal(fi_close(&w.domain->fid), 0);
	assert_int_equal(fi_close(&w.fabric->fid), 0);
	fi_freeinfo(w.info);
	fi_freeinfo(hints);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_before_an_endpoint),
		cmocka_unit_test(no_thread_before_an_endpoint),
		cmocka_unit_test(nothing_before_a_connected_endpoint),
		cmocka_unit_test(older_queue_is_woken),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
