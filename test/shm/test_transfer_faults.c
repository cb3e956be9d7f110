/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers when something is wrong: the exposer stopped, killed, gone or hostile, cross-memory copies denied, keys
 * that are stale or forged. Either the right bytes arrive or an error does; nothing hangs, nothing is touched that was
 * not given.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 4 << 20 };

/* From now on cross-memory copies of this process fail with `err`. */
static int deny_copies(int err)
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

/* Reads buffer 0 of the exposer whole and looks at it. */
static int read_large(struct rwk_shm_channel *ch, size_t size)
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

static int serve_large(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	return tp_expose_and_serve(ch, 1, LARGE, 1);
}

/*
 * Who copies.
 */

static int share_reader(struct rwk_shm_channel *ch, const void *arg)
{
	int rc;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_STAGE);
	rc = read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(tp_counts(ch)->unstaged == LARGE);
	tp_say(ch, 2, 1);
	return 0;
}

static int share_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	int rc = serve_large(ch, arg);

	CHECK(!rc);
	CHECK(tp_counts(ch)->staged >= LARGE * 3 / 10);
	return 0;
}

static int halves_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};

	(void)arg;
	CHECK(buf);
	tp_fill(buf, LARGE, 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_heard(ch, 2)) {
		tp_progress(ch);
		tp_say(ch, 4, tp_counts(ch)->pushed);
	}
	free(buf);
	return 0;
}

static int halves_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const uint64_t least = LARGE * 3 / 10;
	uint64_t pulled = 0, pushed = 0;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	/* a core may be busy with something else: then the other side does more, and it is tried again */
	for (int i = 0; i < 500 && (pulled < least || pushed < least); i++) {
		uint64_t before = tp_counts(ch)->pulled;
		int rc = read_large(ch, LARGE);

		CHECK(!rc);
		pulled = tp_counts(ch)->pulled - before;
		pushed = LARGE - pulled;
	}
	CHECK(pulled >= least && pushed >= least);
	CHECK(tp_counts(ch)->unstaged == 0);
	for (int i = 0; i < 1000 && tp_heard(ch, 4) < pushed; i++)
		usleep(1000);
	CHECK(tp_heard(ch, 4) >= pushed);
	tp_say(ch, 2, 1);
	return 0;
}

/* Where the peer is there, each side copies at least 30 % of a transfer of 4 MB. */
static void both_sides_copy(void **state)
{
	(void)state;
	tp_run(share_exposer, share_reader, NULL);
	tp_run(halves_exposer, halves_reader, NULL);
}

/* A moment and a method. */
struct plan {
	size_t after;
	int method;
};

/* Exposes, and is stopped after it has copied at least so many bytes. */
static int stopped_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	size_t after = ((const struct plan *)arg)->after;
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};

	CHECK(buf);
	tp_fill(buf, LARGE, 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (tp_counts(ch)->staged + tp_counts(ch)->pushed < after)
		tp_progress(ch);
	raise(SIGSTOP);
	CHECK(tp_wait(ch, 2, 1));
	free(buf);
	return 0;
}

static bool is_stopped(pid_t pid)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = (ssize_t)fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n > 0 ? n : 0] = 0;
	state = strrchr(text, ')');
	return state && (state[2] == 'T' || state[2] == 't');
}

static int stopped_reader(struct rwk_shm_channel *ch, const void *arg)
{
	size_t after = ((const struct plan *)arg)->after;
	int method = ((const struct plan *)arg)->method, rc;
	uint64_t pulled;
	pid_t peer;

	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, method);
	peer = tp_side(ch, false)->pid;
	/* it stops in one of these reads, in the first one if its core is left to it */
	for (int i = 0; !is_stopped(peer) && i < 5000; i++) {
		rc = after ? read_large(ch, LARGE) : usleep(1000);
		CHECK(!rc);
	}
	CHECK(is_stopped(peer));
	pulled = tp_counts(ch)->pulled;
	rc = read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(is_stopped(peer) && tp_counts(ch)->pulled == pulled + LARGE);
	CHECK(method >= 0 || tp_counts(ch)->takeovers > 0);
	CHECK(!kill(peer, SIGCONT));
	/* its late blocks are for a read that is over: the next one gets its own */
	for (int i = 0; i < 8; i++) {
		rc = read_large(ch, LARGE);
		CHECK(!rc);
	}
	CHECK(!tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	return 0;
}

/*
 * With the exposer stopped before it stages anything, or in the middle, the reader copies the rest; it may wake up
 * later.
 */
