/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address vectors that processes share by name: what one puts in all find under the same number, some may only read,
 * the name goes with the last of them, and who is killed leaves nothing that stands in anybody's way.
 */
#define _GNU_SOURCE /* fallocate */
#include "fi_pair.h"
#include "own_port.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t test_process;

/* A name of this test's own; a slash is as good as any letter. */
static const char *name_of(const char *what)
{
	static char name[64];

	snprintf(name, sizeof(name), "test/%s-%d", what, (int)test_process);
	return name;
}

static const char *object_of(const char *what)
{
	static char name[128];

	snprintf(name, sizeof(name), "/ropewalk-av-%u-test%%2f%s-%d", (unsigned)geteuid(), what, (int)test_process);
	return name;
}

static bool is_left(const char *what)
{
	int fd = shm_open(object_of(what), O_RDONLY, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* After each test; of one that has failed, too, nothing stays on the machine. */
static int nothing_left(void **state)
{
	static const char *const whats[] = {"one", "left", "churn", "talk", "large", "limited", "orphan"};
	int left = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
		left += !shm_unlink(object_of(whats[i]));
	return -left;
}

static int open_av(struct t_domain *d, const char *what, uint64_t flags, size_t *count, struct fid_av **av)
{
	struct fi_av_attr attr = {.name = name_of(what), .flags = flags};
	int err = fi_av_open(d->domain, &attr, av, NULL);

	for (fi_addr_t i = 0; !err && i < 64; i++)
		assert_int_equal(((fi_addr_t *)attr.map_addr)[i], i); /* where fabtests, too, look for numbers */
	if (count)
		*count = attr.count;
	return err;
}

static struct sockaddr_in address(unsigned i)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(1 + i % 60000))};

	in.sin_addr.s_addr = htonl(0x0a000001 + i / 60000);
	return in;
}

static void assert_at(struct fid_av *av, fi_addr_t number, unsigned i)
{
	struct sockaddr_in want = address(i), got;
	size_t len = sizeof(got);

	assert_int_equal(fi_av_lookup(av, number, &got, &len), 0);
	assert_memory_equal(&got, &want, sizeof(got));
}

#define MANY 1000 /* more than the table has room for at first */

/* The one who makes it. */
static void maker(struct t_process *p)
{
	struct sockaddr_in in;
	struct t_domain d;
	struct fid_av *av;
	fi_addr_t number;
	size_t count;

	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	assert_int_equal(open_av(&d, "one", FI_READ, NULL, &av), -FI_ENOENT);
	assert_int_equal(open_av(&d, "one", 0, &count, &av), 0);
	assert_int_equal(count, 0);
	in = address(0);
	assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), 1);
	assert_int_equal(number, 0);
	t_meet(p, NULL); /* it is open */
	t_meet(p, NULL); /* the reader has seen the first */
	for (unsigned i = 1; i < MANY; i++) {
		in = address(i);
		assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), 1);
		assert_int_equal(number, i);
	}
	number = 5;
	assert_int_equal(fi_av_remove(av, &number, 1, 0), 0);
	in = address(MANY);
	assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), 1);
	assert_int_equal(number, MANY); /* others may know 5 still as what it was */
	t_meet(p, NULL);
	t_meet(p, NULL); /* the reader has seen that it is gone */
	in = address(5);
	assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), 1);
	assert_int_equal(number, 5);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_true(is_left("one")); /* the reader's */
	t_meet(p, NULL);
	t_domain_close(&d);
}

static void reader(struct t_process *p)
{
	struct sockaddr_in in = address(0);
	struct t_domain d;
	struct fid_av *av, *again;
	fi_addr_t number = 0;
	size_t count, len = sizeof(in);

	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_SAFE);
	t_meet(p, NULL);
	assert_int_equal(open_av(&d, "one", FI_READ, &count, &av), 0);
	assert_int_equal(count, 1);
	assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), -FI_EACCES);
	assert_int_equal(fi_av_remove(av, &number, 1, 0), -FI_EACCES);
	assert_at(av, 0, 0);
	t_meet(p, NULL);
	t_meet(p, NULL);
	assert_int_equal(fi_av_lookup(av, 5, &in, &len), -FI_EINVAL);
	for (unsigned i = 0; i <= MANY; i++) {
		if (i != 5)
			assert_at(av, i, i);
	}
	t_meet(p, NULL);
	t_meet(p, NULL);
	for (unsigned i = 0; i <= MANY; i++)
		assert_at(av, i, i);
	assert_int_equal(open_av(&d, "one", 0, &count, &again), 0); /* once more, by the same process */
	assert_int_equal(count, MANY + 1);
	in = address(MANY + 1);
	assert_int_equal(fi_av_insert(again, &in, 1, &number, 0, NULL), 1);
	assert_int_equal(number, MANY + 1);
	assert_at(av, number, MANY + 1);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_true(is_left("one"));
	assert_at(again, number, MANY + 1);
	assert_int_equal(fi_close(&again->fid), 0);
	assert_false(is_left("one"));
	t_domain_close(&d);
}

