/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a file of another host: an example of a Send that is answered by an RDMA Write.
 *
 *     disk_read serve FILE [PORT]            on the host that has the file
 *     disk_read fetch HOST COPY [PORT]       on the other: the file's bytes go to COPY
 *
 *     client                                          server
 *     registers a buffer, posts a receive
 *     Send: offset, length, address, key  ----------> reads the file into a buffer of its own
 *     the adapter checks the key, puts    <---------- RDMA Write with immediate: the bytes, how many
 *     the bytes where they belong, and
 *     completes the receive
 *
 * The data crosses the network once, into the very place where the client wants it, and the client's program has no
 * part in that. It has given the server one key, which opens one buffer for writing and nothing else: a server that
 * uses another key, or an address beyond the buffer, is refused by the client's adapter. `fetch --wrong-key` shows
 * that: it tells the server a key that is none.
 *
 * The immediate is there for the completion. A plain RDMA Write is not noticed by the program whose memory it changes;
 * a Write with immediate takes a receive, which completes when all bytes are in place.
 */
#include "node.h"

#include <endian.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK     (256u << 10) /* bytes that are asked for at a time */
#define PATIENCE  30u          /* seconds to wait for the other program */
#define UNTOUCHED 0xee

/* What the client asks for. It goes over the network, so its bytes have an order: big-endian. */
struct request {
	uint64_t offset;  /* in the file */
	uint64_t address; /* of the client's buffer */
	uint32_t length;
	uint32_t key; /* which opens that buffer */
};

/* ---- server ---- */

/* Reads what is wanted; the number of bytes, fewer than wanted at the end of the file. */
static uint32_t read_block(int file, char *block, uint64_t offset, uint32_t length)
{
	ssize_t n;
	uint32_t done = 0;

	while (done < length && (n = pread(file, block + done, length - done, (off_t)(offset + done))) != 0) {
		if (n < 0)
			error(1, errno, "the file");
		done += (uint32_t)n;
	}
	return done;
}

/* Into the client's memory, which must be where it says and open to the key that it says: its adapter looks. */
static void write_back(
	struct peer *p, const struct request *want, char *block, const struct rwk_mr *mr, uint32_t length)
{
	struct rwk_sge sge = {.address = block, .length = length, .key = rwk_mr_key(mr)};
	struct rwk_request r = {.type = RWK_REQUEST_WRITE,
		.flags = RWK_REQUEST_IMM,
		.imm = length,
		.sge = &sge,
		.sge_count = 1,
		.remote = be64toh(want->address),
		.key = be32toh(want->key)};

	demand(rwk_qp_post(p->qp, &r), "the Write");
}

static void expect_request(struct peer *p, struct request *want, const struct rwk_mr *mr)
{
	struct rwk_sge sge = {.address = want, .length = sizeof(*want), .key = rwk_mr_key(mr)};
	struct rwk_receive r = {.sge = &sge, .sge_count = 1};

	demand(rwk_qp_post_receive(p->qp, &r), "a receive");
}

/* One request after the other, until the client hangs up. False: it went wrong. */
static bool serve_requests(struct node *n, struct peer *p, int file, char *block, const struct rwk_mr *block_mr,
	struct request *want, const struct rwk_mr *want_mr)
{
	struct rwk_wc wc;

	for (;;) {
		expect_request(p, want, want_mr);
		do {
			if (!node_await(n, p, &wc) || wc.status == -ECANCELED)
				return true; /* what was posted comes back when the connection is over */
			if (wc.status) {
				printf("the client's adapter refuses the Write: %s\n", strerror(-wc.status));
				return false;
			}
		} while (wc.type != RWK_WC_RECEIVE); /* a Write has been acknowledged: nothing to do */
		if (wc.length != sizeof(*want) || be32toh(want->length) > BLOCK) {
			printf("the client asks for what there is not\n");
			return false;
		}
		/* The client asks when the block before is in its place: ours is free again. */
		write_back(p, want, block, block_mr,
			read_block(file, block, be64toh(want->offset), be32toh(want->length)));
	}
}

static int serve(const char *name, unsigned port)
{
	int file = open(name, O_RDONLY);
	char *block = malloc(BLOCK);
	struct rwk_mr *want_mr, *block_mr;
	struct rwk_listen_attr at = {.port = (uint16_t)port};
	struct rwk_listener *listener;
	struct request want;
	struct node n;
	struct peer p;
	bool well;

	if (file < 0)
		error(1, errno, "%s", name);
	if (!block)
		error(1, ENOMEM, "a block");
	node_open(&n, true);
	demand(rwk_mr_register(n.pd, &want, sizeof(want), RWK_ACCESS_LOCAL_WRITE, &want_mr), "memory");
	demand(rwk_mr_register(n.pd, block, BLOCK, 0, &block_mr), "memory"); /* nobody else reaches it */
	demand(rwk_listen(n.channel, &at, &listener), "the TCP port");
	well = peer_accept(&n, &p, node_await_event(&n, RWK_CONNECTION_REQUEST, PATIENCE).connection, NULL);
	rwk_listener_close(listener); /* one client is enough: nobody else is heard */
	if (well) {
		/* Its request may come before this event; but ours can be posted from now on alone. */
		node_await_event(&n, RWK_CONNECTION_ESTABLISHED, PATIENCE);
		well = serve_requests(&n, &p, file, block, block_mr, &want, want_mr);
		peer_close(&p);
	}
	rwk_mr_deregister(block_mr);
	rwk_mr_deregister(want_mr);
	node_close(&n);
	free(block);
	close(file);
	return well ? 0 : 1;
}

