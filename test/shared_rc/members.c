/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "members.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HEAR_MS = 20000, DESCRIPTORS = 256 /* of a process, more than any of a test has */ };

void key_of(uint8_t number, uint8_t key[32])
{
	/* Of this run of the test alone: another may be under way. */
	const uint32_t from[2] = {number, (uint32_t)getsid(0)};
	static uint8_t run[16];

	if (sodium_is_zero(run, sizeof(run)))
		randombytes_buf(run, sizeof(run));
	crypto_generichash(key, 32, (const uint8_t *)from, sizeof(from), run, sizeof(run));
}

static int open_sockets(void *user, int fd[2])
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};

	*(bool *)user = true;
	for (int i = 0; i < 2; i++) {
		fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		if (fd[i] < 0 || bind(fd[i], (struct sockaddr *)&any, sizeof(any)))
			return -errno;
	}
	return 0;
}

struct rwk_src_join_attr attr_of(const struct plan *plan, bool *made)
{
	struct rwk_src_join_attr attr = {
		.size = {.members = 64, .targets = 64, .inbox_bytes = 64 << 10},
		.socket = open_sockets,
		.user = made,
	};

	key_of(plan->key, attr.key);
	return attr;
}

int join_within(const struct rwk_src_join_attr *attr, unsigned ms, struct rwk_src_seat **seat)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t end = rwk_src_ms() + (ms ? ms : 10000);
	int rc = rwk_src_join(attr, seat);

	if (rc)
		return rc;
	while ((rc = rwk_src_join_go_on(*seat)) == -EAGAIN && rwk_src_ms() < end)
		nanosleep(&nap, NULL);
	if (!rc)
		return 0;
	rwk_src_leave(*seat);
	*seat = NULL;
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

/* The inode of what is mapped there. */
static uint64_t inode_at(const void *at)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, inode = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &from, &inode) == 2 && from == (unsigned long)at)
			break;
		inode = 0;
	}
	if (f)
		fclose(f);
	return inode;
}

void tell_of(const struct rwk_src_seat *seat, struct told *told)
{
	socklen_t len = sizeof(told->cookie);

	told->id = rwk_src_seat_id(seat);
	told->inode = inode_at(rwk_src_seat_memory(seat));
	if (getsockopt(rwk_src_seat_socket(seat), SOL_SOCKET, SO_COOKIE, &told->cookie, &len))
		told->cookie = 0;
}

/* A child of a member, which does not exec, and stays. Each second one calls what it should not. */
static pid_t fork_one(struct rwk_src_seat *seat)
{
	static unsigned children;
	pid_t pid = fork();

	children++;
	if (pid)
		return pid;
	if (children % 2 == 0) {
		for (int i = 0; i < 100; i++)
			rwk_src_attend(seat);
		rwk_src_leave(seat);
	}
	sleep(60);
	_exit(0);
}

static pid_t spawn_one(void)
{
	char *const words[] = {(char *)"sleep", (char *)"60", NULL};
	pid_t pid;

	return posix_spawnp(&pid, words[0], NULL, NULL, words, environ) ? -1 : pid;
}

/* Does what it is told; returns when it is to leave, or when its parent has gone. */
static void obey(int fd, struct rwk_src_seat *seat)
{
	enum order now = ATTEND;
	char order;

	for (;;) {
		struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
			{.fd = now == COMPUTE ? -1 : rwk_src_seat_door(seat), .events = POLLIN}};

		if (poll(p, 2, 1000) < 0)
			return;
		if (p[1].revents) {
			rwk_src_attend(seat);
			now = now == ONCE ? COMPUTE : now;
		}
		if (!p[0].revents)
			continue;
		if (read(fd, &order, 1) != 1 || order == LEAVE)
			return;
		if (order == FORK || order == SPAWN) {
			pid_t pid = order == FORK ? fork_one(seat) : spawn_one();

			if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
				return;
		} else {
			now = (enum order)order;
		}
		if (write(fd, &order, 1) != 1)
			return;
	}
}

/* A view of the memory, as it is now that we have joined. */
static struct rwk_src_view *view_of(const struct rwk_src_seat *seat, struct told *told)
{
	static const struct rwk_src_host nothing_comes;
	struct rwk_src_view *view = NULL;

	do {
		told->rc = rwk_src_view_open(rwk_src_seat_memory(seat), &nothing_comes, NULL, &view);
	} while (told->rc == -EAGAIN);
	if (!told->rc)
		told->srqn = rwk_src_srqn(view);
	return view;
}

static void live(int fd, const struct plan *plan)
{
	struct rwk_src_seat *seat = NULL;
	struct rwk_src_view *view = NULL;
	struct told told = {.rc = 0};
	struct rwk_src_join_attr attr = attr_of(plan, &told.made);

	if (plan->uid && setresuid(plan->uid, plan->uid, plan->uid))
		_exit(99);
	if (plan->before)
		told.rc = plan->before();
	if (!told.rc)
		told.rc = join_within(&attr, plan->wait_ms, &seat);
	if (!told.rc) {
		tell_of(seat, &told);
		view = view_of(seat, &told);
	}
	if (write(fd, &told, sizeof(told)) != sizeof(told))
		_exit(98);
	if (!seat)
		_exit(0);
	obey(fd, seat);
	if (view)
		rwk_src_view_close(view);
	rwk_src_leave(seat);
	_exit(0);
}

