/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small key-value store whose clients look up by RDMA Read: an example of a memory that others read while it changes.
 *
 *     key_value serve [--busy] PORT KEY=VALUE...
 *     key_value get HOST PORT KEY [COUNT]
 *
 * The server publishes one table: a memory region that peers may read, whose key and address each of them is told in
 * the answer that connects it. A client computes where an entry must be (a hash, then the next places), and reads it.
 * The server's program has no part in a lookup. (With an adapter in software it must poll for the adapter's sake, as
 * the loop in serve() does; with one in hardware it might as well sleep.)
 *
 * A Read is not atomic. While the server changes an entry, a client may get some bytes of the old and some of the new
 * value: a torn one. Locks would cost each lookup three round trips. So each entry carries a checksum of all that is in
 * it: the server writes value, version and checksum in any order, and a client whose bytes do not fit their checksum
 * reads them again. The version goes into the checksum too, so that an entry changes as a whole even where the new
 * value differs in a few bytes only.
 *
 *     client                              server
 *     RDMA Read of entry hash(KEY)  --->  adapter: key, range and permission are right? the bytes
 *     checksum right? KEY there?    <---
 *
 * `serve --busy` changes all values all the time, and polls in the middle of each change, as if the adapter worked
 * beside it as hardware does: there are torn reads then. `get` with a COUNT repeats the lookup, and says how many it
 * had to read again. Values of --busy are a number, over and over again: so `get` sees a torn value that the checksum
 * has let pass.
 */
#include "node.h"

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES  256u
#define KEY_ROOM 32u   /* bytes, with the end */
#define ROOM     8000u /* bytes of a value, with the end: several packets */
#define CLIENTS  16u
#define PATIENCE 30u /* seconds to wait for the server */

/* Both ends are of one byte order here; a store for all machines would say which. */
struct entry {
	uint64_t checksum; /* of all that follows */
	uint64_t version;  /* 0: there is no entry */
	char key[KEY_ROOM];
	char value[ROOM];
};