/* ---- client ---- */

struct client {
	struct node n;
	struct peer p;
	struct request request;
	char *buffer; /* BLOCK bytes, which the server writes */
	struct rwk_mr *request_mr, *buffer_mr;
};

static void client_open(struct client *c, const char *host, unsigned port)
{
	c->buffer = malloc(BLOCK);
	if (!c->buffer)
		error(1, ENOMEM, "a buffer");
	memset(c->buffer, UNTOUCHED, BLOCK);
	node_open(&c->n, false);
	demand(rwk_mr_register(c->n.pd, &c->request, sizeof(c->request), 0, &c->request_mr), "memory");
	demand(rwk_mr_register(c->n.pd, c->buffer, BLOCK, RWK_ACCESS_WRITE, &c->buffer_mr), "memory");
	peer_connect(&c->n, &c->p, host, port, PATIENCE);
}

static void client_close(struct client *c)
{
	peer_close(&c->p);
	rwk_mr_deregister(c->buffer_mr);
	rwk_mr_deregister(c->request_mr);
	node_close(&c->n);
	free(c->buffer);
}

static void ask(struct client *c, uint64_t offset, uint32_t key)
{
	struct rwk_sge sge = {.address = &c->request, .length = sizeof(c->request), .key = rwk_mr_key(c->request_mr)};
	struct rwk_request r = {.type = RWK_REQUEST_SEND, .sge = &sge, .sge_count = 1};
	struct rwk_receive nothing = {0}; /* for the Write with immediate, which puts no byte there */

	c->request.offset = htobe64(offset);
	c->request.address = htobe64((uintptr_t)c->buffer);
	c->request.length = htobe32(BLOCK);
	c->request.key = htobe32(key);
	demand(rwk_qp_post_receive(c->p.qp, &nothing), "a receive");
	demand(rwk_qp_post(c->p.qp, &r), "the request");
}

/* Waits for the block that was asked for: its bytes, or a negative errno, as the adapter says. */
static long await_block(struct client *c)
{
	struct rwk_wc wc;

	do {
		if (!node_await(&c->n, &c->p, &wc))
			error(1, 0, "the server's program has ended");
		if (wc.status)
			return wc.status;
	} while (wc.type != RWK_WC_RECEIVE_WRITE); /* the Send has been acknowledged: nothing to do */
	if (!wc.has_imm || wc.length != wc.imm)
		error(1, 0, "the server says %u bytes and writes %zu", wc.imm, wc.length);
	return (long)wc.imm;
}

static void copy_file(struct client *c, const char *name)
{
	FILE *to = fopen(name, "w");
	uint64_t offset = 0;
	long n;

	if (!to)
		error(1, errno, "%s", name);
	do {
		ask(c, offset, rwk_mr_key(c->buffer_mr));
		n = await_block(c);
		demand((int)n, "no block");
		if (fwrite(c->buffer, 1, (size_t)n, to) != (size_t)n)
			error(1, errno, "%s", name);
		offset += (uint64_t)n;
	} while (n == BLOCK);
	if (fclose(to))
		error(1, errno, "%s", name);
	printf("%llu bytes\n", (unsigned long long)offset);
}

/* What becomes of a Write with a key that opens nothing: our adapter refuses it, and ends the connection. */
static void show_wrong_key(struct client *c)
{
	struct rwk_qp_info info;
	long n;

	ask(c, 0, rwk_mr_key(c->buffer_mr) ^ 1);
	n = await_block(c);
	rwk_qp_query(c->p.qp, &info);
	for (size_t i = 0; i < BLOCK; i++)
		if ((unsigned char)c->buffer[i] != UNTOUCHED)
			error(1, 0, "byte %zu was written", i);
	if (n != -ECANCELED || info.state != RWK_QPS_ERR || !info.bad_access)
		error(1, 0, "the Write was not refused: %ld", n);
	printf("refused: the key opens nothing, and no byte was written\n");
}

static int fetch(const char *host, const char *name, unsigned port, bool wrong_key)
{
	struct client c;

	client_open(&c, host, port);
	if (wrong_key)
		show_wrong_key(&c);
	else
		copy_file(&c, name);
	client_close(&c);
	return 0;
}

int main(int argc, char **argv)
{
	bool wrong_key = argc > 1 && !strcmp(argv[argc - 1], "--wrong-key");

	argc -= wrong_key;
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "serve") && !wrong_key)
		return serve(argv[2], argc == 4 ? number_of("PORT", argv[3], NODE_PORT_MAX) : NODE_PORT);
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "fetch"))
		return fetch(
			argv[2], argv[3], argc == 5 ? number_of("PORT", argv[4], NODE_PORT_MAX) : NODE_PORT, wrong_key);
	fprintf(stderr, "usage: disk_read serve FILE [PORT]\n"
			"       disk_read fetch HOST COPY [PORT] [--wrong-key]\n");
	return 64;
}
