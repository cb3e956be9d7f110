/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what comes to a queue pair of datagrams. The input is a row of packets, each behind three bytes: flags
 * (1: its ICRC is made right; 2: a receive is posted before), the bytes of room in that receive, and its length in
 * words. What must hold: each packet is counted once, as taken or as one of the faults; what is taken was posted, the
 * oldest first, and nothing is written beside its place (the sanitizers see to that).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "link.h"
#include "links/udp/udp.h"
#include "ud/ud.h"
#include "wire/icrc.h"

#define MTU    256u
#define RIGHT  1u
#define POST   2u
#define PLACES 64u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct place {
	struct rwk_ud_receive receive;
	uint8_t *memory;
};

static struct place places[PLACES];
static unsigned posted, taken;
static struct rwk_link link_;

static void must(int holds)
{
	if (!holds)
		abort();
}

/* What the queue pair wants of the rest, in short. */
uint32_t rwk_ud_mtu(void)
{
	return MTU;
}

struct rwk_link_address rwk_udp_address(const uint8_t ip[16], uint16_t port)
{
	(void)ip, (void)port;
	return (struct rwk_link_address){{0}};
}

void rwk_udp_split(const struct rwk_link_address *a, uint8_t ip[16], uint16_t *port)
{
	memcpy(ip, a->byte, 16);
	*port = 0;
}

static void nothing(struct rwk_link *l)
{
	(void)l;
}

static const struct rwk_link_ops ops = {.name = "fuzz", .flush = nothing, .close = nothing};

static void received(void *user, struct rwk_ud_receive *r, const struct rwk_ud_arrival *a)
{
	(void)user;
	must(r == &places[taken].receive);
	must(a->length <= MTU && a->from.qpn <= 0xffffff && (a->has_imm || !a->imm));
	taken++;
}

static void post(struct rwk_ud *ud, size_t room)
{
	struct place *p = &places[posted];

	if (posted == PLACES)
		return;
	p->memory = malloc(room + !room);
	must(p->memory != NULL);
	p->receive = (struct rwk_ud_receive){
		.count = 2, .iov = {{p->memory, room / 2}, {p->memory + room / 2, room - room / 2}}};
	rwk_ud_receive(ud, &p->receive);
	posted++;
}

static void give(const uint8_t *bytes, size_t len, unsigned flags)
{
	struct rwk_link_address from = {{1}};
	uint8_t *packet = malloc(len + !len);
	uint32_t icrc;

	must(packet != NULL);
	memcpy(packet, bytes, len);
	if (flags & RIGHT && len >= 16) {
		icrc = rwk_icrc_bytes(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, NULL, 0), packet, len - 4);
		memcpy(packet + len - 4, &icrc, 4);
	}
	link_.packet(link_.user, &from, packet, len);
	free(packet);
}

static uint64_t all(const struct rwk_ud *ud)
{
	struct rwk_ud_counters c;

	rwk_ud_get_counters(ud, &c);
	must(c.received == taken && !c.sent);
	return c.received + c.no_receive + c.malformed + c.unknown_qpn + c.wrong_pkey + c.wrong_qkey + c.bad_icrc +
	       c.too_long;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct rwk_ud_attr attr = {.own = {.qpn = 0x10001, .qkey = RWK_UD_QKEY}, .received = received};
	uint64_t given = 0;
	struct rwk_ud *ud;

	link_.ops = &ops;
	posted = taken = 0;
	must(!rwk_ud_open_on(&link_, &attr, &ud));
	while (len >= 3) {
		size_t n = 4 * (size_t)bytes[2];
		unsigned flags = bytes[0];

		if (flags & POST)
			post(ud, bytes[1]);
		bytes += 3, len -= 3;
		n = n < len ? n : len;
		give(bytes, n, flags);
		bytes += n, len -= n;
		must(all(ud) == ++given);
	}
	rwk_ud_close(ud);
	for (unsigned i = 0; i < posted; i++)
		free(places[i].memory);
	return 0;
}
