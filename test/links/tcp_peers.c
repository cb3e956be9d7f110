/* SPDX-License-Identifier: BSD-3-Clause */
#include "links/tcp_peers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 20000u /* ms */

const uint8_t loopback4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
const uint8_t loopback6[16] = {[15] = 1};
const uint64_t secret[2] = {0x0123456789abcdef, 0xfedcba9876543210};

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct rwk_tcp_attr tcp_attr(uint64_t nonce)
{
	struct rwk_tcp_attr a = {.nonce = nonce, .secret = {secret[0], secret[1]}};

	memcpy(a.ip, loopback4, 16);
	return a;
}

static size_t length_of(uint32_t number)
{
	static const size_t lengths[] = {4, 40, 256, 257, 1000, 4096, RWK_TCP_MTU, 5};

	return lengths[number % 8];
}

static void fill(uint8_t *bytes, uint32_t number)
{
	size_t len = length_of(number);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(number + i);
	memcpy(bytes, &number, sizeof(number));
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	uint8_t expected[RWK_TCP_MTU];
	struct peer *p = user;
	uint32_t number;

	assert_true(len >= sizeof(number));
	memcpy(&number, bytes, sizeof(number));
	if (!p->any_order)
		assert_int_equal(number, p->next);
	p->next++;
	p->got++;
	p->from = *from;
	assert_int_equal(len, length_of(number));
	fill(expected, number);
	assert_memory_equal(bytes, expected, len);
}

static void on_word(void *user, const struct rwk_link_address *who, int status)
{
	struct peer *p = user;

	assert_true(p->word_count < WORDS_MAX);
	p->word_of[p->word_count] = *who;
	p->words[p->word_count++] = status;
}

struct peer *open_peer(const struct rwk_tcp_attr *attr)
{
	static const uint8_t any[16];
	struct peer *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	assert_int_equal(rwk_tcp_open(attr, &p->l), 0);
	p->l->packet = on_packet;
	p->l->word = on_word;
	p->l->user = p;
	p->nonce = attr->nonce;
	p->at = rwk_tcp_address(memcmp(attr->ip, any, 16) ? attr->ip : loopback4, rwk_tcp_port(p->l));
	return p;
}

void close_peer(struct peer *p)
{
	p->l->ops->close(p->l);
	free(p);
}

/* The long pieces are read by flush: they must stay as they are till then. */
int send_number(struct peer *p, const struct rwk_link_address *to, uint32_t number)
{
	static uint8_t bytes[64][RWK_TCP_MTU];
	static unsigned turn;
	uint8_t *b = bytes[turn++ % 64];
	size_t len = length_of(number), head = len > 300 ? 28 : len;
	struct iovec iov[2] = {{b, head}, {b + head, len - head}};

	fill(b, number);
	return p->l->ops->send(p->l, to, iov, 2);
}

/* One turn of a wait; if there is nothing, others have the processor for a moment. */
static void step(struct peer *a, struct peer *b)
{
	int n = a->l->ops->progress(a->l, 16);

	if (b)
		n += b->l->ops->progress(b->l, 16);
	if (!n)
		usleep(50);
}

void until_words(struct peer *a, struct peer *b, unsigned count)
{
	uint64_t end = now_ms() + PATIENCE;

	while (a->word_count < count) {
		assert_true(now_ms() < end);
		step(a, b);
	}
}

void until_got(struct peer *a, struct peer *b, const struct peer *p, uint64_t count)
{
	uint64_t end = now_ms() + PATIENCE;

	while (p->got < count) {
		assert_true(now_ms() < end);
		step(a, b);
	}
	assert_int_equal(p->got, count);
}

void run_for(struct peer *a, struct peer *b, unsigned ms)
{
	uint64_t end = now_ms() + ms;

	do
		step(a, b);
	while (now_ms() < end);
}

void connect_peers(struct peer *a, struct peer *b)
{
	assert_int_equal(rwk_tcp_reach(a->l, &b->at, b->nonce), 0);
	until_words(a, b, a->word_count + 1);
	until_words(b, a, b->word_count ? b->word_count : 1);
	assert_int_equal(last_word(a), 0);
	assert_int_equal(last_word(b), 0);
}

void exchange(struct peer *a, struct peer *b, uint32_t count)
{
	uint32_t sent_a = 0, sent_b = 0;
	uint64_t got_a = a->got, got_b = b->got, end = now_ms() + 20000;

	a->next = b->next = 0;
	while (a->got - got_a < count || b->got - got_b < count) {
		assert_true(now_ms() < end);
		for (int i = 0; i < 20; i++) {
			if (sent_a < count && !send_number(a, &b->at, sent_a))
				sent_a++;
			if (sent_b < count && i % 3 == 0 && !send_number(b, &a->at, sent_b))
				sent_b++;
		}
		a->l->ops->flush(a->l);
		b->l->ops->flush(b->l);
		a->l->ops->progress(a->l, 7);
		b->l->ops->progress(b->l, 7);
	}
	assert_memory_equal(&b->from, &a->at, sizeof(a->at));
}

int last_word(const struct peer *p)
{
	return p->word_count ? p->words[p->word_count - 1] : NO_WORD;
}

pid_t fork_holder(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
	alarm(60);
	pause();
	_exit(0);
}

void end_holder(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}