static void exposer_stopped(void **state)
{
	static const struct plan plans[] = {
		{0, -1}, {1, -1}, {LARGE / 8, -1}, {0, RWK_SHM_BOTH}, {1, RWK_SHM_BOTH}, {LARGE / 2, RWK_SHM_BOTH}};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		tp_run(stopped_exposer, stopped_reader, &plans[i]);
}

/*
 * Denial.
 */

struct denial {
	int err, method;
};

static int denied_reader(struct rwk_shm_channel *ch, const void *arg)
{
	int rc;

	CHECK(tp_wait(ch, 1, 1));
	CHECK(!deny_copies(((const struct denial *)arg)->err));
	tp_force(ch, ((const struct denial *)arg)->method);
	rc = read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(tp_counts(ch)->denials == 1 && tp_counts(ch)->pulled == 0 && tp_counts(ch)->unstaged == LARGE);
	rc = read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(tp_counts(ch)->denials == 1);
	tp_say(ch, 2, 1);
	return 0;
}

/*
 * Cross-memory copies denied from the start: the transfer goes through shared memory, and so does each later one at
 * once.
 */
static void denied_at_start(void **state)
{
	static const struct denial errors[] = {{EPERM, RWK_SHM_PULL}, {ENOSYS, RWK_SHM_PULL}, {EACCES, RWK_SHM_PULL},
		{ESRCH, RWK_SHM_PULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		tp_run(serve_large, denied_reader, &errors[i]);
}

static int denied_midway_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(2, LARGE);
	struct iovec iov[2] = {{buf, LARGE}, {buf + LARGE, LARGE}};
	struct tp_op o[2];

	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, ((const struct denial *)arg)->method);
	for (int i = 0; i < 2; i++)
		CHECK(!tp_read(ch, &o[i], &tp_side(ch, false)->key[0], 0, &iov[i], 1, LARGE));
	while (!tp_counts(ch)->pulled)
		tp_progress(ch);
	CHECK(tp_counts(ch)->pulled < LARGE);
	CHECK(!deny_copies(((const struct denial *)arg)->err));
	for (int i = 0; i < 2; i++) {
		CHECK(tp_finish(ch, &o[i], 20000) == 0);
		CHECK(tp_same(iov[i].iov_base, LARGE, 0, 0));
	}
	/* where both copy, the exposer may have done the rest before the denial was noticed */
	if (((const struct denial *)arg)->method == RWK_SHM_PULL)
		CHECK(tp_counts(ch)->unstaged > 0 && tp_counts(ch)->pulled + tp_counts(ch)->unstaged == 2 * LARGE);
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* Denied between two pieces: goes on from where it was. */
static void denied_in_the_middle(void **state)
{
	static const struct denial errors[] = {
		{EPERM, RWK_SHM_PULL}, {ENOSYS, RWK_SHM_PULL}, {EPERM, RWK_SHM_BOTH}, {ENOSYS, RWK_SHM_BOTH}};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		tp_run(serve_large, denied_midway_reader, &errors[i]);
}

static int denied_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	int rc;

	CHECK(!deny_copies(EPERM));
	rc = serve_large(ch, arg);
	CHECK(!rc);
	CHECK(tp_counts(ch)->pushed == 0);
	return 0;
}

static int both_alone_reader(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	for (int i = 0; i < 20; i++) {
		int rc = read_large(ch, LARGE);

		CHECK(!rc);
	}
	CHECK(tp_counts(ch)->pulled == 20 * LARGE);
	tp_say(ch, 2, 1);
	return 0;
}

/* The exposer may not push: the reader copies what it had claimed, too. */
static void denied_to_the_exposer(void **state)
{
	(void)state;
	tp_run(denied_exposer, both_alone_reader, NULL);
}

static int denied_alone_reader(struct rwk_shm_channel *ch, const void *arg)
{
	pid_t peer;
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, LARGE};
	struct tp_op o;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	peer = tp_side(ch, false)->pid;
	for (int i = 0; !is_stopped(peer) && i < 5000; i++)
		usleep(1000);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	while (!tp_counts(ch)->pulled)
		tp_progress(ch);
	CHECK(!deny_copies(EPERM));
	CHECK(tp_finish(ch, &o, 50) == 1); /* nobody is there to stage: it waits */
	CHECK(!kill(peer, SIGCONT));
	CHECK(tp_finish(ch, &o, 20000) == 0);
	CHECK(tp_same(buf, LARGE, 0, 0));
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* Denied while the reader goes on alone for an exposer that is stopped: it waits for it. */
static void denied_while_alone(void **state)
{
	static const struct plan plan = {0, -1};

	(void)state;
	tp_run(stopped_exposer, denied_alone_reader, &plan);
}

