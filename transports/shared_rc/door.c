/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* accept4, struct ucred */
#include "shared_rc/door.h"

#include "shared_rc/card.h"

#include "base/forked.h"
#include "base/log.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	VERSION = 3, /* of what is said here */
	NONCE = 32,
	MAC = 32,
	VISIT = 100,                   /* ms that a visitor may take if others wait for its place */
	EVENTS = RWK_SRC_VISITORS + 1, /* all that there can be: who has spoken is heard before a place is taken away */
	QUEUE = RWK_SRC_MEMBERS_MAX,   /* knocks, at most, that wait, and that an attend takes */
};

#define MAGIC 0x43525352u /* "RSRC" */

/* The first two words mean the same in all versions. */
struct greeting {
	uint32_t magic, version;
	uint8_t nonce[NONCE];
};

struct proof {
	uint8_t nonce[NONCE], mac[MAC];
};

/* What goes with the descriptors. */
struct terms {
	uint64_t id;
	struct rwk_src_size size;
	uint32_t zero;
};

struct welcome {
	struct terms terms;
	uint8_t mac[MAC];
};

/* What a MAC covers: no padding. */
struct said {
	char role[8];
	uint8_t member[NONCE], visitor[NONCE];
	struct terms terms; /* zero in the proof */
	uint32_t uid, zero;
};
_Static_assert(sizeof(struct terms) == 24 && sizeof(struct said) == 104, "every byte of them is written");

static const char role_member[8] = "member", role_visitor[8] = "visitor";

/* What SCM_RIGHTS brings. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(RWK_SRC_THINGS * sizeof(int))];
};

void rwk_src_secret_draw(const uint8_t key[32], uid_t uid, struct rwk_src_secret *secret)
{
	const struct {
		char what[20];
		uint32_t uid;
	} from = {"ropewalk SRC a node", uid};
	uint8_t drawn[sizeof(secret->name) + sizeof(secret->key)];

	crypto_generichash(drawn, sizeof(drawn), (const uint8_t *)&from, sizeof(from), key, 32);
	memcpy(secret->name, drawn, sizeof(secret->name));
	memcpy(secret->key, drawn + sizeof(secret->name), sizeof(secret->key));
	secret->uid = uid;
}

uint64_t rwk_src_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void rwk_src_holding_close(struct rwk_src_holding *holding)
{
	for (int i = 0; i < RWK_SRC_THINGS; i++) {
		if (holding->fd[i] >= 0)
			close(holding->fd[i]);
		holding->fd[i] = -1;
	}
}

static void make_mac(const struct rwk_src_secret *secret, const char role[8], const uint8_t *member,
	const uint8_t *visitor, const struct terms *terms, uint8_t *mac)
{
	struct said said = {.uid = secret->uid};

	memcpy(said.role, role, sizeof(said.role));
	memcpy(said.member, member, NONCE);
	memcpy(said.visitor, visitor, NONCE);
	if (terms)
		said.terms = *terms;
	crypto_generichash(mac, MAC, (const uint8_t *)&said, sizeof(said), secret->key, sizeof(secret->key));
}

static int fresh(uint8_t nonce[NONCE])
{
	return getrandom(nonce, NONCE, 0) == NONCE ? 0 : -EIO;
}

static socklen_t socket_name(const struct rwk_src_secret *secret, struct sockaddr_un *name)
{
	static const char first[] = "ropewalk.src.";
	char *text = name->sun_path + 1;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	memcpy(text, first, sizeof(first));
	sodium_bin2hex(
		text + strlen(first), sizeof(name->sun_path) - sizeof(first), secret->name, sizeof(secret->name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text));
}

/* The process at the other end of a connection, if it is the same user's, else -1. Of a door: who last listened. */
static pid_t same_user(int fd, const struct rwk_src_secret *secret)
{
	struct ucred other;
	socklen_t len = sizeof(other);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &len) && other.uid == secret->uid ? other.pid : -1;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int rwk_src_door_bind(const struct rwk_src_secret *secret)
{
	struct sockaddr_un name;
	socklen_t len = socket_name(secret, &name);
	int fd = new_socket(), rc;

	if (fd < 0 || !bind(fd, (struct sockaddr *)&name, len))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int rwk_src_door_listen(int door)
{
	return listen(door, QUEUE) ? -errno : 0;
}

/*
 * The visitor.
 */

/* 0 if a message has the length that it should have. */
static int check_length(ssize_t n, size_t expected)
{
	if (n == (ssize_t)expected)
		return 0;
	if (n > 0)
		return -EACCES; /* that is not one of us */
	if (n < 0 && (errno == EINTR || errno == EWOULDBLOCK))
		return -EAGAIN;
	return n < 0 && errno != ECONNRESET ? -errno : -ECONNRESET;
}

static int take_greeting(int fd, struct greeting *g)
{
	ssize_t n = recv(fd, g, sizeof(*g), MSG_TRUNC);
	int rc;

	if (n >= (ssize_t)offsetof(struct greeting, nonce) && g->magic == MAGIC && g->version != VERSION)
		return -EPROTONOSUPPORT;
	rc = check_length(n, sizeof(*g));
	return !rc && g->magic != MAGIC ? -EACCES : rc;
}

/*
 * Takes the descriptors that came with a message: as many as there are things, or it is an error. There are no more of
 * them, for the kernel has no room to hand over another.
 */
static int take_things(struct msghdr *msg, int fd[RWK_SRC_THINGS])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t count = 0;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (count)
		memcpy(fd, CMSG_DATA(c), count * sizeof(int));
	if (count == RWK_SRC_THINGS)
		return msg->msg_flags & MSG_CTRUNC ? -EACCES : 0;
	return msg->msg_flags & MSG_CTRUNC ? -EMFILE : -EACCES;
}

