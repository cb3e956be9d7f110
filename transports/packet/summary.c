/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port and its connections have done: for FI_ROPEWALK_STATS, a few lines to stderr when the port closes, and of
 * each connection for its client, at any time.
 */
#include "packet/channel.h"
#include "packet/port.h"

#include "shared_rc/shared_rc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *strand(const struct rwk_packet_channel *ch)
{
	if (ch->shared)
		return "SRC/udp";
	return ch->path.way == RWK_WAY_LOSSY ? "RC/udp" : "UC/tcp";
}

void rwk_packet_summary_of(const struct rwk_packet_channel *ch)
{
	const struct rwk_qp_counters *c = rwk_packet_qp_counters(&ch->base);
	unsigned me = rwk_address_rank(&ch->port->address);

	if (!c)
		return;
	fprintf(stderr,
		"ropewalk: rank %u: %s to %s: out %" PRIu64 " packets, %" PRIu64 " bytes; in %" PRIu64 ", %" PRIu64
		"; sent again %" PRIu64 ", timeouts %" PRIu64 ", probes %" PRIu64 "; ACKs out %" PRIu64 ", in %" PRIu64
		"; NAKs out %" PRIu64 ", in %" PRIu64 "; RNR out %" PRIu64 ", in %" PRIu64 "; duplicates %" PRIu64
		", early %" PRIu64 " (kept %" PRIu64 "), lost messages %" PRIu64 "; refused: opcode %" PRIu64
		", length %" PRIu64 ", access %" PRIu64 ", state %" PRIu64 ", number %" PRIu64 "\n",
		me, strand(ch), rwk_packet_name(&ch->address), c->packets_out, c->bytes_out, c->packets_in, c->bytes_in,
		c->sent_again, c->timeouts, c->probes, c->acks_out, c->acks_in, c->naks_out, c->naks_in, c->rnr_out,
		c->rnr_in, c->duplicates, c->early, c->kept, c->gaps, c->bad_opcode, c->bad_length, c->bad_access,
		c->bad_state, c->too_far);
}

/* What it did for its node, whoever it was for. */
static void print_domain(const struct rwk_src_view *view, unsigned me)
{
	const struct rwk_src_counters *c = rwk_src_get_counters(view);

	fprintf(stderr,
		"ropewalk: rank %u: SRC domain: pieces for itself %" PRIu64 ", for siblings %" PRIu64
		", from siblings %" PRIu64 ", put into memory %" PRIu64 ", not put %" PRIu64 "; ACKs out %" PRIu64
		", duplicates %" PRIu64 ", early %" PRIu64 " (kept %" PRIu64 "); locked out %" PRIu64
		", turned away %" PRIu64 ", no room %" PRIu64 ", for the dead %" PRIu64 ", unknown target %" PRIu64
		", wrong sender %" PRIu64 "\n",
		me, c->own, c->handed_on, c->drained, c->carried_out, c->not_carried_out, c->qp.acks_out,
		c->qp.duplicates, c->qp.early, c->qp.kept, c->locked_out, c->turned_away, c->no_room, c->for_the_dead,
		c->unknown_target, c->wrong_sender);
}

void rwk_packet_summary(const struct rwk_port *port)
{
	const struct rwk_packet_counters *n = &port->count;
	unsigned me = rwk_address_rank(&port->address);

	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next)
		rwk_packet_summary_of(rwk_container_of(l, struct rwk_packet_channel, all));
	if (port->view)
		print_domain(port->view, me);
	fprintf(stderr,
		"ropewalk: rank %u: network: packets out %" PRIu64 ", in %" PRIu64 "; dropped: malformed %" PRIu64
		", wrong ICRC %" PRIu64 ", unknown QP %" PRIu64 ", wrong sender %" PRIu64 ", wrong key %" PRIu64
		", stale %" PRIu64 "; greetings out %" PRIu64 ", in %" PRIu64 ", refused %" PRIu64
		"; frames out %" PRIu64 " with %" PRIu64 " records, in %" PRIu64 " with %" PRIu64 "; by stream %" PRIu64
		"; queue pairs of its own %" PRIu64 ", initiators %" PRIu64 ", targets taken from %" PRIu64
		"; processes of the job on this machine %" PRIu32 ", processors %" PRIu32 ", core given away %" PRIu64
		" times\n",
		me, n->packets_out, n->packets_in, n->malformed, n->wrong_icrc, n->unknown_qp, n->wrong_sender,
		n->wrong_key, n->stale, n->greetings_out, n->greetings_in, n->refused, n->frames_out, n->records_out,
		n->frames_in, n->records_in, n->fell_back, n->queue_pairs, n->initiators, n->targets,
		port->crowd, port->processors, n->yields);
}

bool rwk_packet_traffic(const struct rwk_channel *ch, struct rwk_traffic *out)
{
	const struct rwk_qp_counters *c = rwk_packet_qp_counters(ch);

	if (!c)
		return false;
	*out = (struct rwk_traffic){
		.packets_out = c->packets_out,
		.bytes_out = c->bytes_out,
		.packets_in = c->packets_in,
		.bytes_in = c->bytes_in,
		.sent_again = c->sent_again,
		.timeouts = c->timeouts,
		.probes = c->probes,
		.naks_out = c->naks_out,
		.naks_in = c->naks_in,
		.rnr_out = c->rnr_out,
		.rnr_in = c->rnr_in,
		.duplicates = c->duplicates,
		.early = c->early,
		.lost = c->gaps,
		.refused = c->bad_opcode + c->bad_length + c->bad_access + c->bad_state + c->too_far,
	};
	return true;
}
