/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who the peers are. A peer is found by its nonce, which each endpoint draws afresh, or, on this node, by its port
 * while only that is known, elsewhere by its IP and port. First contact asks selection; a peer that contacts us first
 * is taken by the way that it comes, if selection has any for it.
 *
 * Death: the channel reports it once; or we end it, because the peer makes no sense. What was under way with the peer
 * then ends with the error: sends, reads, receives directed at it. Receives from anyone stay: somebody else may still
 * send. The channel is disconnected after the progress that reported it; what comes by it until then is dropped.
 */
#include "engine/internal.h"

#include "base/cancel.h"
#include "engine/job.h"

/** A peer known by its place alone turns out to have this address. */
static void complete_address(struct rwk_peer *p, const struct rwk_address *a)
{
	rwk_directory_correct(p, a);
	if (p->shown)
		p->shown->address = *a;
}

static struct rwk_peer *peer_new(struct rwk_engine *e, const struct rwk_address *a)
{
	struct rwk_peer *p = rwk_pool_get(&e->peer_pool);

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->engine = e;
	p->address = *a;
	p->user = RWK_NO_USER;
	p->credit = (int64_t)rwk_params.eager_credit;
	p->owed_limit = (uint32_t)(rwk_params.eager_credit / 8); /* so much credit, at most, is lost to who streams */
	rwk_list_init(&p->sends);
	rwk_list_init(&p->reads);
	rwk_list_init(&p->in_list);
	rwk_list_init(&p->late_out);
	rwk_list_init(&p->late_in);
	p->next = e->all_peers;
	e->all_peers = p;
	rwk_directory_enter(p);
	return p;
}

struct rwk_peer *rwk_engine_peer(struct rwk_engine *e, const struct rwk_address *a)
{
	bool partial = rwk_peer_is_partial(a);
	struct rwk_peer *p = partial ? NULL : rwk_directory_by_nonce(e, a);

	if (p)
		return p;
	p = rwk_directory_by_place(e, a);
	if (p && partial)
		return p;
	if (p && rwk_peer_is_partial(&p->address) && rwk_directory_finds(e, a)) {
		complete_address(p, a);
		return p;
	}
	return peer_new(e, a);
}

void rwk_peer_set_user(struct rwk_peer *p, uint64_t user)
{
	p->user = user;
}

uint64_t rwk_peer_user(const struct rwk_peer *p)
{
	return p->user;
}

const struct rwk_address *rwk_peer_address(const struct rwk_peer *p)
{
	return &p->address;
}

bool rwk_peer_has_merged(const struct rwk_peer *p)
{
	return p->has_merged;
}

bool rwk_peer_sending(const struct rwk_peer *p)
{
	return !rwk_list_empty(&p->sends);
}

/** Is it our word that a message of the peer's has come, or was read? Nobody here waits for that, but its sender does. */
static bool is_word(const struct rwk_tx *tx)
{
	return tx->state == RWK_TX_CONTROL && (tx->op.env.kind == RWK_FIN || tx->op.env.kind == RWK_DELIVERED);
}

static size_t owed_to(const struct rwk_peer *p)
{
	size_t n = rwk_rma_owed(p);

	for (const struct rwk_list *l = p->sends.next; l != &p->sends; l = l->next) {
		const struct rwk_tx *tx = rwk_container_of(l, struct rwk_tx, link);

		n += tx->flags & RWK_F_INJECT || is_word(tx);
	}
	return n;
}

size_t rwk_engine_owes(const struct rwk_engine *e)
{
	size_t n = 0;

	for (const struct rwk_peer *p = e->all_peers; p; p = p->next)
		n += p->self || p->error ? 0 : owed_to(p);
	return n;
}