void member_start(struct member *m, const struct plan *plan)
{
	uint8_t key[32];
	int fd[2];

	key_of(plan->key, key); /* the run's part is drawn before the fork */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	memset(&m->told, 0, sizeof(m->told));
	m->pid = fork();
	assert_true(m->pid >= 0);
	if (!m->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd[0]);
		live(fd[1], plan);
	}
	close(fd[1]);
	m->fd = fd[0];
}

static bool hear(struct member *m, void *what, size_t len)
{
	struct pollfd p = {.fd = m->fd, .events = POLLIN};

	return poll(&p, 1, HEAR_MS) == 1 && recv(m->fd, what, len, MSG_WAITALL) == (ssize_t)len;
}

bool member_speaks(struct member *m)
{
	struct pollfd p = {.fd = m->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

bool member_hear(struct member *m)
{
	return hear(m, &m->told, sizeof(m->told));
}

void member_join(struct member *m, const struct plan *plan)
{
	member_start(m, plan);
	assert_true(member_hear(m));
	assert_int_equal(m->told.rc, 0);
	assert_true(m->told.id && m->told.cookie && m->told.inode);
}

void member_order(struct member *m, enum order order)
{
	char said = (char)order, answer = 0;

	assert_int_equal(write(m->fd, &said, 1), 1);
	assert_true(hear(m, &answer, 1));
	assert_int_equal(answer, said);
}

static pid_t order_child(struct member *m, enum order order)
{
	char said = (char)order, answer = 0;
	pid_t pid = 0;

	assert_int_equal(write(m->fd, &said, 1), 1);
	assert_true(hear(m, &pid, sizeof(pid)) && hear(m, &answer, 1));
	assert_true(pid > 0);
	return pid;
}

pid_t member_fork(struct member *m)
{
	return order_child(m, FORK);
}

pid_t member_spawn(struct member *m)
{
	return order_child(m, SPAWN);
}

void member_leave(struct member *m)
{
	char said = LEAVE;
	int status = -1;

	/* One that could not join has ended already. */
	if (!m->told.rc)
		assert_int_equal(write(m->fd, &said, 1), 1);
	assert_int_equal(waitpid(m->pid, &status, 0), m->pid);
	assert_int_equal(status, 0);
	close(m->fd);
}

void member_kill(struct member *m)
{
	kill(m->pid, SIGKILL);
	assert_int_equal(waitpid(m->pid, NULL, 0), m->pid);
	close(m->fd);
}

bool same_domain(const struct told *a, const struct told *b)
{
	return a->id == b->id && a->cookie == b->cookie && a->inode == b->inode;
}

bool name_is_taken(uint8_t key, uid_t uid)
{
	struct rwk_src_secret secret;
	char line[512], hex[2 * sizeof(secret.name) + 1];
	FILE *f = fopen("/proc/net/unix", "r");
	uint8_t bytes[32];
	bool found = false;

	key_of(key, bytes);
	rwk_src_secret_draw(bytes, uid, &secret);
	sodium_bin2hex(hex, sizeof(hex), secret.name, sizeof(secret.name));
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found = found || strstr(line, hex);
	fclose(f);
	return found;
}

static bool is_that(int folder, const char *name, const struct told *told)
{
	char to[64] = "";
	struct stat st;

	return readlinkat(folder, name, to, sizeof(to) - 1) > 0 && strstr(to, "/memfd:ropewalk src") == to &&
	       !fstatat(folder, name, &st, 0) && st.st_ino == told->inode;
}

static bool has_open(const char *pid, const struct told *told)
{
	char path[300];
	bool found = false;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d)))
		found = is_that(dirfd(d), e->d_name, told);
	if (d)
		closedir(d);
	return found;
}

static bool has_mapped(const char *pid, const struct told *told)
{
	char path[300], line[512];
	unsigned long inode;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "/memfd:ropewalk src") && sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 &&
			inode == told->inode;
	if (f)
		fclose(f);
	return found;
}

/*
 * Allocates nothing: in a forked child of several threads another one may have had the allocator's lock, which not
 * every sanitizer's allocator gives back.
 */
bool has_memory(const struct told *told)
{
	int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;
	char name[12];

	for (int fd = 0; fd < DESCRIPTORS && !found; fd++) {
		snprintf(name, sizeof(name), "%d", fd);
		found = is_that(folder, name, told);
	}
	close(folder);
	return found;
}

unsigned holders_of(const struct told *told)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned count = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		count += e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
			 (has_open(e->d_name, told) || has_mapped(e->d_name, told));
	closedir(d);
	return count;
}

void assert_nothing_left(const struct told *told, uint8_t key)
{
	/* What a socket held in flight is given back by the kernel's own process, a little later. */
	for (int i = 0; i < 2000 && name_is_taken(key, geteuid()); i++)
		sleep_ms(10);
	assert_false(name_is_taken(key, geteuid()));
	assert_int_equal(holders_of(told), 0);
}

unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void sleep_ms(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

int deny(unsigned call, unsigned mask, unsigned argument, unsigned err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}
