/* SPDX-License-Identifier: BSD-3-Clause */
#include "rwk_test.h"

#include "ends.h"

#include "base/compiler.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void pattern_fill(unsigned char *to, uint64_t number, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(number * 31 + i + (i >> 8) * 7);
}

bool pattern_is(const unsigned char *at, uint64_t number, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (at[i] != (unsigned char)(number * 31 + i + (i >> 8) * 7))
			return false;
	}
	return true;
}

static int on_connected(void *cookie, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct end *e = cookie;
	struct end_peer *p = ch->peer;

	if (e->refuse)
		return -EACCES;
	if (e->lacks) {
		e->lacks--;
		return -ENOMEM;
	}
	if (!p) {
		assert_true(e->peers < END_PEERS);
		p = &e->peer[e->peers++];
		ch->peer = p;
		p->ch = ch;
	}
	p->address = *from;
	return 0;
}

static void check(struct end *e, struct end_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	uint64_t number = p->received;

	if (!e->tolerant &&
		(env->tag != number || env->small != (uint16_t)(number * 3) || env->kind != number % 200 ||
			env->data != (env->flags & RWK_ENV_DATA ? ~number : 0) || !pattern_is(payload, number, len))) {
		if (!e->wrong)
			fprintf(stderr, "message %llu of %zu bytes came as tag %llu flags %x\n",
				(unsigned long long)number, len, (unsigned long long)env->tag, env->flags);
		e->wrong++;
	}
	p->bytes += len;
	if (e->seen)
		e->seen(e, p, env, payload, len);
	p->received++;
	if (e->echo)
		assert_int_not_equal(end_send(e, p, len, env->flags, true), -EINVAL);
}

static void on_message(
	void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	unsigned char copy[8192];

	assert_true(len <= sizeof(copy));
	memcpy(copy, payload, len);
	check(cookie, ch->peer, env, copy, len);
}

/* Three uneven parts, so that pieces straddle them. */
static struct rwk_place *on_begin(void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct end *e = cookie;

	assert_null(e->from);
	e->from = ch->peer;
	e->env = *env;
	e->len = len;
	e->buffer = malloc(len);
	e->iov[0] = (struct iovec){e->buffer, len / 3};
	e->iov[1] = (struct iovec){e->buffer + len / 3, 1};
	e->iov[2] = (struct iovec){e->buffer + len / 3 + 1, len - len / 3 - 1};
	e->place = (struct rwk_place){.iov = e->iov, .iov_count = 3};
	return &e->place;
}

static void on_end(void *cookie, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct end *e = cookie;
	struct end_peer *p = e->from;

	assert_ptr_equal(place, &e->place);
	assert_ptr_equal(p, ch->peer);
	e->from = NULL;
	if (status) {
		p->ended_early = status;
	} else {
		p->pieces++;
		check(e, p, &e->env, e->buffer, e->len);
	}
	free(e->buffer);
}

static void on_failed(void *cookie, struct rwk_channel *ch, int err)
{
	struct end_peer *p = ch->peer;

	(void)cookie;
	assert_int_equal(ch->error, err);
	p->failed = err;
	p->failed_calls++;
}

static const struct rwk_client client = {
	.connected = on_connected,
	.message = on_message,
	.begin = on_begin,
	.end = on_end,
	.failed = on_failed,
};

struct end *end_open(uint16_t number, bool oversubscribed)
{
	struct rwk_port_attr attr = {.oversubscribed = oversubscribed};
	struct end *e = calloc(1, sizeof(*e));

	if (!rwk_params.eager_max)
		rwk_param_load();
	attr.address.version_srq = RWK_ADDR_VERSION << 24;
	attr.address.job = 7;
	attr.address.node = 5;
	attr.address.nonce_port = number;
	attr.address.ip[10] = attr.address.ip[11] = 0xff;
	attr.address.ip[12] = 127;
	attr.address.ip[15] = 1;
	assert_int_equal(rwk_shm_transport.open(&attr, &client, e, &e->port), 0);
	e->address = attr.address;
	assert_true(!number || rwk_address_port(&e->address) == number);
	return e;
}

uint16_t own_number(void)
{
	static uint16_t number;

	for (unsigned i = 0; !number && i < 1000; i++) {
		uint16_t n = (uint16_t)(1 + ((unsigned)getpid() + i) % 1000);
		struct sockaddr_un name = {.sun_family = AF_UNIX};
		int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ropewalk.test.%u", n);

		assert_true(fd >= 0);
		if (!bind(fd, (struct sockaddr *)&name,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)))
			number = n; /* the socket stays open, also where this process becomes another program */
		else
			close(fd);
	}
	assert_int_not_equal(number, 0);
	return number;
}

void end_close(struct end *e)
{
	rwk_shm_transport.close(e->port);
	free(e);
}

struct end_peer *end_connect(struct end *e, const struct rwk_address *to)
{
	struct end_peer *p;

	for (unsigned i = 0; i < e->peers; i++) {
		if (e->peer[i].address.nonce_port == to->nonce_port && !e->peer[i].failed)
			return &e->peer[i];
	}
	assert_true(e->peers < END_PEERS);
	p = &e->peer[e->peers++];
	p->address = *to;
	assert_int_equal(rwk_shm_transport.connect(e->port, to, p, &p->ch), 0);
	return p;
}

static struct rwk_envelope envelope(uint64_t number, uint8_t flags)
{
	return (struct rwk_envelope){
		.kind = number % 200, .flags = flags, .small = (uint16_t)(number * 3), .tag = number, .data = ~number};
}

struct posted {
	struct rwk_op op;
	struct end_peer *peer;
	struct iovec iov[8];
	unsigned char bytes[];
};