/** The send_max of its channel is known, or is another. A peer that has failed takes nothing. */
static void limit_eager(struct rwk_peer *p, const struct rwk_channel *ch)
{
	bool network = ch->port == p->engine->network_port;
	size_t most = network ? rwk_params.eager_max_network : rwk_params.eager_max;

	if (ch != p->channel || p->error || p->fenced)
		return;
	p->eager_limit = (ch->send_max < most ? ch->send_max : most) + 1;
}

void rwk_peer_set_fenced(struct rwk_peer *p, bool fenced)
{
	p->fenced = fenced;
	if (fenced)
		p->eager_limit = 0;
	else if (p->channel)
		limit_eager(p, p->channel);
}

static void attach_channel(struct rwk_peer *p, struct rwk_channel *ch)
{
	p->channel = ch;
	p->send = ch->transport->send;
	p->contacted = rwk_clock_now();
	p->engine->network_used |= ch->port == p->engine->network_port;
	limit_eager(p, ch);
}

static const char *why_no_network(void)
{
	if (!rwk_job_wants_network())
		return "the job is on this node alone, and no network is opened";
	if (rwk_params.interfaces && rwk_params.tcp) /* without TCP there may be another reason */
		return "FI_ROPEWALK_INTERFACES leaves no network of this host";
	return "this host has no network that may be used";
}

/** What selection wants to know of a peer before contact. */
static void facts_of(struct rwk_peer *p, struct rwk_sel_facts *f)
{
	struct rwk_engine *e = p->engine;

	rwk_job_facts(f);
	f->udp = e->network_port && rwk_params.udp;
	f->tcp = e->network_port && rwk_params.tcp;
	if (!e->network_port)
		f->no_network = why_no_network();
	f->node = p->here ? RWK_SEL_CLAIMED : RWK_SEL_OTHER;
	if (!rwk_peer_is_partial(&p->address) && p->address.job != e->address.job) {
		f->shm_error = EACCES;
		f->shm_reason = "the peer belongs to another job";
	}
}

/** Puts the choice into the status page. */
static void show(struct rwk_peer *p, const struct rwk_sel_facts *f, const struct rwk_sel_choice *choice)
{
	struct rwk_engine *e = p->engine;

	if (p->channel) {
		rwk_status_changed(&e->status, p->shown, f, choice);
		return;
	}
	if (p->chosen) /* for a first contact that failed for want of memory */
		return;
	p->chosen = true;
	p->shown = rwk_status_met(&e->status, &p->address, f, choice);
	if (p->shown)
		e->listed[p->shown - e->status.peer] = p;
}

static void choose(struct rwk_peer *p, const struct rwk_sel_facts *f, struct rwk_sel_choice *choice)
{
	rwk_sel_choose(f, choice);
	show(p, f, choice);
	if (rwk_params.explain)
		rwk_sel_explain(&p->engine->explainer, f, choice);
	if (choice->error)
		rwk_warn("peer not reachable: %s", choice->reason);
}

/** Asks selection which of the engine's ports carries this peer: 0 and *network set, or why none does. */
static int select_port(struct rwk_peer *p, bool *network)
{
	struct rwk_sel_choice choice;
	struct rwk_sel_facts facts;

	*network = false;
	if (p->engine->attr.transports)
		return 0;
	facts_of(p, &facts);
	choose(p, &facts, &choice);
	*network = choice.strand != RWK_STRAND_UC_SHM;
	return choice.error;
}

void rwk_peer_by_stream(void *engine, struct rwk_channel *ch)
{
	struct rwk_sel_choice choice;
	struct rwk_sel_facts facts;
	struct rwk_peer *p = ch->peer;

	(void)engine;
	limit_eager(p, ch);
	if (p->engine->attr.transports || !rwk_param_opens_udp(&rwk_params))
		return; /* that was known from the beginning */
	facts_of(p, &facts);
	facts.udp = false;
	choose(p, &facts, &choice);
	rwk_info("UDP does not get through to rank %u: %s carries it", rwk_address_rank(&p->address),
		rwk_strand_text(choice.strand));
}