/* FNV-1a: enough to tell a torn entry from a whole one; against a forger it would be none. */
static uint64_t hash(const void *bytes, size_t length)
{
	const unsigned char *b = bytes;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

static uint64_t checksum(const struct entry *e)
{
	return hash(&e->version, sizeof(*e) - offsetof(struct entry, version));
}

static size_t place_of(const char *key)
{
	return hash(key, strlen(key)) % ENTRIES;
}

/* ---- server ---- */

static struct entry table[ENTRIES];
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Where the key is, or may be put. */
static struct entry *find(const char *key)
{
	size_t at = place_of(key);

	for (size_t i = 0; i < ENTRIES; i++, at = (at + 1) % ENTRIES)
		if (!table[at].version || !strcmp(table[at].key, key))
			return &table[at];
	error(1, 0, "the table is full");
	return NULL;
}

static void put(char *pair)
{
	char *value = strchr(pair, '=');
	struct entry *e;

	if (!value || (size_t)(value - pair) >= KEY_ROOM || strlen(value + 1) >= ROOM)
		error(1, 0, "%s: KEY=VALUE is needed, of at most %u and %u bytes", pair, KEY_ROOM - 1, ROOM - 1);
	*value++ = '\0';
	e = find(pair);
	snprintf(e->key, sizeof(e->key), "%s", pair);
	snprintf(e->value, sizeof(e->value), "%s", value);
	e->version++;
	e->checksum = checksum(e);
}

/* Polls for the adapter's sake: nobody sends us anything, so there is no completion. */
static void let_adapter_work(struct node *n)
{
	struct rwk_wc wc;

	while (rwk_cq_poll(n->cq, &wc, 1) > 0)
		;
}

/* A new value in an entry that is being read: half of it, what others do meanwhile, the other half. */
static void change(struct node *n, struct entry *e, unsigned long number)
{
	char value[ROOM];
	size_t length = 0;

	while (length + 24 < sizeof(value))
		length += (size_t)sprintf(value + length, "%lu ", number);
	memset(value + length, 0, sizeof(value) - length);
	memcpy(e->value, value, ROOM / 2);
	let_adapter_work(n);
	memcpy(e->value + ROOM / 2, value + ROOM / 2, ROOM / 2);
	e->version++;
	e->checksum = checksum(e);
}

static void change_all(struct node *n)
{
	static unsigned long number = 1000000000;

	for (size_t i = 0; i < ENTRIES; i++)
		if (table[i].version)
			change(n, &table[i], ++number);
}

struct server {
	struct node n;
	struct rwk_listener *listener;
	struct rwk_mr *mr;           /* of the table */
	struct peer client[CLIENTS]; /* without a connection: it is free */
};

/* Somebody wants to look up. Where there is no room, he hears so at once. */
static void welcome(struct server *s, struct rwk_connection *c)
{
	struct offer offer = {(uintptr_t)table, rwk_mr_key(s->mr)};
	struct peer *p = s->client;

	while (p < s->client + CLIENTS && p->connection)
		p++;
	if (p == s->client + CLIENTS)
		rwk_reject(c, NULL, 0);
	else if (!peer_accept(&s->n, p, c, &offer))
		p->connection = NULL;
}

/* A connection is over, or has come to nothing after all. */
static void bid_farewell(struct peer *p)
{
	peer_close(p);
	p->connection = NULL;
}

/* What has happened to connections. Nothing blocks here: the clients that are there do not wait for one that comes. */
static void take_events(struct server *s)
{
	struct rwk_connection_event e;

	while (rwk_event_channel_poll(s->n.channel, &e)) {
		if (e.type == RWK_CONNECTION_REQUEST)
			welcome(s, e.connection);
		else if (e.type != RWK_CONNECTION_ESTABLISHED && e.user)
			bid_farewell(e.user);
		else if (e.type != RWK_CONNECTION_ESTABLISHED)
			rwk_connection_destroy(e.connection); /* gone before it was accepted */
	}
}

static int serve(unsigned port, bool busy)
{
	struct rwk_listen_attr at = {.port = (uint16_t)port};
	static struct server s;

	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	node_open(&s.n, true);
	demand(rwk_mr_register(s.n.pd, table, sizeof(table), RWK_ACCESS_READ, &s.mr), "the table");
	demand(rwk_listen(s.n.channel, &at, &s.listener), "the TCP port");
	for (unsigned turn = 0; !stopped; turn++) {
		let_adapter_work(&s.n);
		if (busy)
			change_all(&s.n);
		if (turn % 256)
			continue;
		take_events(&s);
	}
	rwk_listener_close(s.listener);
	for (size_t i = 0; i < CLIENTS; i++)
		if (s.client[i].connection)
			bid_farewell(&s.client[i]);
	rwk_mr_deregister(s.mr);
	node_close(&s.n);
	return 0;
}

/* ---- client ---- */

struct client {
	struct node n;
	struct peer p;
	struct entry entry; /* what was read last */
	struct rwk_mr *mr;
	unsigned long again; /* times that an entry was read again */
};

static void read_entry(struct client *c, size_t at)
{
	struct rwk_sge sge = {.address = &c->entry, .length = sizeof(c->entry), .key = rwk_mr_key(c->mr)};
	struct rwk_request r = {.type = RWK_REQUEST_READ,
		.sge = &sge,
		.sge_count = 1,
		.remote = c->p.offer.address + at * sizeof(struct entry),
		.key = c->p.offer.key};
	struct rwk_wc wc;

	demand(rwk_qp_post(c->p.qp, &r), "the Read");
	if (!node_await(&c->n, &c->p, &wc))
		error(1, 0, "the server's program has ended");
	demand(wc.status, "the Read");
}

/* Whether the key is there; c->entry is it then. */
static bool look_up(struct client *c, const char *key)
{
	size_t at = place_of(key);

	for (size_t i = 0; i < ENTRIES; i++, at = (at + 1) % ENTRIES) {
		read_entry(c, at);
		while (c->entry.version && c->entry.checksum != checksum(&c->entry)) {
			c->again++;
			read_entry(c, at);
		}
		if (!c->entry.version)
			return false;
		if (!strcmp(c->entry.key, key))
			return true;
	}
	return false;
}

/* A value of --busy is one number, over and over again. */
static void see_whether_whole(const struct entry *e)
{
	size_t word = strcspn(e->value, " ") + 1;

	if (e->value[word - 1] != ' ')
		return;
	for (size_t i = word; e->value[i]; i++)
		if (e->value[i] != e->value[i - word])
			error(1, 0, "a torn value: %.*s and %.*s", (int)word - 1, e->value, (int)word - 1,
				&e->value[i - i % word]);
}

static int get(const char *host, unsigned port, const char *key, unsigned long count)
{
	struct client *c = calloc(1, sizeof(*c));
	bool there = false;

	if (!c)
		error(1, ENOMEM, "memory");
	node_open(&c->n, false);
	demand(rwk_mr_register(c->n.pd, &c->entry, sizeof(c->entry), RWK_ACCESS_LOCAL_WRITE, &c->mr), "memory");
	peer_connect(&c->n, &c->p, host, port, PATIENCE);
	for (unsigned long i = 0; i < count; i++) {
		there = look_up(c, key);
		if (there && count > 1)
			see_whether_whole(&c->entry);
	}
	if (!there)
		printf("there is no %s\n", key);
	else if (count == 1)
		printf("%s\n", c->entry.value);
	else
		printf("%lu lookups, version %" PRIu64 " at the end; %lu entries were torn and read again\n", count,
			c->entry.version, c->again);
	peer_close(&c->p);
	rwk_mr_deregister(c->mr);
	node_close(&c->n);
	free(c);
	return there ? 0 : 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: key_value serve [--busy] PORT KEY=VALUE...\n"
			"       key_value get HOST PORT KEY [COUNT]\n");
	return 64;
}

int main(int argc, char **argv)
{
	bool busy = argc > 2 && !strcmp(argv[2], "--busy");

	if (argc > 3 + busy && !strcmp(argv[1], "serve")) {
		for (int i = 3 + busy; i < argc; i++)
			put(argv[i]);
		return serve(number_of("PORT", argv[2 + busy], NODE_PORT_MAX), busy);
	}
	if ((argc == 5 || argc == 6) && !strcmp(argv[1], "get"))
		return get(argv[2], number_of("PORT", argv[3], NODE_PORT_MAX), argv[4],
			argc == 6 ? number_of("COUNT", argv[5], UINT32_MAX) : 1);
	return usage();
}