static int receive_welcome(int fd, struct welcome *w, int things[RWK_SRC_THINGS])
{
	union control control;
	struct iovec iov = {w, sizeof(*w)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
		/* Without the padding, into which the kernel would put one descriptor more than there are things. */
		.msg_controllen = CMSG_LEN(RWK_SRC_THINGS * sizeof(int))};
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_TRUNC);
	/* What has no bytes may have descriptors, too. */
	int rc = n >= 0 ? take_things(&msg, things) : 0, wrong = check_length(n, sizeof(*w));

	if (wrong)
		return wrong == -ECONNRESET ? -EKEYREJECTED : wrong;
	return rc;
}

static int take_welcome(
	const struct rwk_src_knock *k, const struct rwk_src_secret *secret, struct rwk_src_holding *holding)
{
	struct welcome w;
	uint8_t expected[MAC];
	int rc;

	rwk_fork_lock();
	rc = receive_welcome(k->fd, &w, holding->fd);
	if (!rc) {
		make_mac(secret, role_member, k->member, k->own, &w.terms, expected);
		rc = sodium_memcmp(w.mac, expected, MAC) ? -EACCES : 0;
	}
	if (rc)
		rwk_src_holding_close(holding);
	rwk_fork_unlock();
	if (rc)
		return rc;
	holding->id = w.terms.id;
	holding->size = w.terms.size;
	return 0;
}

/* A member has come to the door: says who we are. */
static int meet(struct rwk_src_knock *k, const struct rwk_src_secret *secret, unsigned patience)
{
	struct greeting g;
	struct proof proof;
	int rc = take_greeting(k->fd, &g);

	if (rc)
		return rc;
	if (fresh(k->own))
		return -EIO;
	memcpy(k->member, g.nonce, NONCE);
	memcpy(proof.nonce, k->own, NONCE);
	make_mac(secret, role_visitor, k->member, k->own, NULL, proof.mac);
	if (send(k->fd, &proof, sizeof(proof), MSG_NOSIGNAL) < 0)
		return -ECONNRESET;
	k->met = true;
	k->until = rwk_src_ms() + patience;
	return 0;
}

static int go_to_the_door(struct rwk_src_knock *k, const struct rwk_src_secret *secret, unsigned patience)
{
	struct sockaddr_un name;
	socklen_t len = socket_name(secret, &name);
	int fd;

	rwk_fork_lock();
	fd = k->fd = new_socket();
	rwk_fork_unlock();
	if (fd < 0)
		return fd;
	k->met = false;
	k->until = rwk_src_ms() + patience / 2;
	if (connect(fd, (struct sockaddr *)&name, len))
		return errno == EAGAIN ? -ECONNREFUSED : -errno; /* the queue is full */
	k->listener = same_user(fd, secret);
	return k->listener < 0 ? -EACCES : 0;
}