static void shared_by_two(void **state)
{
	(void)state;
	t_two(NULL, maker, reader, NULL);
}

static void bystander(struct t_process *p)
{
	(void)p;
}

/* Ends with a vector open. */
static void killed_maker(struct t_process *p)
{
	struct sockaddr_in in = address(3);
	struct t_domain d;
	struct fid_av *av;
	pid_t pid;

	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	assert_int_equal(open_av(&d, "left", 0, NULL, &av), 0);
	assert_int_equal(fi_av_insert(av, &in, 1, NULL, 0, NULL), 1);
	pid = getpid();
	t_say(p, &pid, sizeof(pid));
	kill(pid, SIGKILL);
}

static void heir(struct t_process *p)
{
	struct t_domain d;
	struct fid_av *av;
	size_t count;
	int64_t end = t_now() + T_PATIENCE;
	pid_t maker;

	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	t_hear(p, &maker, sizeof(maker));
	while (!kill(maker, 0)) { /* until it has been waited for: its socket goes before its vector does */
		assert_true(t_now() < end);
		usleep(1000);
	}
	assert_true(is_left("left"));
	assert_int_equal(open_av(&d, "left", FI_READ, NULL, &av), -FI_ENOENT);
	assert_false(is_left("left"));
	assert_int_equal(open_av(&d, "left", 0, &count, &av), 0);
	assert_int_equal(count, 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_false(is_left("left"));
	t_domain_close(&d);
}

static void left_by_killed(void **state)
{
	(void)state;
	t_two(NULL, killed_maker, heir, NULL);
}

/* Ends with a vector open, of which a child of its own has a copy; *other: that child. */
static void orphans_vector(_Atomic(pid_t) *other)
{
	struct sockaddr_in in[2] = {address(0), address(1)};
	struct t_domain d;
	struct fid_av *av;
	pid_t pid;

	setenv("CMOCKA_TEST_ABORT", "1", 1);
	alarm(T_PATIENCE / 1000);
	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	assert_int_equal(open_av(&d, "orphan", 0, NULL, &av), 0);
	assert_int_equal(fi_av_insert(av, in, 2, NULL, 0, NULL), 2);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(3 * T_PATIENCE / 1000);
		assert_int_equal(fi_close(&av->fid), 0);
		atomic_store(other, getpid());
		for (;;)
			pause();
	}
	while (!atomic_load(other))
		usleep(1000);
	kill(getpid(), SIGKILL);
}

static void orphan_lives(struct t_process *p)
{
	_Atomic(pid_t) *other = mmap(NULL, sizeof(*other), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct t_domain d;
	struct fid_av *av;
	int status;
	size_t count;
	pid_t pid;

	(void)p;
	assert_ptr_not_equal(other, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		orphans_vector(other);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	assert_int_equal(open_av(&d, "orphan", 0, &count, &av), 0);
	assert_int_equal(kill(atomic_load(other), SIGKILL), 0);
	assert_int_equal(count, 0);
	assert_int_equal(fi_close(&av->fid), 0);
	t_domain_close(&d);
	munmap(other, sizeof(*other));
}

/* The vector of a process that was killed is not kept by a child of its, which never asked for it. */
static void left_to_child(void **state)
{
	(void)state;
	t_two(NULL, orphan_lives, bystander, NULL);
}

static unsigned kills = 8;

/* Puts in and takes out until it is killed, at any instruction. */
static void churn(struct t_domain *d)
{
	struct sockaddr_in in;
	struct fid_av *av;
	fi_addr_t number;

	alarm(T_PATIENCE / 1000);
	assert_int_equal(open_av(d, "churn", 0, NULL, &av), 0);
	for (unsigned i = (unsigned)getpid() * 1000u % 1000000u;; i++) {
		in = address(i);
		assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), 1);
		if (i % 3 == 0)
			assert_int_equal(fi_av_remove(av, &number, 1, 0), 0);
	}
}

