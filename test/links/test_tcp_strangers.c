/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP link and those who are no friends: garbage, silence, wrong proofs, other programs, breaches. Bare sockets
 * speak the hello by hand here.
 */
#include "links/tcp_peers.h"

#include "links/tcp/hello.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define GOODBYE RWK_FRAME_GOODBYE

static struct sockaddr_in at_port(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int bare(uint16_t port)
{
	struct sockaddr_in a = at_port(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void put(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

/* Bytes that come while p goes on, until `len` are there or the end; what the other end has sent in all. */
static size_t take(struct peer *p, int fd, void *to, size_t len)
{
	uint64_t end = now_ms() + 20000;
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, (char *)to + got, len - got, MSG_DONTWAIT);

		assert_true(now_ms() < end);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		got += n > 0 ? (size_t)n : 0;
		p->l->ops->progress(p->l, 16);
	}
	return got;
}

/* How many bytes the link says before it hangs up. */
static size_t until_end(struct peer *p, int fd)
{
	uint8_t bytes[256];
	size_t got = take(p, fd, bytes, sizeof(bytes));

	assert_true(got < sizeof(bytes));
	close(fd);
	return got;
}

/* The first two messages of the hello: what to prove. */
static int knock(struct peer *p, struct challenge *c)
{
	int fd = bare(rwk_tcp_port(p->l));
	struct knock k;

	rwk_hello_knock(&k);
	put(fd, &k, sizeof(k));
	assert_int_equal(take(p, fd, c, sizeof(*c)), sizeof(*c));
	assert_int_equal(rwk_hello_check_challenge(c), 0);
	return fd;
}

static struct proof good_proof(const struct peer *p, const struct challenge *c, uint64_t nonce)
{
	struct proof proof = {.nonce = nonce, .meant = p->nonce, .port = 999};

	rwk_hello_prove(secret, c, &proof);
	return proof;
}

/* A whole good hello of a process of that nonce which listens at that port. */
static int friend_stream(struct peer *p, uint64_t nonce, uint16_t port)
{
	struct proof proof = {.nonce = nonce, .meant = p->nonce, .port = port};
	struct challenge c;
	struct verdict v;
	int fd = knock(p, &c);

	rwk_hello_prove(secret, &c, &proof);
	put(fd, &proof, sizeof(proof));
	assert_int_equal(take(p, fd, &v, sizeof(v)), sizeof(v));
	assert_int_equal(rwk_hello_check_verdict(secret, &c, &proof, &v), 0);
	assert_int_equal(v.answer, WELCOME);
	assert_int_equal(v.nonce, p->nonce);
	return fd;
}

static struct peer *open_default(void)
{
	struct rwk_tcp_attr attr = tcp_attr(22);

	return open_peer(&attr);
}

/* Whatever comes in place of a knock: not one byte of answer, a count, and no word. */
static void not_a_knock(void **state)
{
	struct peer *p = open_default();
	static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	uint8_t garbage[1000];
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (uint8_t)(i * 7 + 1);
	fd = bare(rwk_tcp_port(p->l));
	put(fd, garbage, sizeof(garbage));
	assert_int_equal(until_end(p, fd), 0);
	fd = bare(rwk_tcp_port(p->l));
	put(fd, get, sizeof(get));
	assert_int_equal(until_end(p, fd), 0);
	fd = bare(rwk_tcp_port(p->l));
	shutdown(fd, SHUT_WR);
	assert_int_equal(until_end(p, fd), 0);
	assert_int_equal(rwk_tcp_counts(p->l)->strangers, 3);
	assert_int_equal(p->word_count, 0);
	close_peer(p);
}

static void refused_proof(struct peer *p, int fd, const struct proof *proof)
{
	uint64_t before = rwk_tcp_counts(p->l)->strangers;

	put(fd, proof, sizeof(*proof));
	assert_int_equal(until_end(p, fd), 0);
	assert_int_equal(rwk_tcp_counts(p->l)->strangers, before + 1);
	assert_int_equal(p->word_count, 0);
	assert_int_equal(rwk_tcp_counts(p->l)->opened, 0);
}

/* A proof with one wrong bit anywhere, with another secret, of another meeting, of nobody or of the link itself. */
static void wrong_proof(void **state)
{
	static const uint64_t other[2] = {0x0123456789abcdef, 0xfedcba9876543211};
	struct peer *p = open_default();
	struct challenge c, c2;
	struct proof proof;
	int fd, fd2;

	(void)state;
	for (size_t i = 0; i < sizeof(proof); i++) {
		fd = knock(p, &c);
		proof = good_proof(p, &c, 11);
		((uint8_t *)&proof)[i] ^= (uint8_t)(1u << i % 8);
		refused_proof(p, fd, &proof);
	}
	fd = knock(p, &c);
	proof = (struct proof){.nonce = 11, .port = 999};
	rwk_hello_prove(other, &c, &proof);
	refused_proof(p, fd, &proof);

	fd = knock(p, &c);
	fd2 = knock(p, &c2);
	assert_memory_not_equal(c.random, c2.random, sizeof(c.random));
	proof = good_proof(p, &c, 11);
	refused_proof(p, fd2, &proof);
	close(fd);

	fd = knock(p, &c);
	proof = good_proof(p, &c, 0);
	refused_proof(p, fd, &proof);
	fd = knock(p, &c);
	proof = good_proof(p, &c, p->nonce);
	refused_proof(p, fd, &proof);
	close_peer(p);
}

/* A verdict is for one proof and from who listens: the proof's own MAC does not pass for it, nor another's verdict. */
static void wrong_verdict(void **state)
{
	struct challenge c;
	struct proof p = {.nonce = 11, .meant = 22, .port = 999}, q = p;
	struct verdict v = {.answer = WELCOME, .nonce = 22}, w;

	(void)state;
	rwk_hello_challenge(&c);
	rwk_hello_prove(secret, &c, &p);
	rwk_hello_prove(secret, &c, &q);
	assert_int_equal(rwk_hello_check_proof(secret, &c, &p), 0);
	assert_memory_not_equal(p.random, q.random, sizeof(p.random));
	rwk_hello_answer(secret, &c, &p, &v);
	assert_int_equal(rwk_hello_check_verdict(secret, &c, &p, &v), 0);
	assert_int_equal(rwk_hello_check_verdict(secret, &c, &q, &v), -EACCES);
	w = v;
	w.answer = STALE;
	assert_int_equal(rwk_hello_check_verdict(secret, &c, &p, &w), -EACCES);
	w = v;
	w.nonce++;
	assert_int_equal(rwk_hello_check_verdict(secret, &c, &p, &w), -EACCES);
	w.mac = p.mac;
	assert_int_equal(rwk_hello_check_verdict(secret, &c, &p, &w), -EACCES);
}

/*
 * Many who connect and say nothing: there are never more of them than allowed, they go when their time is up, and a
 * peer gets in while they are there.
 */
static void silence(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(22), friend = tcp_attr(11);
	struct peer *p, *f = open_peer(&friend);
	uint64_t end;
	int fd[100];

	(void)state;
	attr.strangers = 8;
	attr.stranger_ms = 500; /* a peer behind a hundred is waited for a dozen times as long */
	p = open_peer(&attr);
	for (int i = 0; i < 100; i++)
		fd[i] = bare(rwk_tcp_port(p->l));
	connect_peers(f, p);
	end = now_ms() + 20000;
	while (rwk_tcp_counts(p->l)->silent < 100) {
		assert_true(now_ms() < end);
		p->l->ops->progress(p->l, 16);
	}
	assert_int_equal(p->word_count, 1);
	assert_int_equal(rwk_tcp_counts(p->l)->strangers, 0);
	for (int i = 0; i < 100; i++)
		close(fd[i]);
	close_peer(p);
	close_peer(f);
}

/* How many of them this link holds: those that are not hung up at the other side. */
static unsigned count_held(const int *fd, int count)
{
	unsigned held = 0;
	uint8_t byte;

	for (int i = 0; i < count; i++)
		held += recv(fd[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
	return held;
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/*
 * Of twenty silent ones eight are let in, and nobody spins meanwhile. False: this process was away for so long that
 * they had had their time.
 */
static bool undisturbed_for_a_while(struct peer *p, const int fd[20], unsigned before)
{
	struct pollfd w = {.fd = p->l->ops->wait_fd(p->l, 0), .events = POLLIN};
	uint64_t start = now_ms();
	unsigned open, held;
	int armed, woken;

	p->l->ops->progress(p->l, 16);
	p->l->ops->progress(p->l, 16);
	open = descriptors();
	held = count_held(fd, 20);
	armed = p->l->ops->arm(p->l);
	woken = poll(&w, 1, 20); /* it does not ask for those who wait */
	if (now_ms() > start + 200)
		return false;
	assert_int_equal(open - before, 20 + 8);
	assert_int_equal(held, 20);
	assert_int_equal(armed, 0);
	assert_int_equal(woken, 0);
	assert_int_equal(poll(&w, 1, 20000), 1); /* its timer lets them in */
	return true;
}

/* The limit holds: of twenty silent ones eight are let in, and stay undisturbed for a while. */
static void silent_limit(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(22);
	bool done = false;

	(void)state;
	attr.strangers = 8;
	for (int tries = 0; !done; tries++) {
		struct peer *p = open_peer(&attr);
		unsigned before = descriptors();
		int fd[20];

		assert_true(tries < 100);
		for (int i = 0; i < 20; i++)
			fd[i] = bare(rwk_tcp_port(p->l));
		done = undisturbed_for_a_while(p, fd, before);
		for (int i = 0; i < 20; i++)
			close(fd[i]);
		close_peer(p);
	}
}

/* One who knocks and then says nothing goes as well. */
static void silent_after_knock(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(22);
	struct challenge c;
	struct peer *p;
	int fd;

	(void)state;
	attr.stranger_ms = 1000;
	p = open_peer(&attr);
	fd = knock(p, &c);
	assert_int_equal(until_end(p, fd), 0);
	assert_int_equal(rwk_tcp_counts(p->l)->silent, 1);
	close_peer(p);
}

/* He hears of it, too, while a forked child holds the socket. */
static void silent_with_child(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(22);
	struct challenge c;
	struct peer *p;
	pid_t child;
	int fd;

	(void)state;
	attr.stranger_ms = 100;
	p = open_peer(&attr);
	fd = knock(p, &c);
	child = fork_holder();
	assert_int_equal(until_end(p, fd), 0);
	end_holder(child);
	close_peer(p);
}

/* Two links with two secrets: who connects hears that it is not let in, who listens counts a stranger. */
static void two_secrets(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(11);
	struct peer *p = open_default(), *q;

	(void)state;
	attr.secret[1]++;
	q = open_peer(&attr);
	assert_int_equal(rwk_tcp_reach(q->l, &p->at, 22), 0);
	until_words(q, p, 1);
	assert_int_equal(last_word(q), -EACCES);
	assert_int_equal(p->word_count, 0);
	assert_true(rwk_tcp_counts(p->l)->strangers > 0);
	close_peer(p);
	close_peer(q);
}

/* Somebody who only listens: what it says in answer to what comes. */
static int other_program(struct rwk_link_address *at)
{
	struct sockaddr_in a = at_port(0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 10), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*at = rwk_tcp_address(loopback4, ntohs(a.sin_port));
	return fd;
}

static int accept_with(struct peer *p, int listener)
{
	uint64_t end = now_ms() + 20000;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) < 0) {
		assert_true(now_ms() < end);
		p->l->ops->progress(p->l, 16);
	}
	return fd;
}

/* Another program listens: it hangs up each time, talks garbage, has another version, gives a verdict it cannot prove.
 */
static void other_programs(void **state)
{
	static const char welcome[] = "220 mail.example ESMTP, welcome, and so on\r\n";
	struct rwk_link_address at;
	int listener = other_program(&at), fd;
	struct peer *p = open_default();
	uint64_t end = now_ms() + 30000;
	uint8_t asked[64];
	struct verdict v = {.answer = STALE, .nonce = 33, .mac = 1};
	struct challenge c;

	(void)state;
	assert_int_equal(rwk_tcp_reach(p->l, &at, 11), 0);
	while (!p->word_count) {
		assert_true(now_ms() < end);
		p->l->ops->progress(p->l, 16);
		fd = accept(listener, NULL, NULL);
		if (fd >= 0)
			close(fd);
	}
	assert_int_equal(last_word(p), -EACCES);
	assert_in_range(rwk_tcp_counts(p->l)->again, 5, 20);

	assert_int_equal(rwk_tcp_reach(p->l, &at, 11), 0);
	fd = accept_with(p, listener);
	put(fd, welcome, sizeof(welcome));
	until_words(p, NULL, 2);
	assert_int_equal(last_word(p), -EACCES);
	close(fd);

	assert_int_equal(rwk_tcp_reach(p->l, &at, 11), 0);
	fd = accept_with(p, listener);
	rwk_hello_challenge(&c);
	c.version++;
	put(fd, &c, sizeof(c));
	until_words(p, NULL, 3);
	assert_int_equal(last_word(p), -EPROTONOSUPPORT);
	close(fd);

	assert_int_equal(rwk_tcp_reach(p->l, &at, 11), 0);
	fd = accept_with(p, listener);
	c.version--;
	put(fd, &c, sizeof(c));
	assert_int_equal(take(p, fd, asked, sizeof(struct knock)), sizeof(struct knock));
	assert_int_equal(take(p, fd, asked, sizeof(struct proof)), sizeof(struct proof));
	put(fd, &v, sizeof(v));
	until_words(p, NULL, 4);
	assert_int_equal(last_word(p), -EACCES);
	close(fd);
	close(listener);
	close_peer(p);
}

/* A length beyond the mtu is a breach: what came before is delivered, then -EPROTO; the other hears a goodbye. */
static void breach(void **state)
{
	struct peer *p = open_default();
	int fd = friend_stream(p, 11, 999);
	uint32_t frame[4] = {4, 0, RWK_TCP_MTU + 1, 7}, goodbye = 0;

	(void)state;
	put(fd, frame, sizeof(frame));
	until_words(p, NULL, 2);
	assert_int_equal(last_word(p), -EPROTO);
	assert_int_equal(p->got, 1);
	assert_int_equal(take(p, fd, &goodbye, sizeof(goodbye)), sizeof(goodbye));
	assert_int_equal(goodbye, GOODBYE);
	assert_int_equal(until_end(p, fd), 0);
	close_peer(p);
}

/* A frame that comes byte by byte is one packet; one whose end never comes is none. */
static void pieces(void **state)
{
	struct peer *p = open_default();
	int fd = friend_stream(p, 11, 999);
	uint32_t frame[2] = {4, 0}, part[2] = {RWK_TCP_MTU, 1};
	uint64_t end = now_ms() + 20000;

	(void)state;
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
	for (size_t i = 0; i < sizeof(frame); i++) {
		assert_int_equal(p->got, 0);
		put(fd, (uint8_t *)frame + i, 1);
		run_for(p, NULL, 2);
	}
	while (!p->got) {
		assert_true(now_ms() < end);
		run_for(p, NULL, 1);
	}
	put(fd, part, sizeof(part));
	run_for(p, NULL, 5);
	close(fd);
	until_words(p, NULL, 2);
	assert_int_equal(last_word(p), -ECONNRESET);
	assert_int_equal(p->got, 1);
	close_peer(p);
}

/* Goodbye ends in good order; the end of the stream, or a reset, without one is the process' end. */
static void endings(void **state)
{
	static const uint32_t goodbye = GOODBYE;
	static const struct linger reset = {.l_onoff = 1};
	struct peer *p = open_default();
	int fd;

	(void)state;
	fd = friend_stream(p, 11, 999);
	put(fd, &goodbye, sizeof(goodbye));
	close(fd);
	until_words(p, NULL, 2);
	assert_int_equal(last_word(p), -ESHUTDOWN);

	fd = friend_stream(p, 12, 999);
	close(fd);
	until_words(p, NULL, 4);
	assert_int_equal(last_word(p), -ECONNRESET);

	fd = friend_stream(p, 13, 999);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(fd);
	until_words(p, NULL, 6);
	assert_int_equal(last_word(p), -ECONNRESET);
	assert_int_equal(rwk_tcp_counts(p->l)->broken, 2);

	/* The goodbye is there to be read, but what this end writes hits a closed socket first. */
	fd = friend_stream(p, 14, 999);
	put(fd, &goodbye, sizeof(goodbye));
	close(fd);
	usleep(10000);
	for (uint32_t n = 0; n < 3; n++) {
		send_number(p, &p->word_of[6], n);
		p->l->ops->flush(p->l);
		usleep(5000);
	}
	until_words(p, NULL, 8);
	assert_int_equal(last_word(p), -ESHUTDOWN);
	close_peer(p);
}

/*
 * A stream is reset, but the process of that nonce answers where it listens: a kernel has given the stream up, nobody
 * has died. When another process is there, the one meant has.
 */
static void reset_of_the_living(void **state)
{
	static const struct linger reset = {.l_onoff = 1};
	struct rwk_tcp_attr attr = tcp_attr(11);
	struct peer *p = open_default(), *alive = open_peer(&attr);

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool same = i % 2 == 0;
		int fd = friend_stream(p, same ? 11 : 12, rwk_tcp_port(alive->l));

		if (i / 2)
			assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
		close(fd);
		until_words(p, alive, 2 * i + 2);
		assert_int_equal(last_word(p), same ? -ETIMEDOUT : -ECONNRESET);
	}
	run_for(p, alive, 50);
	assert_int_equal(alive->word_count, 0); /* it was asked, no more */
	connect_peers(p, alive);
	close_peer(p);
	close_peer(alive);
}

/* A process of that nonce that is made by hand, and p, each committed to a stream that it has begun to the other. */
struct committed {
	struct peer *p;
	int mine, its; /* the streams that this one, and p, have begun */
	struct challenge challenge, to_p;
	struct proof proof, its_proof;
};

static int listen_by_hand(uint16_t *port)
{
	struct sockaddr_in a = at_port(0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static void commit_both(struct committed *c, uint64_t nonce)
{
	struct rwk_tcp_attr attr = tcp_attr(22);
	struct rwk_link_address at;
	struct knock k;
	uint16_t port;
	int listener = listen_by_hand(&port);

	attr.stranger_ms = 60000; /* it is not time that ends the waiting */
	c->p = open_peer(&attr);
	at = rwk_tcp_address(loopback4, port);
	assert_int_equal(rwk_tcp_reach(c->p->l, &at, nonce), 0);
	c->its = accept(listener, NULL, NULL);
	assert_true(c->its >= 0);
	close(listener);
	assert_int_equal(take(c->p, c->its, &k, sizeof(k)), sizeof(k));
	rwk_hello_challenge(&c->challenge);
	put(c->its, &c->challenge, sizeof(c->challenge));
	assert_int_equal(take(c->p, c->its, &c->its_proof, sizeof(c->its_proof)), sizeof(c->its_proof));
	c->mine = knock(c->p, &c->to_p);
	c->proof = (struct proof){.nonce = nonce, .port = port};
	rwk_hello_prove(secret, &c->to_p, &c->proof);
	put(c->mine, &c->proof, sizeof(c->proof));
	run_for(c->p, NULL, 5);
}

static void decide_by_hand(struct committed *c, enum answer what)
{
	struct verdict v = {.answer = what, .nonce = c->proof.nonce};

	rwk_hello_answer(secret, &c->challenge, &c->its_proof, &v);
	put(c->its, &v, sizeof(v));
}

static enum answer decision_of(struct committed *c)
{
	struct verdict v;

	assert_int_equal(take(c->p, c->mine, &v, sizeof(v)), sizeof(v));
	assert_int_equal(rwk_hello_check_verdict(secret, &c->to_p, &c->proof, &v), 0);
	return (enum answer)v.answer;
}

static void close_committed(struct committed *c)
{
	close(c->mine);
	close(c->its);
	close_peer(c->p);
}

/*
 * Both ends are committed to a stream of their own. The one with the smaller nonce says so at once. The other waits for
 * the word on its own stream, and takes what the peer has not; if it is given up meanwhile, nobody is kept awake by it.
 */
static void both_committed(void **state)
{
	struct pollfd wakes = {.events = POLLIN};
	struct committed c;

	(void)state;
	commit_both(&c, 33);
	assert_int_equal(decision_of(&c), LATER);
	decide_by_hand(&c, WELCOME);
	until_words(c.p, NULL, 1);
	close_committed(&c);

	for (int taken = 0; taken < 2; taken++) {
		uint8_t byte;

		commit_both(&c, 11);
		assert_int_equal(recv(c.mine, &byte, 1, MSG_DONTWAIT), -1);
		assert_int_equal(c.p->word_count, 0);
		decide_by_hand(&c, taken ? WELCOME : LATER);
		assert_int_equal(decision_of(&c), taken ? LATER : WELCOME);
		until_words(c.p, NULL, 1);
		assert_int_equal(last_word(c.p), 0);
		close_committed(&c);
	}

	commit_both(&c, 11);
	close(c.its); /* no word on it: the peer's is taken */
	assert_int_equal(decision_of(&c), WELCOME);
	close_committed(&c);

	commit_both(&c, 11);
	shutdown(c.mine, SHUT_WR);
	run_for(c.p, NULL, 5);
	wakes.fd = c.p->l->ops->wait_fd(c.p->l, 0);
	assert_int_equal(poll(&wakes, 1, 0), 0);
	decide_by_hand(&c, WELCOME);
	until_words(c.p, NULL, 1);
	assert_int_equal(last_word(c.p), 0);
	close_committed(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_a_knock),
		cmocka_unit_test(wrong_proof),
		cmocka_unit_test(wrong_verdict),
		cmocka_unit_test(silence),
		cmocka_unit_test(silent_limit),
		cmocka_unit_test(silent_after_knock),
		cmocka_unit_test(silent_with_child),
		cmocka_unit_test(two_secrets),
		cmocka_unit_test(other_programs),
		cmocka_unit_test(breach),
		cmocka_unit_test(pieces),
		cmocka_unit_test(endings),
		cmocka_unit_test(reset_of_the_living),
		cmocka_unit_test(both_committed),
	};

	return cmocka_run_group_tests_name("links/tcp strangers", tests, NULL, NULL);
}
