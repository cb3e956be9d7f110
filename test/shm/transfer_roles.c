/* SPDX-License-Identifier: BSD-3-Clause */
#include "rwk_test.h"

#include "transfer_roles.h"

#include "base/process.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool tp_exposers_sleep;

static void *sleep_until_told(void *arg)
{
	struct tp_sleeper *s = arg;

	s->number = (pid_t)syscall(SYS_gettid);
	while (sem_wait(&s->end))
		continue;
	return NULL;
}

bool tp_sleeper_start(struct tp_sleeper *s)
{
	s->number = 0;
	if (sem_init(&s->end, 0, 0) || pthread_create(&s->thread, NULL, sleep_until_told, s))
		return false;
	for (int i = 0; i < 20000 && (!s->number || rwk_process_idle_thread(getpid()) != s->number); i++)
		usleep(1000);
	return rwk_process_idle_thread(getpid()) == s->number;
}

bool tp_sleeper_end(struct tp_sleeper *s)
{
	sem_post(&s->end);
	if (pthread_join(s->thread, NULL))
		return false;
	for (int i = 0; i < 20000 && rwk_process_idle_thread(getpid()); i++)
		usleep(1000);
	return !rwk_process_idle_thread(getpid());
}

static unsigned char pattern(uint64_t at, unsigned seed)
{
	return (unsigned char)(at * 7 + (at >> 8) * 13 + (at >> 16) * 101 + seed);
}

void tp_fill(unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = pattern(i, seed);
}

bool tp_same(const unsigned char *p, size_t n, uint64_t from, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != pattern(from + i, seed))
			return false;
	}
	return true;
}

int tp_expose_and_serve(struct rwk_shm_channel *ch, unsigned count, size_t size, unsigned pieces)
{
	unsigned char **buf = calloc(count, sizeof(*buf));
	struct tp_side *mine = tp_side(ch, true);

	CHECK(buf);
	for (unsigned i = 0; i < count; i++) {
		struct iovec iov[RWK_EXPOSE_IOV_MAX];
		size_t at = 0;

		buf[i] = malloc(size ? size : 1);
		CHECK(buf[i]);
		tp_fill(buf[i], size, i);
		for (unsigned k = 0; k < pieces; k++) {
			size_t end = size * (k + 1) / pieces;

			iov[k] = (struct iovec){buf[i] + at, end - at};
			at = end;
		}
		CHECK(!rwk_shm_expose(ch, iov, pieces, RWK_EXPOSE_READ, &mine->key[i]));
	}
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	for (unsigned i = 0; i < count; i++) {
		rwk_shm_conceal(ch, &mine->key[i]);
		free(buf[i]);
	}
	free(buf);
	return 0;
}

int tp_deny_copies(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

int tp_read_large(struct rwk_shm_channel *ch, size_t size)
{
	unsigned char *buf = calloc(1, size);
	struct iovec iov = {buf, size};
	struct tp_op o;

	CHECK(buf);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, size));
	CHECK(tp_finish(ch, &o, 20000) == 0);
	CHECK(tp_same(buf, size, 0, 0));
	free(buf);
	return 0;
}

int tp_serve_large(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	return tp_expose_and_serve(ch, 1, LARGE, 1);
}

/* Forks a process that plays the role on this side (1: exposer, 0: reader), with 60 s to live. */
static pid_t tp_start(struct tp_shared *s, int side, tp_role f, const void *arg)
{
	static struct tp_sleeper sleeper;
	struct rwk_shm_channel *ch;
	pid_t pid = fork();
	int rc;

	if (pid)
		return pid;
	alarm(60);
	if (side && tp_exposers_sleep && !tp_sleeper_start(&sleeper))
		exit(2);
	rwk_param_load();
	ch = tp_open(s, side);
	rc = f(ch, arg);
	if (rc) {
		fprintf(stderr, "%s: check at line %d failed\n", side ? "exposer" : "reader", rc);
		_exit(1); /* what it had under way may lie on a stack that is gone */
	}
	tp_close(ch, -ECANCELED);
	exit(0);
}

static void run_both(tp_role exposer, tp_role reader, const void *arg, bool mortal)
{
	struct tp_shared *s = tp_shared_new();
	pid_t pid[2];
	int status;

	pid[1] = tp_start(s, 1, exposer, arg);
	pid[0] = tp_start(s, 0, reader, arg);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		if (status && !(mortal && i && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
			kill(pid[!i], SIGKILL);
			fail_msg("the %s ended with wait status 0x%x", i ? "exposer" : "reader", (unsigned)status);
		}
	}
	tp_shared_free(s);
}

void tp_run(tp_role exposer, tp_role reader, const void *arg)
{
	run_both(exposer, reader, arg, false);
}

void tp_run_mortal(tp_role exposer, tp_role reader, const void *arg)
{
	run_both(exposer, reader, arg, true);
}
