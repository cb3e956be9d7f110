/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct reads and writes where the kernel does not allow them: they end with -EOPNOTSUPP, direct_min says that none
 * is to be tried any more, and nothing else suffers.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "transfer_roles.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 8 << 20 };

/* What is denied, and when. */
struct denial {
	long call[2];
	int err;
	bool write;
	bool midway;
};

static int deny(const struct denial *d)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)d->call[0], 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)d->call[1], 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)d->err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

/* Exposes a region for direct use, and a message. */
static int exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(2, SIZE);
	struct iovec iov[2] = {{buf, SIZE}, {buf + SIZE, SIZE}};

	(void)arg;
	CHECK(buf);
	tp_fill(buf + SIZE, SIZE, 5);
	CHECK(!rwk_shm_expose(ch, &iov[0], 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	CHECK(!rwk_shm_expose(ch, &iov[1], 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[1]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	rwk_shm_conceal(ch, &tp_side(ch, true)->key[0]);
	free(buf);
	return 0;
}

static int start(struct rwk_shm_channel *ch, bool write, struct tp_op *o, const struct iovec *iov)
{
	return (write ? tp_write : tp_read)(ch, o, &tp_side(ch, false)->key[0], 0, iov, 1, iov->iov_len);
}

static int user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct denial *d = arg;
	unsigned char *buf = calloc(1, SIZE);
	struct iovec whole = {buf, SIZE}, word = {buf, 8};
	struct tp_op o[3], message;

	CHECK(buf && tp_wait(ch, 1, 1));
	CHECK(((struct rwk_channel *)ch)->direct_min);
	if (d->midway) {
		CHECK(!start(ch, d->write, &o[0], &whole) && !start(ch, !d->write, &o[1], &whole) &&
			!start(ch, d->write, &o[2], &word));
		CHECK(!deny(d));
		for (int i = 0; i < 3; i++)
			CHECK(tp_finish(ch, &o[i], 10000) == -EOPNOTSUPP);
	} else {
		CHECK(!deny(d));
		CHECK(start(ch, d->write, &o[0], &word) == -EOPNOTSUPP);
	}
	CHECK(((struct rwk_channel *)ch)->direct_min == 0 && tp_counts(ch)->denials == 1);
	CHECK(start(ch, true, &o[0], &word) == -EOPNOTSUPP && start(ch, false, &o[0], &word) == -EOPNOTSUPP);
	CHECK(!tp_busy(ch));
	/* a message still comes */
	CHECK(!tp_read(ch, &message, &tp_side(ch, false)->key[1], 0, &whole, 1, SIZE));
	CHECK(tp_finish(ch, &message, 20000) == 0 && tp_same(buf, SIZE, 0, 5));
	CHECK(!tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* By filters for both calls or one, with the errors that filters, Yama and name spaces give; at first use or midway. */
static void denied(void **state)
{
	static const struct denial denials[] = {
		{{__NR_process_vm_readv, __NR_process_vm_writev}, EPERM, true, false},
		{{__NR_process_vm_readv, __NR_process_vm_writev}, ENOSYS, false, false},
		{{__NR_process_vm_readv, __NR_process_vm_writev}, EACCES, false, false},
		{{__NR_process_vm_readv, __NR_process_vm_writev}, ESRCH, true, false},
		{{__NR_process_vm_readv, __NR_process_vm_writev}, EPERM, true, true},
		{{__NR_process_vm_readv, __NR_process_vm_writev}, ENOSYS, false, true},
		{{__NR_process_vm_writev, __NR_process_vm_writev}, EPERM, true, false},
		{{__NR_process_vm_writev, __NR_process_vm_writev}, EPERM, true, true},
		{{__NR_process_vm_readv, __NR_process_vm_readv}, EPERM, false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(denials) / sizeof(denials[0]); i++)
		tp_run(exposer, user, &denials[i]);
}

static int closing_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[SIZE];
	struct iovec iov = {buf, SIZE};

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 3, 1));
	CHECK(!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
	tp_say(ch, 3, 1);
	CHECK(tp_wait(ch, 2, 1));
	CHECK(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); /* a sanitizer looks for leaks from outside */
	return 0;
}

static int plain_user(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(SIZE);
	struct iovec whole = {buf, SIZE};
	struct tp_op o;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	memset(buf, 1, SIZE);
	CHECK(!start(ch, true, &o, &whole));
	tp_say(ch, 3, 1);
	while (!tp_heard(ch, 3) && rwk_shm_peer_alive(ch))
		usleep(100);
	CHECK(geteuid() || !setresuid(65534, 65534, 65534)); /* root may look into all */
	CHECK(tp_finish(ch, &o, 10000) == -EOPNOTSUPP);
	CHECK(((struct rwk_channel *)ch)->direct_min == 0 && tp_counts(ch)->denials == 1 && !tp_protocol_error(ch));
	CHECK(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); /* cleared by setresuid; as above */
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* Denied by the kernel itself: the process closes itself to others of its user midway. */
static void denied_by_the_kernel(void **state)
{
	(void)state;
	tp_run(closing_exposer, plain_user, NULL);
}

static int alone(struct rwk_shm_channel *ch, const void *arg)
{
	static const struct denial all = {{__NR_process_vm_readv, __NR_process_vm_writev}, EPERM, false, false};

	(void)arg;
	CHECK(tp_wait(ch, 1, 1) && ((struct rwk_channel *)ch)->direct_min);
	CHECK(!deny(&all));
	CHECK(rwk_shm_direct_least() == 0);
	tp_say(ch, 2, 1);
	return 0;
}

static int bystander(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	return 0;
}

/* Denied before a channel is there: none is begun. */
static void denied_before(void **state)
{
	(void)state;
	tp_run(bystander, alone, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denied),
		cmocka_unit_test(denied_by_the_kernel),
		cmocka_unit_test(denied_before),
	};

	return cmocka_run_group_tests_name("shm/direct_denied", tests, NULL, NULL);
}