static void posted_done(struct rwk_op *op, int status)
{
	struct posted *o = rwk_container_of(op, struct posted, op);

	o->peer->done++;
	if (status)
		o->peer->done_error++;
	free(o);
}

int end_post(struct end *e, struct end_peer *p, size_t len, unsigned parts, uint8_t flags)
{
	struct posted *o = calloc(1, sizeof(*o) + len);
	size_t at = 0;
	int rc;

	(void)e;
	o->peer = p;
	o->op = (struct rwk_op){
		.type = RWK_OP_SEND, .iov = o->iov, .iov_count = parts, .length = len, .done = posted_done};
	o->op.env = envelope(p->sent, flags);
	pattern_fill(o->bytes, p->sent, len);
	for (unsigned i = 0; i < parts; i++) {
		size_t n = i + 1 == parts ? len - at : (len - at) / (parts - i) / 2;

		o->iov[i] = (struct iovec){o->bytes + at, n};
		at += n;
	}
	rc = rwk_shm_transport.post(p->ch, &o->op);
	if (rc >= 0)
		p->sent++;
	if (rc)
		free(o);
	return rc;
}

int end_send(struct end *e, struct end_peer *p, size_t len, uint8_t flags, bool insist)
{
	struct rwk_envelope env = envelope(p->sent, flags);
	unsigned char *buf = malloc(len ? len : 1);
	int rc;

	pattern_fill(buf, p->sent, len);
	rc = rwk_shm_transport.send(p->ch, &env, len ? buf : NULL, len);
	free(buf);
	if (!rc)
		p->sent++;
	else if (rc == -EAGAIN && insist)
		return end_post(e, p, len, 1 + (unsigned)(p->sent % 8), flags) < 0 ? -EPIPE : 0;
	return rc;
}

/* One turn of a wait. Where nothing comes the peer may need this very processor. */
static void turn(struct end *e, unsigned *idle)
{
	if (rwk_shm_transport.progress(e->port))
		*idle = 0;
	else if (++*idle % 1024 == 0)
		sched_yield();
}

bool end_push(struct end *e, struct end_peer *p, size_t len, uint8_t flags)
{
	uint64_t end = now_ms() + 10000;
	unsigned idle = 0;
	int rc;

	while ((rc = end_send(e, p, len, flags, false)) == -EAGAIN && now_ms() < end)
		turn(e, &idle);
	return !rc;
}

bool end_until(struct end *e, const uint64_t *value, uint64_t goal, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;
	unsigned idle = 0;

	while (*value < goal && now_ms() < end)
		turn(e, &idle);
	return *value >= goal;
}

bool end_until_failed(struct end *e, struct end_peer *p, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;
	unsigned idle = 0;

	while (!p->failed && now_ms() < end)
		turn(e, &idle);
	return p->failed != 0;
}

bool end_until_peers(struct end *e, unsigned count, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;
	unsigned idle = 0;

	while (e->peers < count && now_ms() < end)
		turn(e, &idle);
	return e->peers >= count;
}

bool end_sleep_until(struct end *e, const uint64_t *value, uint64_t goal, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	while (*value < goal && now_ms() < end) {
		struct pollfd p = {.fd = rwk_shm_transport.wait_fd(e->port), .events = POLLIN};

		if (!rwk_shm_transport.arm(e->port))
			poll(&p, 1, ms);
		rwk_shm_transport.progress(e->port);
	}
	return *value >= goal;
}

pid_t child_run(int (*fn)(int fd, void *arg), void *arg, int *fd)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		close(pair[1]);
		*fd = pair[0];
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(99);
	close(pair[0]);
	_exit(fn(pair[1], arg));
}

int child_wait(pid_t pid)
{
	int status, tries = 10000;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (!tries--) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return 255;
		}
		poll(NULL, 0, 1);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool tell(int fd, const void *what, size_t len)
{
	return write(fd, what, len) == (ssize_t)len;
}

bool hear(int fd, void *what, size_t len)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 10000) == 1 && recv(fd, what, len, MSG_WAITALL) == (ssize_t)len;
}

struct rwk_address partial(const struct rwk_address *a)
{
	struct rwk_address p = {.version_srq = a->version_srq, .flags_rank = RWK_ADDR_PARTIAL};

	p.nonce_port = rwk_address_port(a);
	memcpy(p.ip, a->ip, sizeof(p.ip));
	return p;
}

bool turn_both(struct end *a, struct end *b, const uint64_t *value, uint64_t goal)
{
	uint64_t end = now_ms() + 10000;

	while (*value < goal && now_ms() < end) {
		rwk_shm_transport.progress(a->port);
		rwk_shm_transport.progress(b->port);
	}
	return *value >= goal;
}

void all_there(struct end *from, struct end_peer *p, struct end *to)
{
	assert_true(turn_both(from, to, &to->peer[0].received, p->sent));
	assert_int_equal(to->wrong, 0);
	assert_int_equal(to->peer[0].failed, 0);
}

struct end_peer *end_meet(struct end *from, struct end *to)
{
	struct end_peer *there = end_connect(from, &to->address);

	assert_int_equal(end_send(from, there, 8, 0, true), 0);
	assert_true(turn_both(from, to, &to->peer[0].received, 1));
	return there;
}

bool turn_until_failed(struct end *a, struct end *b, struct end_peer *p, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	while (!p->failed && now_ms() < end) {
		rwk_shm_transport.progress(a->port);
		if (b)
			rwk_shm_transport.progress(b->port);
	}
	return p->failed != 0;
}

int raw_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

socklen_t socket_name(struct sockaddr_un *name, const struct end *e)
{
	int n;

	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "ropewalk.%u", rwk_address_port(&e->address));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}