/*
 * Death.
 */

static int mortal_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	if (!ch)
		return 1;
	serve_large(ch, NULL);
	return 0;
}

static int killer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, LARGE};
	unsigned when = *(const unsigned *)arg;
	struct tp_op o[4];
	int good = 0;

	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, (int)(when % RWK_SHM_METHODS));
	for (int i = 0; i < 4; i++)
		CHECK(!tp_read(ch, &o[i], &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	for (unsigned i = 0; i < when / RWK_SHM_METHODS; i++)
		tp_progress(ch);
	CHECK(!kill(tp_side(ch, false)->pid, SIGKILL));
	for (int i = 0; i < 4; i++) {
		int status = tp_finish(ch, &o[i], 3000);

		CHECK(status == 0 || status == -ECONNRESET);
		CHECK(status || good == i); /* in order: after the first error there is no success */
		good += !status;
	}
	if (good)
		CHECK(tp_same(buf, LARGE, 0, 0));
	free(buf);
	return 0;
}

/* Killed at any moment: good bytes or an error within 3 s, never a hang. */
static void exposer_killed(void **state)
{
	(void)state;
	for (unsigned when = 0; when < 60; when++)
		tp_run_mortal(mortal_exposer, killer, &when);
}

static int stranger_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, LARGE};
	struct rwk_rkey key;
	struct tp_op o;
	pid_t peer;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	key = tp_side(ch, false)->key[0];
	key.word[2] = (uint64_t)(uintptr_t)buf;                /* memory that is there in both */
	key.word[1] = (uint64_t)(uintptr_t)(buf + LARGE - 256); /* and no cookie in it */
	peer = tp_side(ch, false)->pid;
	tp_side(ch, false)->pid = getpid(); /* the number now belongs to somebody else */
	tp_force(ch, RWK_SHM_PULL);
	CHECK(!tp_read(ch, &o, &key, 0, &iov, 1, 65536));
	CHECK(tp_finish(ch, &o, 3000) == -EACCES);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	CHECK(tp_finish(ch, &o, 3000) < 0);
	tp_side(ch, false)->pid = peer;
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* The process number belongs to another process by now: its bytes are never taken for the peer's. */
static void stranger_with_the_same_pid(void **state)
{
	(void)state;
	tp_run(serve_large, stranger_reader, NULL);
}

/*
 * Keys.
 */

static int keys_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct tp_side *mine = tp_side(ch, true);
	static unsigned char buf[8192];
	struct iovec iov[2] = {{buf, 4000}, {buf + 4000, 4192}};

	(void)arg;
	tp_fill(buf, sizeof(buf), 0);
	CHECK(rwk_shm_expose(ch, iov, 0, false, &mine->key[0]) == -EINVAL);
	CHECK(rwk_shm_expose(ch, iov, RWK_EXPOSE_IOV_MAX + 1, false, &mine->key[0]) == -EINVAL);
	/* the first two are concealed again; the third takes the place of the second */
	CHECK(!rwk_shm_expose(ch, iov, 2, false, &mine->key[0]));
	CHECK(!rwk_shm_expose(ch, iov, 1, false, &mine->key[1]));
	rwk_shm_conceal(ch, &mine->key[0]);
	rwk_shm_conceal(ch, &mine->key[1]);
	rwk_shm_conceal(ch, &mine->key[1]);
	CHECK(!rwk_shm_expose(ch, iov, 1, false, &mine->key[2]));
	CHECK(!rwk_shm_expose(ch, iov, 2, false, &mine->key[3]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	return 0;
}

/* Reads `length` bytes at `offset` by a key and returns the status, or post's refusal. */
static int try_key(
	struct rwk_shm_channel *ch, struct rwk_rkey key, unsigned word, uint64_t flip, uint64_t offset, size_t length)
{
	unsigned char buf[8192];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;
	int rc;

	key.word[word] ^= flip;
	rc = tp_read(ch, &o, &key, offset, &iov, 1, length);
	if (rc)
		return rc;
	rc = tp_finish(ch, &o, 3000);
	if (!rc && !tp_same(buf, length, offset, 0))
		return 1;
	return rc;
}

static int keys_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = tp_side(ch, false)->key;

	tp_force(ch, *(const int *)arg);
	CHECK(tp_wait(ch, 1, 1));
	CHECK(try_key(ch, key[2], 0, 0, 0, 4000) == 0);
	CHECK(try_key(ch, key[3], 0, 0, 100, 8092) == 0);
	CHECK(try_key(ch, key[3], 0, 0, 8192, 0) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(try_key(ch, key[i], 0, 0, 0, 4000) == -EACCES);
	CHECK(try_key(ch, key[2], 0, 1ull << 30, 0, 4000) == -EACCES);
	CHECK(try_key(ch, key[3], 0, 1ull << 50, 0, 4000) == -EACCES);
	CHECK(try_key(ch, key[2], 0, 1ull << 20, 0, 4000) == -EACCES); /* an index beyond the table */
	CHECK(try_key(ch, key[2], 3, 1ull << 60, 0, 4000) == -EINVAL); /* another transport's mark */
	CHECK(try_key(ch, key[2], 0, 0, 0, 4001) == -EINVAL);
	CHECK(try_key(ch, key[2], 0, 0, UINT64_MAX, 2) == -EINVAL);
	CHECK(!tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	return 0;
}

/* Keys that were concealed, forged or stretched are refused; good ones still work beside them. */
static void keys(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(keys_exposer, keys_reader, &methods[i]);
}

static int concealing_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = {buf, LARGE};
	struct tp_side *mine = tp_side(ch, true);

	(void)arg;
	CHECK(buf != MAP_FAILED);
	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &mine->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_counts(ch)->staged && !tp_counts(ch)->pushed && !tp_heard(ch, 2))
		tp_progress(ch);
	rwk_shm_conceal(ch, &mine->key[0]);
	CHECK(!munmap(buf, LARGE)); /* an access now would be fatal */
	CHECK(tp_wait(ch, 2, 1));
	return 0;
}