/* Each of the last numbers has an address or none; and an address that is put in is found. */
static void assert_sound(struct fid_av *av, unsigned round)
{
	struct sockaddr_in in = address(2000000 + round), got;
	size_t len = sizeof(got), seen = 0;
	fi_addr_t number, last;

	assert_int_equal(fi_av_insert(av, &in, 1, &last, 0, NULL), 1);
	for (number = last > 2000 ? last - 2000 : 0; number <= last; number++) {
		int err = fi_av_lookup(av, number, &got, &len);

		assert_true(!err || err == -FI_EINVAL);
		if (!err) {
			assert_int_equal(got.sin_family, AF_INET);
			assert_int_not_equal(got.sin_port, 0);
			seen++;
		}
	}
	assert_true(seen > 0);
	assert_int_equal(fi_av_remove(av, &last, 1, 0), 0);
	assert_int_equal(fi_av_insert(av, &in, 1, &number, 0, NULL), 1);
	assert_int_equal(number, last);
}

static void undertaker(struct t_process *p)
{
	struct t_domain d;
	struct fid_av *av;
	int status;
	pid_t pid;

	(void)p;
	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	assert_int_equal(open_av(&d, "churn", 0, NULL, &av), 0);
	for (unsigned i = 0; i < kills; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			churn(&d);
		usleep(2000 + i * 317);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		assert_sound(av, i);
	}
	assert_int_equal(fi_close(&av->fid), 0);
	t_domain_close(&d);
}

/* Who is killed while he changes the vector leaves it as good as it was, for those who have it and those who come. */
static void killed_within(void **state)
{
	(void)state;
	t_two(NULL, undertaker, bystander, NULL);
}

/* An endpoint with a shared vector. */
static void open_end(struct t_end *e, struct t_domain *d, uint64_t flags)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};

	*e = (struct t_end){.d = d, .name_len = sizeof(e->name)};
	assert_int_equal(open_av(d, "talk", flags, NULL, &e->av), 0);
	assert_int_equal(fi_cq_open(d->domain, &attr, &e->cq, NULL), 0);
	assert_int_equal(fi_endpoint(d->domain, d->info, &e->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(e->ep), 0);
	assert_int_equal(fi_getname(&e->ep->fid, e->name, &e->name_len), 0);
}

/* A byte to the other one, and one from it, which has that number; the numbers are 0 and 1. */
static void talk(struct t_end *e, fi_addr_t other)
{
	fi_addr_t source;
	char in;

	assert_int_equal(fi_trecv(e->ep, &in, 1, NULL, other, 1, 0, &in), 0);
	t_post(fi_tinject(e->ep, "x", 1, other, 1), e->cq, NULL);
	assert_ptr_equal(t_wait(e->cq, NULL, &source).op_context, &in);
	assert_int_equal(source, other);
}

static void first_talks(struct t_process *p)
{
	unsigned char name[64];
	struct t_domain d;
	struct t_end e;
	fi_addr_t other = 1;

	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	open_end(&e, &d, 0);
	t_say(p, "", 1);
	t_hear(p, name, sizeof(name));
	assert_int_equal(t_insert(&e, e.name), 0);
	assert_int_equal(t_insert(&e, name), 1);
	t_meet(p, NULL);
	talk(&e, 1);
	t_meet(p, e.cq);
	assert_int_equal(fi_av_remove(e.av, &other, 1, 0), 0);
	assert_int_equal(fi_tinject(e.ep, "x", 1, 1, 1), -FI_EINVAL);
	assert_int_equal(t_insert(&e, name), 1);
	t_meet(p, e.cq);
	talk(&e, 1);
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
}

static void second_talks(struct t_process *p)
{
	struct t_domain d;
	struct t_end e;
	char byte;

	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	t_hear(p, &byte, 1);
	open_end(&e, &d, FI_READ);
	assert_int_equal(fi_tinject(e.ep, "x", 1, 0, 2), -FI_EINVAL); /* nothing is in yet */
	t_say(p, e.name, sizeof(e.name));
	t_meet(p, NULL);
	talk(&e, 0);
	t_meet(p, e.cq);
	t_meet(p, e.cq);
	talk(&e, 0);
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
}

