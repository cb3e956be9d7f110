/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs of one user on one node: a process reaches those of its own job, and is told at once that it does not reach
 * those of another, whether it has their addresses in full or IP and port alone. A job on one node opens no network,
 * unless it was spawned: its parents may be elsewhere.
 */
#include "fi_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What one process tells another. */
struct name {
	unsigned char bytes[64];
};

/* Makes this process rank `rank` of 2 of that job. Before libfabric is used for the first time. */
static void join(const char *job, int rank)
{
	char path[] = "/tmp/rwk-test-job-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "job %s\nranks 2\nlayout 1x2\nrank %d\n", job, rank) > 0);
	close(fd);
	setenv("FI_ROPEWALK_JOB_FILE", path, 1);
	t_use_provider();
	fi_freeinfo(fi_allocinfo()); /* reads the variables; the file is read with the first endpoint */
}

/* The process that is sent to: it says its name, and answers calls until it is told to end. */
static int receiver(const char *job, uint32_t format, int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	struct name name = {{0}};
	struct t_domain d;
	struct t_end e;
	char in;

	join(job, 1);
	t_domain_open(&d, format, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	unlink(getenv("FI_ROPEWALK_JOB_FILE"));
	memcpy(name.bytes, e.name, e.name_len);
	assert_int_equal(fi_trecv(e.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
	assert_int_equal(write(fd, &name, sizeof(name)), sizeof(name));
	while (poll(&end, 1, 1) == 0)
		t_drive(e.cq);
	t_end_close(&e);
	t_domain_close(&d);
	return 0;
}

/* The result of a send: what the call said, or else its completion. */
static int result_of(struct t_end *e, fi_addr_t to)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry entry;
	int64_t end = t_now() + T_PATIENCE;
	ssize_t n = fi_tsend(e->ep, "x", 1, NULL, to, 0, NULL);

	if (n)
		return (int)n;
	while ((n = fi_cq_read(e->cq, &entry, 1)) == -FI_EAGAIN && t_now() < end)
		;
	if (n != -FI_EAVAIL)
		return n == 1 ? 0 : (int)n;
	assert_int_equal(fi_cq_readerr(e->cq, &err, 0), 1);
	return -err.err;
}

/* The process that sends: it exits with the positive errno of its send. */
static int sender(const char *job, uint32_t format, int fd)
{
	struct t_domain d;
	struct t_end e;
	struct name name;
	int rc;

	assert_int_equal(read(fd, &name, sizeof(name)), sizeof(name));
	join(job, 0);
	t_domain_open(&d, format, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	unlink(getenv("FI_ROPEWALK_JOB_FILE"));
	rc = result_of(&e, t_insert(&e, name.bytes));
	t_end_close(&e);
	t_domain_close(&d);
	return -rc;
}

static pid_t start(int (*run)(const char *job, uint32_t format, int fd), const char *job, uint32_t format, int fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(run(job, format, fd));
	return pid;
}

/* What a rank of job `from` gets who sends to one of job `to`. */
static int send_between(const char *from, const char *to, uint32_t format)
{
	int pair[2], status[2];
	pid_t pid[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid[0] = start(receiver, to, format, pair[0]);
	pid[1] = start(sender, from, format, pair[1]);
	assert_int_equal(waitpid(pid[1], &status[1], 0), pid[1]);
	assert_int_equal(write(pair[1], "", 1), 1);
	assert_int_equal(waitpid(pid[0], &status[0], 0), pid[0]);
	assert_true(WIFEXITED(status[0]) && WIFEXITED(status[1]));
	assert_int_equal(WEXITSTATUS(status[0]), 0);
	close(pair[0]);
	close(pair[1]);
	return -WEXITSTATUS(status[1]);
}

static void own_job(void **state)
{
	(void)state;
	assert_int_equal(send_between("oakum", "oakum", 0), 0);
	assert_int_equal(send_between("oakum", "oakum", FI_SOCKADDR_IN), 0);
}

static void other_job(void **state)
{
	(void)state;
	assert_int_equal(send_between("oakum", "hemp", 0), -FI_EHOSTUNREACH);
	assert_int_equal(send_between("oakum", "hemp", FI_SOCKADDR_IN), -FI_EACCES);
}

/* Is there a socket of that port in the list? */
static int listed(const char *path, unsigned port)
{
	FILE *f = fopen(path, "re");
	char line[256];
	unsigned at;
	int found = 0;

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		found |= sscanf(line, " %*u: %*x:%x", &at) == 1 && at == port;
	fclose(f);
	return found;
}

/* A rank of a job on this node alone: has its endpoint a network? */
static int has_network(const char *job, uint32_t format, int fd)
{
	const struct sockaddr_in *in;
	struct t_domain d;
	struct t_end e;
	int rc;

	(void)fd;
	join(job, 0);
	t_domain_open(&d, format, FI_THREAD_DOMAIN);
	t_end_open(&e, &d, NULL);
	unlink(getenv("FI_ROPEWALK_JOB_FILE"));
	in = (const void *)e.name;
	rc = listed("/proc/self/net/udp", ntohs(in->sin_port)) || listed("/proc/self/net/udp6", ntohs(in->sin_port));
	t_end_close(&e);
	t_domain_close(&d);
	return rc;
}

static int network_of_job(void)
{
	int status;
	pid_t pid = start(has_network, "oakum", FI_SOCKADDR_IN, -1);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void spawned_job(void **state)
{
	(void)state;
	assert_int_equal(network_of_job(), 0);
	setenv("OMPI_PARENT_PORT", "1889730561.0:2145698", 1);
	assert_int_equal(network_of_job(), 1);
	unsetenv("OMPI_PARENT_PORT");
	setenv("PMI_SPAWNED", "0", 1);
	assert_int_equal(network_of_job(), 0);
	setenv("PMI_SPAWNED", "1", 1);
	assert_int_equal(network_of_job(), 1);
	unsetenv("PMI_SPAWNED");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_job),
		cmocka_unit_test(other_job),
		cmocka_unit_test(spawned_job),
	};

	/* The test's own process never uses libfabric: each of its children reads the variables anew. */
	return cmocka_run_group_tests_name("libfabric/jobs", tests, NULL, NULL);
}