static int concealed_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};
	int method = *(const int *)arg, status;
	struct tp_op o;

	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, method);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	status = tp_finish(ch, &o, 3000);
	/* where both copy, the reader may have had the rest before */
	if (status != -EACCES)
		fprintf(stderr, "reader: method %d, status %d\n", method, status);
	CHECK(status == -EACCES || (method == RWK_SHM_BOTH && status == 0));
	CHECK(!tp_protocol_error(ch));
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* Concealed while it is being copied: the read ends with an error, the channel goes on. */
static void concealed_in_the_middle(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_BOTH};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(concealing_exposer, concealed_reader, &methods[i]);
}

/*
 * Hostility.
 */

/* Serves, and in between scribbles over the heads of its area (the first 4 KB), with a different seed each time. */
static int scribbler(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE), *area = rwk_shm_transfer_area(ch, true);
	struct iovec iov = {buf, LARGE};
	struct tp_side *mine = tp_side(ch, true);

	CHECK(buf);
	srand(*(const unsigned *)arg);
	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &mine->key[0]));
	tp_say(ch, 1, 1);
	for (unsigned i = 0; !tp_heard(ch, 2); i++) {
		tp_progress(ch);
		if (i % 16 == 15)
			area[rand() % 1024] ^= (unsigned char)(1 << rand() % 8);
	}
	free(buf);
	return 0;
}

static int scribbled_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE + 2 * 4096);
	struct iovec iov = {buf + 4096, LARGE};
	struct tp_op o;
	int status = 1;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	memset(buf, 0xee, LARGE + 2 * 4096);
	tp_force(ch, RWK_SHM_STAGE);
	for (int i = 0; i < 20 && !tp_protocol_error(ch); i++) {
		CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
		status = tp_finish(ch, &o, 20);
		if (status == 1)
			break; /* a block was lost in the scribble: the peer harms only itself */
		CHECK(status == 0 || status == -EPROTO || status == -EACCES || status == -EIO);
	}
	for (int i = 0; i < 4096; i++)
		CHECK(buf[i] == 0xee && buf[4096 + LARGE + i] == 0xee);
	tp_say(ch, 2, 1);
	if (status == 1) {
		tp_close(ch, -ECANCELED);
		CHECK(o.status == -ECANCELED);
		exit(0);
	}
	free(buf);
	return 0;
}

/* A peer that scribbles over its transfer area: no byte is written outside the target. */
static void area_scribbled(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 20; seed++)
		tp_run(scribbler, scribbled_reader, &seed);
}

/* One lie each about a staged block, or about blocks given back. */
enum lie { LIE_LENGTH, LIE_EMPTY, LIE_OFFSET, LIE_CLAIM, LIE_PUSHED, LIES };