/* Endpoints of two processes that have one vector, in which one of them has put both. */
static void talks(void **state)
{
	(void)state;
	t_two("shm", first_talks, second_talks, NULL);
	t_two("udp", first_talks, second_talks, NULL);
}

/* One byte to number 0, which `to` gets. */
static void reach(struct t_end *from, struct t_end *to)
{
	char in = 0;

	assert_int_equal(fi_trecv(to->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	t_post(fi_tinject(from->ep, "x", 1, 0, 1), from->cq, to->cq);
	t_wait(to->cq, from->cq, NULL);
	assert_int_equal(in, 'x');
}

static void hears_of_removal(struct t_process *p)
{
	struct sockaddr_in *own;
	struct t_end e, peer;
	struct t_domain d;
	struct fid_av *other;
	struct sockaddr_in found;
	size_t len = sizeof(found);
	fi_addr_t number = 0;
	char in;

	(void)p;
	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	own = d.info->src_addr;
	own->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	open_end(&e, &d, 0);
	assert_int_equal(open_av(&d, "talk", 0, NULL, &other), 0);
	own->sin_port = htons(own_port());
	t_end_open(&peer, &d, NULL);
	assert_int_equal(fi_av_insert(other, peer.name, 1, &number, 0, NULL), 1);
	assert_int_equal(number, 0);
	reach(&e, &peer);
	assert_int_equal(fi_trecv(e.ep, &in, 1, NULL, 0, 2, 0, &in), 0);
	t_end_close(&peer);
	assert_ptr_equal(t_wait_error(e.cq, NULL).op_context, &in);
	t_end_open(&peer, &d, NULL);
	assert_int_equal(fi_av_remove(other, &number, 1, 0), 0);
	assert_int_equal(fi_av_insert(other, peer.name, 1, &number, 0, NULL), 1);
	assert_int_equal(number, 0);
	/* a call of the vector, by which it hears of the removal */
	assert_int_equal(fi_av_lookup(e.av, 0, &found, &len), 0);
	reach(&e, &peer);
	assert_int_equal(fi_close(&other->fid), 0);
	t_end_close(&peer);
	t_end_close(&e);
	t_domain_close(&d);
}

/* Somebody else takes out a peer that has begun anew at the same IP and port, and puts it in: it is reached again. */
static void removed_by_others(void **state)
{
	(void)state;
	t_two("shm", hears_of_removal, bystander, NULL);
}

/* What the end calls the other, who writes to it. */
static fi_addr_t source_of(struct t_end *from, fi_addr_t to, struct t_end *at)
{
	fi_addr_t source;
	char in;

	assert_int_equal(fi_trecv(at->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	t_post(fi_tinject(from->ep, "x", 1, to, 1), from->cq, at->cq);
	t_wait(at->cq, from->cq, &source);
	return source;
}

static void calls_by_number(struct t_process *p)
{
	fi_addr_t to_e, number = 4711;
	struct t_end e, peer;
	struct t_domain d;
	struct fid_av *other;

	(void)p;
	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	open_end(&e, &d, 0);
	assert_int_equal(open_av(&d, "talk", 0, NULL, &other), 0);
	t_end_open(&peer, &d, NULL);
	to_e = t_insert(&peer, e.name);
	assert_int_equal(fi_av_insert(e.av, peer.name, 1, &number, FI_AV_USER_ID, NULL), 1);
	assert_int_equal(number, 0);
	assert_int_equal(source_of(&peer, to_e, &e), 4711);
	assert_int_equal(fi_av_remove(other, &number, 1, 0), 0);
	assert_int_equal(t_insert(&e, peer.name), 0);
	assert_int_equal(source_of(&peer, to_e, &e), 0);
	assert_int_equal(fi_close(&other->fid), 0);
	t_end_close(&peer);
	t_end_close(&e);
	t_domain_close(&d);
}

/* The same in a vector that was opened with FI_AV_USER_ID, as which only one of those who share it sees it. */
static void calls_by_id(struct t_process *p)
{
	fi_addr_t to_e, number;
	struct t_end e, peer;
	struct t_domain d;
	struct fid_av *other;

	(void)p;
	t_domain_open(&d, 0, FI_THREAD_DOMAIN);
	open_end(&e, &d, FI_AV_USER_ID);
	assert_int_equal(open_av(&d, "talk", 0, NULL, &other), 0);
	t_end_open(&peer, &d, NULL);
	to_e = t_insert(&peer, e.name);
	number = t_insert(&e, peer.name);
	assert_int_equal(source_of(&peer, to_e, &e), FI_ADDR_NOTAVAIL);
	assert_int_equal(t_set_user_id(e.av, number, 4711, 0), 0);
	assert_int_equal(source_of(&peer, to_e, &e), 4711);
	assert_int_equal(fi_av_remove(other, &number, 1, 0), 0);
	assert_int_equal(t_insert(&e, peer.name), number);
	assert_int_equal(source_of(&peer, to_e, &e), FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_close(&other->fid), 0);
	t_end_close(&peer);
	t_end_close(&e);
	t_domain_close(&d);
}

/* Somebody else takes out a peer that was given a name of the user's (FI_AV_USER_ID): put in again it has none. */
static void named_and_removed(void **state)
{
	(void)state;
	t_two("shm", calls_by_number, bystander, NULL);
	t_two("shm", calls_by_id, bystander, NULL);
}

/* So many addresses, from 0 on, in one call; returns what that does. */
static int insert_many(struct fid_av *av, unsigned count)
{
	struct sockaddr_in *in = calloc(count, sizeof(*in));
	int n;

	assert_non_null(in);
	for (unsigned i = 0; i < count; i++)
		in[i] = address(i);
	n = fi_av_insert(av, in, count, NULL, 0, NULL);
	free(in);
	return n;
}

static bool ticks;
static unsigned interruptions;

/*
 * Before the C library's: a timer's signals come again and again, and a kernel before 6.18 stops at each, keeps nothing
 * of what it had done for the call, and never gets far.
 */
__attribute__((visibility("default"))) int posix_fallocate(int fd, off_t at, off_t len)
{
	if (ticks && (len > 1 << 20 || ++interruptions % 3))
		return EINTR;
	return fallocate(fd, 0, at, len) ? errno : 0;
}

static void grows_meanwhile(struct t_process *p)
{
	const unsigned count = 1u << 16;
	struct t_domain d;
	struct fid_av *av;
	int n;

	(void)p;
	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	assert_int_equal(open_av(&d, "large", 0, NULL, &av), 0);
	ticks = true;
	n = insert_many(av, count);
	ticks = false;
	assert_int_equal(n, count);
	assert_int_not_equal(interruptions, 0);
	assert_at(av, count - 1, count - 1);
	assert_int_equal(fi_close(&av->fid), 0);
	t_domain_close(&d);
}

/* Signals that come again and again keep no vector from growing. */
static void among_signals(void **state)
{
	(void)state;
	t_two(NULL, grows_meanwhile, bystander, NULL);
}

static void meets_limit(struct t_process *p)
{
	struct rlimit before, low;
	struct t_domain d;
	struct fid_av *av;
	int n;

	(void)p;
	t_domain_open(&d, FI_SOCKADDR_IN, FI_THREAD_DOMAIN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = before;
	low.rlim_cur = 1u << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(open_av(&d, "limited", 0, NULL, &av), 0);
	n = insert_many(av, 1u << 15);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_in_range(n, 1u << 13, (1u << 15) - 1);
	assert_at(av, n - 1, (unsigned)n - 1);
	assert_int_equal(insert_many(av, 1u << 15), 1u << 15); /* there is no limit now */
	assert_int_equal(fi_close(&av->fid), 0);
	t_domain_close(&d);
}

/* A vector that reaches the limit of the process's files (ulimit -f) is full, and the process lives. */
static void file_limit(void **state)
{
	(void)state;
	t_two(NULL, meets_limit, bystander, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(shared_by_two, nothing_left),
		cmocka_unit_test_teardown(left_by_killed, nothing_left),
		cmocka_unit_test_teardown(left_to_child, nothing_left),
		cmocka_unit_test_teardown(killed_within, nothing_left),
		cmocka_unit_test_teardown(among_signals, nothing_left),
		cmocka_unit_test_teardown(file_limit, nothing_left),
		cmocka_unit_test_teardown(talks, nothing_left),
		cmocka_unit_test_teardown(removed_by_others, nothing_left),
		cmocka_unit_test_teardown(named_and_removed, nothing_left),
	};

	test_process = getpid();
	if (argc > 1 && !strcmp(argv[1], "full"))
		kills = 200;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
