/* SPDX-License-Identifier: BSD-3-Clause */
#include "udp_pair.h"

#include <arpa/inet.h>
#include <poll.h>

#define KEPT 8192 /* packets between two flushes */

const uint8_t udp_ip4[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
const uint8_t udp_ip6[16] = {[15] = 1};

static struct iovec kept[KEPT];
static unsigned kept_count;

void udp_ip(const char *text, uint8_t ip[16])
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	assert_int_equal(inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, strchr(text, ':') ? ip : ip + 12), 1);
}

void udp_fill(uint8_t *bytes, size_t len, uint32_t number)
{
	uint32_t r = number * 2654435761u + (uint32_t)len;

	for (size_t i = 0; i < len; i++) {
		r = r * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(r >> 24);
	}
	if (len >= sizeof(number))
		memcpy(bytes, &number, sizeof(number));
}

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	static uint8_t expected[65536];
	struct udp_end *e = user;
	uint32_t number = 0;

	if (len >= sizeof(number))
		memcpy(&number, bytes, sizeof(number));
	udp_fill(expected, len, number);
	e->damaged += memcmp(expected, bytes, len) != 0;
	if (e->arrived < UDP_BOOK) {
		e->number[e->arrived] = number;
		e->length[e->arrived] = (uint32_t)len;
	}
	e->arrived++;
	e->from = *from;
	if (e->favour)
		e->link->ops->favour(e->link, from);
	e->favour = false;
	e->pseudo_len = e->link->ops->pseudo(e->link, from, false, len, 0, e->pseudo);
}

static void on_word(void *user, const struct rwk_link_address *who, int status)
{
	struct udp_end *e = user;

	e->words++;
	e->word = status;
	e->who = *who;
}

static struct udp_end *end_of(struct rwk_link *l)
{
	struct udp_end *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->link = l;
	l->packet = on_packet;
	l->word = on_word;
	l->user = e;
	return e;
}

struct udp_end *udp_end_open_with(const struct rwk_udp_attr *attr)
{
	static const uint8_t any[16];
	struct rwk_link *l;
	struct udp_end *e;
	int err = rwk_udp_open(attr, &l);

	if (err == -EADDRNOTAVAIL && !memcmp(attr->ip, udp_ip6, 16))
		skip();
	assert_int_equal(err, 0);
	e = end_of(l);
	e->here = rwk_udp_address(memcmp(attr->ip, any, 16) ? attr->ip : udp_ip4, rwk_udp_port(e->link));
	return e;
}

struct udp_end *udp_end_open(const uint8_t ip[16], int receive_buffer)
{
	struct rwk_udp_attr attr = {.receive_buffer = receive_buffer};

	memcpy(attr.ip, ip, 16);
	return udp_end_open_with(&attr);
}

struct udp_end *udp_end_adopt(const struct udp_end *first, int line)
{
	struct rwk_link *l;
	struct udp_end *e;

	assert_int_equal(rwk_udp_adopt(first->link->ops->wait_fd(first->link, 0), line, &l), 0);
	e = end_of(l);
	e->here = first->here;
	return e;
}

void udp_end_close(struct udp_end *e)
{
	e->link->ops->close(e->link);
	free(e);
}

int udp_send(struct udp_end *e, const struct rwk_link_address *to, uint32_t number, size_t len)
{
	struct iovec iov = {malloc(len + 1), len};
	int err;

	assert_non_null(iov.iov_base);
	assert_true(kept_count < KEPT);
	udp_fill(iov.iov_base, len, len < sizeof(number) ? 0 : number);
	err = e->link->ops->send(e->link, to, &iov, 1);
	if (len <= RWK_LINK_COPIED) /* ours again: whoever looks at it now finds something else */
		trash(iov.iov_base, len);
	kept[kept_count++] = iov;
	return err;
}

void udp_flush(struct udp_end *e)
{
	e->link->ops->flush(e->link);
	while (kept_count) {
		kept_count--;
		trash(kept[kept_count].iov_base, kept[kept_count].iov_len); /* ours again, as in udp_send */
		free(kept[kept_count].iov_base);
	}
}

bool udp_wait(struct udp_end *e, int milliseconds)
{
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};

	for (int i = 0; i < 2; i++)
		p[i].fd = e->link->ops->wait_fd(e->link, i);
	return poll(p, 2, milliseconds) > 0;
}

void udp_receive(struct udp_end *e, unsigned count)
{
	while (e->arrived < count && !e->damaged)
		if (!e->link->ops->progress(e->link, 64) && !udp_wait(e, 20000))
			return;
}

void udp_drain(struct udp_end *e)
{
	do
		while (e->link->ops->progress(e->link, 64))
			;
	while (udp_wait(e, 100));
}

static void send_some(struct udp_end *a, struct udp_end *b, uint32_t count, size_t len, bool batches)
{
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(udp_send(a, &b->here, i, len), 0);
		if (!batches || i % 100 == 99)
			udp_flush(a);
	}
	udp_flush(a);
}

void udp_check_room(struct udp_end *a, struct udp_end *b, size_t len, bool batches)
{
	size_t counted = len < RWK_UDP_ROOM_PACKET ? RWK_UDP_ROOM_PACKET : len;
	uint32_t window = (uint32_t)(rwk_udp_room(b->link) / counted), sent = window;

	assert_true(window > 0);
	b->arrived = b->damaged = 0;
	send_some(a, b, window, len, batches);
	for (unsigned round = 0; round < 100; round++) {
		int few = 1 + (int)(round * 7 % window), got = 0;

		while (got < few && udp_wait(b, 20000))
			got += b->link->ops->progress(b->link, few - got);
		assert_int_equal(got, few);
		send_some(a, b, (uint32_t)few, len, batches);
		sent += (uint32_t)few;
	}
	udp_receive(b, sent);
	assert_int_equal(b->arrived, sent);
	assert_int_equal(b->damaged, 0);
	assert_int_equal(udp_counters(b).overruns, 0);
}

struct rwk_udp_counters udp_counters(const struct udp_end *e)
{
	struct rwk_udp_counters c;

	rwk_udp_get_counters(e->link, &c);
	return c;
}