/* Waits for a word without looking at records. */
static bool deaf_wait(struct rwk_shm_channel *ch, unsigned word)
{
	for (uint64_t end = rwk_shm_now() + 5000000000u; !tp_heard(ch, word) && rwk_shm_now() < end;)
		sched_yield();
	return tp_heard(ch, word);
}

static int lying_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true), *theirs = rwk_shm_transfer_area(ch, false);
	enum lie lie = *(const enum lie *)arg;
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};

	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 3));
	switch (lie) {
	case LIE_CLAIM:
		theirs->claim[0].word = 1; /* the reader has taken one already */
		break;
	case LIE_PUSHED:
		theirs->claim[0].word = 1 << 16; /* one chunk taken, */
		mine->pushed[0].word = 2;        /* two finished */
		break;
	default:
		mine->head[0].offset = lie == LIE_OFFSET ? 4096 : 0;
		mine->head[0].id = 0;
		mine->head[0].length = lie == LIE_LENGTH ? 65536 : lie == LIE_EMPTY ? 0 : 8192;
		mine->head[0].number = 1;
	}
	tp_say(ch, 4, 1);
	CHECK(deaf_wait(ch, 2));
	return 0;
}

static int lied_to_reader(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;

	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, *(const enum lie *)arg >= LIE_CLAIM ? RWK_SHM_BOTH : RWK_SHM_STAGE);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, sizeof(buf)));
	if (*(const enum lie *)arg >= LIE_CLAIM)
		CHECK(rwk_shm_both_ask_for_two(rwk_shm_transfers_of(ch)));
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 4));
	CHECK(tp_finish(ch, &o, 3000) == -EPROTO);
	CHECK(tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	return 0;
}

/* A block too long, empty or out of place breaks the channel, and so do claims and copies that cannot be. */
static void blocks_that_lie(void **state)
{
	(void)state;
	for (enum lie lie = 0; lie < LIES; lie++)
		tp_run(lying_exposer, lied_to_reader, &lie);
}

static int holding_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true), *theirs = rwk_shm_transfer_area(ch, false);
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};

	(void)arg;
	tp_fill(buf, sizeof(buf), 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(deaf_wait(ch, 3));
	theirs->claim[0].word = 1 << 16;
	tp_say(ch, 4, 1);
	CHECK(deaf_wait(ch, 5));
	mine->pushed[0].word = 1 << 16; /* none finished, gave up */
	CHECK(deaf_wait(ch, 2));
	return 0;
}

static int held_reader(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, sizeof(buf)));
	CHECK(rwk_shm_both_ask_for_two(rwk_shm_transfers_of(ch)));
	tp_say(ch, 3, 1);
	CHECK(deaf_wait(ch, 4));
	CHECK(tp_finish(ch, &o, 50) == 1);
	CHECK(tp_counts(ch)->pulled == sizeof(buf) / 2);
	tp_say(ch, 5, 1);
	CHECK(tp_finish(ch, &o, 3000) == 0);
	CHECK(tp_same(buf, sizeof(buf), 0, 0));
	tp_say(ch, 2, 1);
	return 0;
}

/* A chunk that the exposer has claimed is waited for; if it gives up, the reader copies it. */
static void claim_held(void **state)
{
	(void)state;
	tp_run(holding_exposer, held_reader, NULL);
}

static int garbage_sender(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned how = *(const unsigned *)arg;
	char body[RWK_SHM_CONTROL_MAX] = {0};
	struct rwk_shm_ask ask = {.offset = 0, .length = LARGE};
	uint64_t *given_back = rwk_shm_transfer_area(ch, true);

	CHECK(tp_wait(ch, 1, 1));
	ask.cookie = tp_side(ch, false)->key[0].word[0];
	switch (how) {
	case 0: /* a kind that does not exist */
		CHECK(!rwk_shm_control(ch, RWK_SHM_TRANSFER_LAST, body, sizeof(body)));
		break;
	case 1: /* a record cut short */
		CHECK(!rwk_shm_control(ch, (enum rwk_shm_control)RWK_SHM_STAGE_ASK, &ask, sizeof(ask) - 1));
		break;
	case 2: /* more reads at once than agreed */
		for (uint32_t i = 0; i < 2 * RWK_SHM_SERVES; i++) {
			ask.id = i;
			CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_STAGE_ASK, &ask, sizeof(ask)));
		}
		break;
	case 3: /* blocks given back that never were */
		*given_back = 1000;
		CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_STAGE_ASK, &ask, sizeof(ask)));
		break;
	}
	CHECK(deaf_wait(ch, 3));
	tp_say(ch, 2, 1);
	return 0;
}