/* Nobody looks: takes what the member has that listened last. */
static int help_oneself(struct rwk_src_knock *k, const struct rwk_src_secret *secret, struct rwk_src_holding *holding)
{
	int rc;

	rwk_fork_lock();
	rc = rwk_src_card_take(k->listener, secret, holding);
	rwk_fork_unlock();
	k->helped = rc;
	if (!rc)
		rwk_debug("SRC: nobody looks at the door; what process %d has is taken", (int)k->listener);
	return rc ? -ETIMEDOUT : 0;
}

int rwk_src_door_knock(struct rwk_src_knock *k, const struct rwk_src_secret *secret, unsigned patience,
	struct rwk_src_holding *holding)
{
	int rc = k->fd < 0 ? go_to_the_door(k, secret, patience) : 0;

	if (!rc && !k->met)
		rc = meet(k, secret, patience);
	if (!rc)
		rc = take_welcome(k, secret, holding);
	if (rc == -EAGAIN && rwk_src_ms() >= k->until)
		rc = help_oneself(k, secret, holding);
	if (rc != -EAGAIN) {
		rwk_fork_lock();
		rwk_src_door_leave(k);
		rwk_fork_unlock();
	}
	return rc;
}

void rwk_src_door_leave(struct rwk_src_knock *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

/*
 * The member.
 */

static void watch(struct rwk_src_porch *porch, int op, int fd, struct rwk_src_visitor *v)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = v};

	epoll_ctl(porch->epoll, op, fd, &event);
}

/* Not by closing alone: if a child of a bare clone has it too, it would stay in the set, and the visitor would wait. */
static void send_away(struct rwk_src_porch *porch, struct rwk_src_visitor *v)
{
	watch(porch, EPOLL_CTL_DEL, v->fd, v);
	shutdown(v->fd, SHUT_RDWR);
	close(v->fd);
	v->fd = -1;
}

/* A place for another visitor; NULL: none, and nobody who has said nothing has had his for too long. */
static struct rwk_src_visitor *free_place(struct rwk_src_porch *porch, uint64_t now)
{
	struct rwk_src_visitor *oldest = NULL;

	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		struct rwk_src_visitor *v = &porch->visitor[i];

		if (v->fd < 0)
			return v;
		if (!v->proven && (!oldest || v->since < oldest->since))
			oldest = v;
	}
	if (!oldest || now - oldest->since < VISIT)
		return NULL;
	rwk_debug("SRC: a visitor that says nothing is sent away");
	send_away(porch, oldest);
	return oldest;
}

/* Meets one who has knocked: false if nobody has, or there is no place. */
static bool open_to_one(struct rwk_src_porch *porch)
{
	struct greeting greeting = {.magic = MAGIC, .version = VERSION};
	uint64_t now = rwk_src_ms();
	struct rwk_src_visitor *v = free_place(porch, now);

	if (!v)
		return false;
	v->fd = accept4(porch->holding->fd[RWK_SRC_DOOR], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (v->fd < 0)
		return false;
	v->since = now;
	v->proven = false;
	watch(porch, EPOLL_CTL_ADD, v->fd, v);
	if (same_user(v->fd, porch->secret) < 0) {
		rwk_debug("SRC: a visitor of another user is sent away");
		send_away(porch, v);
	} else if (fresh(v->nonce)) {
		send_away(porch, v);
	} else {
		memcpy(greeting.nonce, v->nonce, NONCE);
		if (send(v->fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) < 0)
			send_away(porch, v);
	}
	return true;
}

static bool proof_holds(const struct rwk_src_porch *porch, const struct rwk_src_visitor *v, const struct proof *proof)
{
	uint8_t expected[MAC];

	make_mac(porch->secret, role_visitor, v->nonce, proof->nonce, NULL, expected);
	return !sodium_memcmp(proof->mac, expected, MAC);
}

/* False: it cannot be sent just now: too many descriptors are under way, or memory is scarce. */
static bool welcome(const struct rwk_src_porch *porch, const struct rwk_src_visitor *v)
{
	const struct rwk_src_holding *h = porch->holding;
	struct welcome w = {.terms = {.id = h->id, .size = h->size}};
	union control control = {0};
	struct iovec iov = {&w, sizeof(w)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = &control.align;

	make_mac(porch->secret, role_member, v->nonce, v->other, &w.terms, w.mac);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(h->fd));
	memcpy(CMSG_DATA(c), h->fd, sizeof(h->fd));
	if (sendmsg(v->fd, &msg, MSG_NOSIGNAL) >= 0)
		return true;
	if (errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM || errno == EAGAIN || errno == EINTR)
		return false;
	rwk_debug("SRC: a visitor cannot be let in: %s", strerror(errno));
	return true;
}

/* He has said something, or has gone. But for a proof that holds, the visit is over then. */
static void hear(struct rwk_src_porch *porch, struct rwk_src_visitor *v)
{
	struct proof proof;
	ssize_t n = recv(v->fd, &proof, sizeof(proof), MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == sizeof(proof) && !v->proven && proof_holds(porch, v, &proof)) {
		memcpy(v->other, proof.nonce, NONCE);
		v->proven = true;
		return;
	}
	if (n > 0)
		rwk_debug("SRC: a visitor that does not know the job's key is sent away");
	send_away(porch, v);
}

/*
 * Those who have proven it. Who cannot be now stays for the next attend: sent away, he would believe that his proof was
 * refused.
 */
static void let_in(struct rwk_src_porch *porch)
{
	porch->owes = false;
	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		struct rwk_src_visitor *v = &porch->visitor[i];

		if (v->fd < 0 || !v->proven)
			continue;
		if (welcome(porch, v))
			send_away(porch, v);
		else
			porch->owes = true;
	}
}