void rwk_peer_unshared(void *engine, struct rwk_channel *ch)
{
	struct rwk_sel_choice choice;
	struct rwk_sel_facts facts;
	struct rwk_peer *p = ch->peer;

	(void)engine;
	limit_eager(p, ch);
	if (p->engine->attr.transports)
		return;
	facts_of(p, &facts);
	facts.unshared = "one of the two ends is in no domain of its node, or is known by several addresses";
	choose(p, &facts, &choice);
	rwk_info("no connection can be shared with rank %u: %s carries it", rwk_address_rank(&p->address),
		rwk_strand_text(choice.strand));
}

/** Who is known by IP and port: of this host's IPs shared memory knows but the loopback's and its own. */
static int connect_here(struct rwk_peer *p, struct rwk_channel **ch)
{
	struct rwk_address to = p->address;

	if (rwk_peer_is_partial(&to) && p->here)
		memcpy(to.ip, rwk_engine_loopback, sizeof(to.ip));
	return p->engine->transport->connect(p->engine->port, &to, p, ch);
}

int rwk_peer_connect(struct rwk_peer *p)
{
	struct rwk_engine *e = p->engine;
	struct rwk_channel *ch;
	int before = rwk_cancel_hold_off(), rc;
	bool network = false;

	rc = e->left ? -ECANCELED : select_port(p, &network);
	if (!rc && network)
		rc = e->network->connect(e->network_port, &p->address, p, &ch);
	else if (!rc)
		rc = connect_here(p, &ch);
	rwk_cancel_as_before(before);
	if (rc == -ENOMEM)
		return -EAGAIN;
	if (rc) {
		p->error = rc;
		return rc;
	}
	attach_channel(p, ch);
	return 0;
}

int rwk_peer_connected(void *engine, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct rwk_engine *e = engine;
	struct rwk_peer *p = ch->peer, *there = rwk_directory_by_nonce(e, from);
	bool known, network;
	int rc;

	if (p) {
		if (rwk_peer_is_partial(&p->address) && (!there || there == p))
			complete_address(p, from);
		return 0;
	}
	p = there;
	if (!p) {
		p = rwk_directory_by_place(e, from);
		if (p && rwk_peer_is_partial(&p->address))
			complete_address(p, from);
		else
			p = NULL;
	}
	known = p;
	if (!p)
		p = peer_new(e, from);
	if (!p)
		return -ENOMEM;
	if (p->self)
		return -EACCES; /* we do not ask ourselves */
	if (p->error)
		return p->error; /* a nonce is drawn once: the dead do not come back */
	if (p->channel)
		return -EALREADY;
	rc = select_port(p, &network);
	if (rc)
		return rc;
	ch->peer = p;
	attach_channel(p, ch);
	if (!known && e->attr.new_peer)
		e->attr.new_peer(e->owner, p, from);
	return 0;
}

static void show_traffic(struct rwk_peer *p, uint64_t now)
{
	struct rwk_traffic t;

	if (p->shown && p->channel && p->channel->transport->traffic && p->channel->transport->traffic(p->channel, &t))
		rwk_status_traffic(p->shown, &t, now);
}

/** Shows what the connections have carried until now. */
void rwk_peers_moment(void *engine)
{
	struct rwk_engine *e = engine;
	uint64_t now = rwk_clock_now();

	for (uint32_t i = 0; i < e->status.peers; i++)
		show_traffic(e->listed[i], now);
}

void rwk_peer_ended(struct rwk_peer *p, int err)
{
	p->error = err;
	p->eager_limit = 0;
	if (p->shown)
		p->shown->error = -err;
	rwk_list_append(&p->engine->failed, &p->in_list);
	p->engine->due = true;
}

void rwk_peer_failed(void *engine, struct rwk_channel *ch, int err)
{
	struct rwk_engine *e = engine;
	struct rwk_peer *p = ch->peer;

	if (p->error)
		return;
	rwk_peer_ended(p, err);
	show_traffic(p, rwk_clock_now());
	e->status.counters.failed_peers++;
	rwk_info("peer at port %u, rank %u: %s", rwk_address_port(&p->address), rwk_address_rank(&p->address),
		strerror(-err));
}

