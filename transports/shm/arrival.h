/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arrival: how the peer's longer messages should come to this side: in pieces, each copied twice, through slabs; or
 * announced, to be fetched by one copy out of the peer's memory, or by both sides at once. On some processors the one
 * is faster for what has just been written, the other for what lies in the caches of both or comes in a stream. Who
 * sends does not see how long either takes; so the receiver measures both, by classes of length, and tells the
 * sender when another way is better (RWK_SHM_ARRIVAL). The sender tells its client (rwk_channel.fetched).
 *
 * Measured is what messages in pieces take: one that is answered from its first piece to its end; where they come one
 * after the other and nothing goes back, a run of them from the end of the one before. A few of many are, as looking at
 * the clock costs something. What reads take is measured anyway (transfer_choice.h). But in a stream the sender of a
 * message in pieces makes the next one while it is copied out, and who is read from cannot: so there runs of reads are
 * measured, too, from the end of the one before. (64 KB that are written, sent, received and read took 1.8 times as
 * long fetched as in pieces, though the reads alone took less.)
 *
 * Where both sides send at the same time, as in an exchange, each of them first fills slabs and then copies out of
 * slabs, which a reader does not have to. The receiver knows it by how long ago the message had been begun when he
 * first saw of it: of some messages in pieces the sender tells when that was. If it is more than half of what the rest
 * takes it counts, too. Not otherwise: whoever only answers sees the first piece as soon as it is there.
 *
 * Rule: where somebody waits for each message it is fetched if that is clearly faster, for what a processor has read
 * lies in its own caches, and whoever writes again where it was fetched from pays for that later, which nobody measures.
 * Less than 0.85 of its time in pieces will do for a message that is read by one side: if it has just been written the
 * read itself takes longer than the pieces (1.5 times, on a Xeon). Where both sides read, each has its part at hand:
 * the copies of 64 KB that are written, sent and read take 0.75 of the time of the pieces, but all of it 1.5 times as
 * long; so 0.7. In a stream nine tenths are enough. Now and then, the first time after a few messages, the other way is
 * tried for TRIAL messages; pieces of a stream for WARM, since its sender is ahead and takes slab after slab, which the
 * first time round all come from afar. What a trial costs more is paid out of a 128th of the time that the messages
 * take, those included that are under way when the sender hears that it is over.
 */
#ifndef RWK_SHM_ARRIVAL_H
#define RWK_SHM_ARRIVAL_H

#include "shm/layout.h"
#include "shm/transfer_choice.h"

enum rwk_shm_arrival_way { RWK_SHM_IN_PIECES, RWK_SHM_FETCHED, RWK_SHM_ARRIVAL_WAYS };

#define RWK_SHM_ARRIVAL_CLASSES 7u /* of rwk_fetched_class */
_Static_assert(RWK_SHM_SLAB_BYTES == RWK_FETCHED_MIN, "what goes in one slab is never fetched");
_Static_assert(RWK_SHM_MESSAGE_MAX == RWK_FETCHED_MIN << RWK_SHM_ARRIVAL_CLASSES, "all have a class");

/** What the last runs have cost, ns a KB. */
struct rwk_shm_runs {
	float cost[RWK_SHM_RUNS_KEPT];
	uint32_t n; /* ever */
};

/** Of what comes by one channel; zero at first. */
struct rwk_shm_arrival {
	uint8_t wanted, told; /* to be fetched, as rwk_channel.fetched; the sender has been told of */
	struct rwk_shm_arrival_class {
		float cost[RWK_SHM_ARRIVAL_WAYS]; /* ns a KB; 0: not known yet. What is fetched: of the reads alone, */
		float passing;  /* and from the end of one to the end of the next */
		struct rwk_shm_runs pieces, reads; /* of these: the least is the cost */
		float aside;    /* ns that trials may take more */
		uint32_t trial; /* messages for which the way in use is still tried */
		bool stream;    /* the last run was one */
		uint64_t count[RWK_SHM_ARRIVAL_WAYS]; /* messages in all */
	} class[RWK_SHM_ARRIVAL_CLASSES];
	uint64_t last_done; /* ns: when one in pieces was whole, if the next one is to be measured; else 0 */
	struct { /* of messages in pieces, one after the other, of one class */
		uint64_t start; /* ns; 0: there is none */
		uint32_t late;  /* ns that had passed since the sender began */
		size_t bytes;
		unsigned class;
		bool stream;
	} run;
	struct { /* of fetched ones, one after the other, of one class */
		uint64_t start; /* ns; 0: there is none */
		size_t bytes;
		unsigned messages, class;
	} reads;
};

/**
 * The first piece of a message of `length` bytes is there, which is longer than a slab; `stream`: the client has sent
 * nothing since the last one came. `begun`: the low bits of when its sender began, 0: he does not tell, and `now`
 * (rwk_clock_shared) is not wanted.
 */
void rwk_shm_arrival_begins(struct rwk_shm_arrival *a, size_t length, bool stream, uint32_t begun, uint64_t now);
/** Is the time wanted at which it is whole? */
bool rwk_shm_arrival_measures(const struct rwk_shm_arrival *a, size_t length);
/** It is; `now` (rwk_clock_shared) if that is wanted, else 0. True: `wanted` has changed. */
bool rwk_shm_arrival_whole(struct rwk_shm_arrival *a, size_t length, uint64_t now);
/**
 * One has been read, at `now`, ns of any clock; by the fastest method that takes `cost` ns a KB, 0: not known. True:
 * `wanted` has changed.
 */
bool rwk_shm_arrival_fetched(struct rwk_shm_arrival *a, size_t length, float cost, uint64_t now);

/** Adds what has come by another channel: how many messages each way, and the least cost. Only to be printed. */
void rwk_shm_arrival_add(struct rwk_shm_arrival *all, const struct rwk_shm_arrival *a);
/**
 * Writes a line per class of which any have come into buf (terminated): the way that most took, and of both the best
 * speed and the number. Returns the characters written.
 */
size_t rwk_shm_arrival_print(const struct rwk_shm_arrival *a, char *buf, size_t len);

#endif
