/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One responder in two processes that have it mapped at two addresses, and take turns with the packets of one peer,
 * also in the middle of a message.
 */
#define _GNU_SOURCE /* memfd_create */
#include "rwk_test.h"

#include "uc/uc.h"
#include "wire/psn.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PMTU      256u
#define KEY       0x77u
#define BASE      0x40000000u
#define REGION    (64 * PMTU)
#define MESSAGES  400u
#define FIRST_PSN 0xfffff0u

/* In the segment, beside the responder: what both processes' upcalls write to. */
struct shared {
	uint64_t responder[64];
	uint8_t region[REGION]; /* written by Writes; Sends append to `sent` */
	uint8_t sent[REGION];
	uint32_t sent_at, ended, written;
};

/* What the parent hands to whose turn it is. */
struct turn {
	struct rwk_wire w;
	uint32_t len;
	uint8_t bytes[PMTU];
};

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct shared *s = user;

	(void)w;
	if (where & RWK_PIECE_FIRST)
		s->sent_at = 0;
	memcpy(s->sent + s->sent_at, bytes, len);
	s->sent_at += (uint32_t)len;
	s->ended += !!(where & RWK_PIECE_LAST);
	return 0;
}

static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	(void)user;
	(void)w;
	return key == KEY && address >= BASE && address + len <= BASE + REGION && access == RWK_REACH_WRITE ? 0
													    : -EACCES;
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	int rc = on_reach(user, w, key, address, len, RWK_REACH_WRITE);

	if (!rc)
		memcpy(((struct shared *)user)->region + (address - BASE), bytes, len);
	return rc;
}

static int on_written(void *user, const struct rwk_wire *w)
{
	(void)w;
	((struct shared *)user)->written++;
	return 0;
}

static const struct rwk_machine_host host = {
	.receive = on_receive, .reach = on_reach, .write = on_write, .written = on_written};

/* A QP that takes packets; the number that it says is right only for the first who comes. */
static struct rwk_uc *attach(struct shared *s, uint32_t psn)
{
	const struct rwk_uc_attr attr = {.receive_psn = psn, .pmtu = PMTU, .reach = RWK_REACH_WRITE};
	void *memory = aligned_alloc(64, (rwk_uc_size() + 63) & ~(size_t)63);
	struct rwk_uc *qp;

	if (!memory)
		return NULL;
	qp = rwk_uc_open(memory, s->responder, &host, s);
	if (rwk_uc_modify(qp, RWK_QP_INIT, NULL) || rwk_uc_modify(qp, RWK_QP_RTR, &attr))
		return NULL;
	return qp;
}

static int other_process(int fd, const void *not_here, int in, int out)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct rwk_uc *qp;
	struct turn t;

	if (s == MAP_FAILED || (const void *)s == not_here)
		return 1;
	qp = attach(s, 12345);
	if (!qp)
		return 2;
	while (read(in, &t, sizeof(t)) == sizeof(t)) {
		rwk_uc_packet(qp, &t.w, t.bytes, t.len);
		if (write(out, "", 1) != 1)
			return 3;
	}
	return 0;
}

struct pair {
	struct rwk_uc *mine;
	int to, from;
	unsigned packets;
};

/* Packets go in turn to the one and to the other process, three for this one, two for that one. */
static void packet(struct pair *p, struct turn *t)
{
	char c;

	if (p->packets++ % 5 < 3) {
		rwk_uc_packet(p->mine, &t->w, t->bytes, t->len);
		return;
	}
	assert_int_equal(write(p->to, t, sizeof(*t)), sizeof(*t));
	assert_int_equal(poll(&(struct pollfd){p->from, POLLIN, 0}, 1, 30000), 1);
	assert_int_equal(read(p->from, &c, 1), 1);
}

static void message(struct pair *p, unsigned n, uint32_t *psn, bool is_write, uint32_t packets)
{
	unsigned op = is_write ? RWK_WIRE_WRITE_FIRST : RWK_WIRE_SEND_FIRST;
	struct turn t = {0};

	for (uint32_t i = 0; i < packets; i++) {
		bool last = i + 1 == packets;

		t.w = (struct rwk_wire){.psn = *psn, .imm = n};
		t.w.opcode = RWK_WIRE_UC | (op + (packets == 1 ? 5 : last ? 3 : i ? 1 : 0));
		if (!i) {
			t.w.reth.address = BASE;
			t.w.reth.key = KEY;
			t.w.reth.length = packets * PMTU;
		}
		t.len = PMTU;
		memset(t.bytes, (int)(n + i), PMTU);
		*psn = rwk_psn_add(*psn, 1);
		packet(p, &t);
	}
}

static void run(struct shared *s, struct pair *p)
{
	uint32_t psn = FIRST_PSN, sends = 0, writes = 0;

	for (unsigned n = 0; n < MESSAGES; n++) {
		bool is_write = n / 2 & 1;
		uint32_t packets = n % 7 + 1;
		const uint8_t *there = is_write ? s->region : s->sent;

		if (n % 10 == 9) { /* a gap in the middle of a message, found by whoever comes next */
			message(p, n, &psn, is_write, 1);
			sends += !is_write;
			writes += is_write;
			psn = rwk_psn_add(psn, 3);
		}
		message(p, n, &psn, is_write, packets);
		*(is_write ? &writes : &sends) += 1;
		assert_int_equal(s->ended, sends);
		assert_int_equal(s->written, writes);
		for (size_t i = 0; i < packets * PMTU; i++)
			assert_int_equal(there[i], (uint8_t)(n + i / PMTU));
	}
	assert_int_equal(rwk_uc_counters(p->mine)->bad_opcode + rwk_uc_counters(p->mine)->bad_length, 0);
}

static void two_processes(void **state)
{
	int fd = memfd_create("responder", MFD_CLOEXEC), to[2], from[2], status;
	struct pair p = {0};
	struct shared *s;
	pid_t pid;

	(void)state;
	assert_int_equal(ftruncate(fd, sizeof(*s)), 0);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(s, MAP_FAILED);
	assert_in_range(rwk_uc_responder_size(), 1, sizeof(s->responder));
	p.mine = attach(s, FIRST_PSN);
	assert_non_null(p.mine);
	assert_int_equal(pipe(to) | pipe(from), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(to[1]);
		_exit(other_process(fd, s, to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	p.to = to[1];
	p.from = from[0];
	run(s, &p);
	close(to[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(from[0]);
	free(p.mine);
	munmap(s, sizeof(*s));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