void rwk_peer_give_up(struct rwk_peer *p, int err, const char *why)
{
	if (p->error)
		return;
	rwk_warn("the channel to port %u, rank %u is ended: %s", rwk_address_port(&p->address),
		rwk_address_rank(&p->address), why);
	rwk_peer_failed(p->engine, p->channel, err);
	rwk_inbound_guard(p->engine, true);
}

/** The receives that only one peer can satisfy. */
struct directed {
	struct rwk_peer *from;
	struct rwk_list found; /* rwk_posted.all */
};

static int take_directed(struct rwk_posted *posted, void *arg)
{
	struct rwk_rx *rx = rwk_container_of(posted, struct rwk_rx, posted);
	struct directed *d = arg;

	if (posted->from != d->from)
		return 0;
	rwk_rx_retire(rwk_rx_inbox(d->from->engine, rx), rx);
	rwk_list_append(&d->found, &posted->all);
	return 0;
}

/**
 * Ends the receives that only this peer could have satisfied. First all are taken out, in one pass: a completion may
 * post and cancel what it likes.
 */
static void end_receives(struct rwk_peer *p)
{
	struct directed d = {.from = p};
	struct rwk_list *l;

	rwk_list_init(&d.found);
	for (unsigned i = 0; rwk_room_exists(p->engine, i); i++) {
		for (enum rwk_space s = 0; s < RWK_SPACES; s++)
			rwk_match_each_posted(p->engine->rooms[i]->matcher[s], take_directed, &d);
	}
	while ((l = rwk_list_pop(&d.found))) {
		struct rwk_rx *rx = rwk_container_of(l, struct rwk_rx, posted.all);

		rwk_rx_end(rwk_rx_inbox(p->engine, rx), rx, p->error);
	}
}

/** Ends the sends that the channel has not ended itself: those that wait for FIN. */
static void end_sends(struct rwk_peer *p)
{
	struct rwk_list *l = p->sends.next;

	while (l != &p->sends) {
		struct rwk_tx *tx = rwk_container_of(l, struct rwk_tx, link);

		l = l->next;
		if (tx->state == RWK_TX_FIN) {
			rwk_rendezvous_abandon(tx);
			l = p->sends.next; /* the completion may have started anything */
		}
	}
}

void rwk_peers_reap(struct rwk_engine *e)
{
	int before = rwk_cancel_hold_off();
	struct rwk_list *l;

	while ((l = rwk_list_pop(&e->failed))) {
		struct rwk_peer *p = rwk_container_of(l, struct rwk_peer, in_list);

		/* First: if we have ended it, the service still has ops and places that lie in what ends below. */
		p->channel->transport->disconnect(p->channel);
		p->channel = NULL;
		rwk_credit_forget(p);
		end_sends(p);
		end_receives(p);
		rwk_rma_abandon(p);
	}
	rwk_inbound_guard(e, false);
	rwk_cancel_as_before(before);
}

int rwk_peers_open(struct rwk_engine *e)
{
	rwk_directory_open(e);
	rwk_pool_init(&e->peer_pool, sizeof(struct rwk_peer), 16, 0);
	e->me = peer_new(e, &e->address);
	if (!e->me) {
		rwk_directory_close(e);
		return -ENOMEM;
	}
	e->me->self = true;
	return 0;
}

void rwk_peers_close(struct rwk_engine *e)
{
	for (struct rwk_peer *p = e->all_peers; p; p = p->next) {
		while (!rwk_list_empty(&p->sends))
			rwk_tx_put(rwk_container_of(p->sends.next, struct rwk_tx, link));
		rwk_rma_close(p);
	}
	e->all_peers = NULL;
	rwk_directory_close(e);
	rwk_pool_close(&e->peer_pool);
}
