/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unreliable connection on networks that lose, double, damage, delay and reorder by chance, many seeds, about a
 * million packets (RWK_UC_SEEDS=n: so many seeds). What arrives is held against a model that knows the numbers of each
 * message's packets and nothing else (S0-8, S0-9, S0-10):
 *
 *   a packet is accepted if none with its number or a later one was before
 *   a message ends if, when its last packet is accepted, all of it were accepted one behind the other
 *   each accepted packet that is not the one after the last accepted is a loss
 *
 * Links: sim.
 */
#include "uc/ends.h"

#define PMTU 256u

static struct {
	bool any;
	uint32_t last; /* accepted */
	uint32_t run;  /* accepted one behind the other, up to that one */
	unsigned losses, old;
	unsigned ends;
	uint32_t log[MESSAGES];
} model;

/* The message that has the packet of that number. */
static struct message *owner(uint32_t psn)
{
	for (unsigned n = 0; n < message_count; n++) {
		uint32_t at = (uint32_t)rwk_psn_diff(psn, messages[n].first_psn);

		if (at < messages[n].packets)
			return &messages[n];
	}
	fail_msg("a packet that was never sent");
	return NULL;
}

static void see(const struct rwk_wire *w, size_t len)
{
	uint32_t next = model.any ? rwk_psn_add(model.last, 1) : FIRST_PSN;
	int32_t ahead = rwk_psn_diff(w->psn, next);
	struct message *m = owner(w->psn);

	(void)len;
	if (ahead < 0) {
		model.old++;
		return;
	}
	if (ahead) {
		model.losses++;
		model.run = 0;
	}
	model.any = true;
	model.last = w->psn;
	model.run++;
	if (w->psn != rwk_psn_add(m->first_psn, m->packets - 1) || model.run < m->packets)
		return;
	if (m->wr.type == RWK_WR_SEND || m->wr.flags & RWK_WR_IMM)
		model.log[model.ends++] = (uint32_t)(m - messages);
	else
		assert_int_equal(m->placed + len, m->wr.length); /* all before it is in place */
}

static unsigned chance(unsigned bound)
{
	return (unsigned)rwk_sim_random(net, bound);
}

static void post_some(uint32_t *psn)
{
	for (unsigned i = chance(20); i-- > 0 && message_count < MESSAGES;) {
		unsigned len = chance(4) ? chance(4) * PMTU + chance(3) : chance(20 * PMTU);
		struct message *m = ends_post(RWK_WR_SEND + chance(2), chance(2) ? IMM : 0, len);

		m->first_psn = *psn;
		m->packets = len ? (len + PMTU - 1) / PMTU : 1;
		*psn = rwk_psn_add(*psn, m->packets);
	}
}

static uint64_t run(uint64_t seed)
{
	struct rwk_sim_path path = {.delay = 1000,
		.jitter = 500,
		.reorder_by = 3000,
		.drop = (uint32_t)(seed % 5) * 10000,
		.duplicate = (uint32_t)(seed % 3) * 20000,
		.corrupt = (uint32_t)(seed % 2) * 10000,
		.reorder = (uint32_t)(seed % 7) * 10000};
	uint32_t psn = FIRST_PSN;
	uint64_t packets;

	memset(&model, 0, sizeof(model));
	ends_open(seed, PMTU, &path);
	receiver.seen = see;
	while (message_count < 300) {
		post_some(&psn);
		for (unsigned i = chance(4); i-- > 0;) {
			sender.room = chance(8);
			rwk_uc_pump(sender.qp);
			rwk_sim_step(net);
			receiver.link->ops->progress(receiver.link, (int)chance(10));
		}
		sender.room = -1;
	}
	ends_settle();
	assert_int_equal(sender.emitted, (uint32_t)rwk_psn_diff(psn, FIRST_PSN));
	if (logged != model.ends || memcmp(log_of, model.log, logged * sizeof(log_of[0])))
		fail_msg("seed %llu: %u messages ended, and %u by the model, or others", (unsigned long long)seed,
			logged, model.ends);
	assert_int_equal(receiver.lost, model.losses);
	assert_int_equal(rwk_uc_counters(receiver.qp)->gaps, model.losses);
	assert_int_equal(rwk_uc_counters(receiver.qp)->duplicates, model.old);
	for (unsigned n = 0; n < message_count; n++) {
		assert_int_equal(messages[n].done, 1);
		assert_in_range(messages[n].ended, 0, 1);
		assert_in_range(messages[n].begun, 0, 1);
	}
	if (!path.drop && !path.corrupt && !path.reorder)
		assert_int_equal(receiver.lost, 0);
	packets = sender.emitted;
	ends_close();
	return packets;
}

static void seeds(void **state)
{
	const char *text = getenv("RWK_UC_SEEDS");
	uint64_t packets = 0, count = text ? strtoull(text, NULL, 10) : 1000;

	(void)state;
	for (uint64_t seed = 1; seed <= count; seed++)
		packets += run(seed);
	print_message("%llu packets\n", (unsigned long long)packets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