static int garbage_taker(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};

	(void)arg;
	CHECK(buf);
	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	for (uint64_t end = rwk_shm_now() + 5000000000u; !tp_protocol_error(ch) && rwk_shm_now() < end;)
		tp_progress(ch);
	CHECK(tp_protocol_error(ch));
	tp_say(ch, 3, 1);
	CHECK(tp_wait(ch, 2, 1));
	free(buf);
	return 0;
}

/* Records that make no sense break the channel at once. */
static void garbage_records(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 4; how++)
		tp_run(garbage_taker, garbage_sender, &how);
}

/*
 * Size.
 */

enum { MARKS = 5 };
static const uint64_t huge = ((uint64_t)9 << 29) + 4097; /* 4.5 GB */
static const uint64_t mark[MARKS] = {
	0, (uint64_t)1 << 31, ((uint64_t)1 << 32) - 8, ((uint64_t)1 << 32) + 1, ((uint64_t)9 << 29) + 4089};

static int huge_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct iovec iov = {buf, huge};

	(void)arg;
	CHECK(buf != MAP_FAILED);
	for (int i = 0; i < MARKS; i++)
		memcpy(buf + mark[i], &mark[i], 8);
	CHECK(!rwk_shm_expose(ch, &iov, 1, false, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	for (int i = 0; i < 4 && !tp_wait(ch, 2, 1); i++)
		; /* the reader may take 50 seconds */
	CHECK(tp_wait(ch, 2, 1));
	munmap(buf, huge);
	return 0;
}

static int far_reader(struct rwk_shm_channel *ch, const void *arg)
{
	tp_force(ch, *(const int *)arg);
	CHECK(tp_wait(ch, 1, 1));
	for (int i = 0; i < MARKS; i++) {
		uint64_t got = 77;
		struct iovec iov = {&got, sizeof(got)};
		struct tp_op o;

		CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], mark[i], &iov, 1, sizeof(got)));
		CHECK(tp_finish(ch, &o, 3000) == 0);
		CHECK(got == mark[i]);
	}
	tp_say(ch, 2, 1);
	return 0;
}

/* Offsets beyond 4 GB are what they say. */
static void far_offsets(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(huge_exposer, far_reader, &methods[i]);
}

/* All of it into a target as large, of which only the marks' pages are kept in mind: the rest is zeros. */
static int huge_reader(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct iovec iov = {buf, huge};
	struct tp_op o;

	CHECK(buf != MAP_FAILED);
	tp_force(ch, *(const int *)arg);
	CHECK(tp_wait(ch, 1, 1));
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, huge));
	CHECK(tp_finish(ch, &o, 50000) == 0);
	for (int i = 0; i < MARKS; i++)
		CHECK(!memcmp(buf + mark[i], &mark[i], 8));
	CHECK(!memcmp(buf + 8, buf + 16, 1 << 20));
	if (*(const int *)arg != RWK_SHM_BOTH) /* there the exposer copies its share */
		CHECK(tp_counts(ch)->pulled + tp_counts(ch)->unstaged == huge);
	tp_say(ch, 2, 1);
	munmap(buf, huge);
	return 0;
}

/* More than 4 GB in one read; needs as much memory, so only where RWK_TEST_SLOW is set. */
static void more_than_4_gb(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH};

	(void)state;
	if (!getenv("RWK_TEST_SLOW"))
		skip();
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(huge_exposer, huge_reader, &methods[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_copy),
		cmocka_unit_test(exposer_stopped),
		cmocka_unit_test(denied_at_start),
		cmocka_unit_test(denied_in_the_middle),
		cmocka_unit_test(denied_to_the_exposer),
		cmocka_unit_test(denied_while_alone),
		cmocka_unit_test(exposer_killed),
		cmocka_unit_test(stranger_with_the_same_pid),
		cmocka_unit_test(keys),
		cmocka_unit_test(concealed_in_the_middle),
		cmocka_unit_test(area_scribbled),
		cmocka_unit_test(blocks_that_lie),
		cmocka_unit_test(claim_held),
		cmocka_unit_test(garbage_records),
		cmocka_unit_test(far_offsets),
		cmocka_unit_test(more_than_4_gb),
	};

	return cmocka_run_group_tests_name("shm/transfer_faults", tests, NULL, NULL);
}