/* Visitors are told by the kernel that it is we who listen. Without a card they wait for somebody who looks. */
static void show_card(struct rwk_src_porch *porch)
{
	porch->card = rwk_src_card_make(porch->secret, porch->holding);
	if (porch->card < 0)
		rwk_debug("SRC: who comes finds no card with us: %s", strerror(-porch->card));
	else
		rwk_src_door_listen(porch->holding->fd[RWK_SRC_DOOR]);
}

static void withdraw(struct rwk_src_porch *porch)
{
	if (porch->card >= 0)
		close(porch->card);
	porch->card = -1;
	close(porch->epoll);
	porch->epoll = -1;
}

int rwk_src_porch_open(
	struct rwk_src_porch *porch, const struct rwk_src_secret *secret, const struct rwk_src_holding *holding)
{
	struct epoll_event event = {.events = EPOLLIN};
	int rc;

	porch->secret = secret;
	porch->holding = holding;
	for (int i = 0; i < RWK_SRC_VISITORS; i++)
		porch->visitor[i].fd = -1;
	porch->owes = false;
	porch->card = -1;
	porch->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (porch->epoll < 0)
		return -errno;
	if (!epoll_ctl(porch->epoll, EPOLL_CTL_ADD, holding->fd[RWK_SRC_DOOR], &event)) {
		show_card(porch);
		return 0;
	}
	rc = -errno;
	close(porch->epoll);
	porch->epoll = -1;
	return rc;
}

void rwk_src_porch_attend(struct rwk_src_porch *porch)
{
	struct epoll_event event[EVENTS];
	int n;

	if (porch->epoll < 0)
		return;
	n = epoll_wait(porch->epoll, event, EVENTS, 0);
	if (n <= 0 && !porch->owes)
		return;
	rwk_fork_lock();
	for (int i = 0; i < n; i++) {
		struct rwk_src_visitor *v = event[i].data.ptr;

		if (v && v->fd >= 0)
			hear(porch, v);
	}
	let_in(porch);
	/* Most who wait may have given up, and knocked anew: they must not use up what those are due who still wait. */
	for (int i = 0; i < QUEUE && open_to_one(porch); i++)
		;
	rwk_fork_unlock();
}

/* Who says nothing for longer than the proof takes is not waited for. */
bool rwk_src_porch_expects(const struct rwk_src_porch *porch)
{
	uint64_t now = rwk_src_ms();

	for (int i = 0; porch->epoll >= 0 && i < RWK_SRC_VISITORS; i++) {
		const struct rwk_src_visitor *v = &porch->visitor[i];

		if (v->fd >= 0 && (v->proven || now - v->since < VISIT))
			return true;
	}
	return false;
}

void rwk_src_porch_close(struct rwk_src_porch *porch)
{
	if (porch->epoll < 0)
		return;
	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		if (porch->visitor[i].fd >= 0)
			send_away(porch, &porch->visitor[i]);
	}
	withdraw(porch);
}

void rwk_src_porch_forget(struct rwk_src_porch *porch)
{
	if (porch->epoll < 0)
		return;
	for (int i = 0; i < RWK_SRC_VISITORS; i++) {
		if (porch->visitor[i].fd >= 0)
			close(porch->visitor[i].fd);
		porch->visitor[i].fd = -1;
	}
	withdraw(porch);
}
