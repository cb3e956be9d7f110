/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arrival: how the peer's longer messages should come to this side: in pieces, each copied twice, through slabs; or
 * announced, to be fetched by one copy out of the peer's memory, or by both sides at once. On some processors the one
 * is faster for what has just been written, the other for what lies in the caches of both or comes in a stream. Who
 * sends does not see how long either takes; so the receiver measures both, by classes of length, and tells the
 * sender when another way is better (RWK_SHM_ARRIVAL). The sender tells its client (rwk_channel.fetched).
 *
 * Where somebody waits for each message, what one in pieces takes is measured from its first piece to its end; of a
 * few, as looking at the clock costs something. What reads take is measured anyway (transfer_choice.h).
 *
 * Where messages come one after the other and nothing goes back between them, a stream, flows of FLOW messages are
 * measured, from end to end: for in pieces the sender makes the next one while this one is copied out, and who is read
 * from cannot. (64 KB that are written, sent, received and read took 1.8 times as long fetched as in pieces, though the
 * reads alone took less.) A flow counts for the way that is wanted: of a long window some are announced all the same,
 * for want of credit. Fewer messages at a time would not do: how far the sender is ahead differs from one end of a
 * window to the other. Windows both ways are streams, too: one of SILENT messages that comes in silence makes it one.
 *
 * Where both sides send at the same time, as in an exchange, each of them first fills slabs and then copies out of
 * slabs, which a reader does not have to. The receiver knows it by how long ago the message had been begun when he
 * first saw of it: of some messages in pieces the sender tells when that was. If it is more than half of what the rest
 * takes it counts, too. Not otherwise: whoever only answers sees the first piece as soon as it is there.
 *
 * Rule: where somebody waits for each message it is fetched if that is clearly faster, for what a processor has read
 * lies in its own caches, and whoever writes again where it was fetched from pays for that later, which nobody
 * measures. The copies alone of 64 KB that are written, sent and read take 0.75 of the time of the pieces, but all of
 * it 1.5 times as long; and so it is where both sides send at a time and 20 KB are read by one of them. So less than
 * 0.7 of the time in pieces is clear. In a stream nine tenths are enough. Now and then, the first time after a few
 * messages, the other way is tried for TRIAL messages; in a stream for two flows, since a sender that is ahead takes
 * slab after slab, which the first time round all come from afar. What a trial costs more is paid out of a 128th of the
 * time that the messages take, those included that are under way when the sender hears that it is over.
 */
#ifndef RWK_SHM_ARRIVAL_H
#define RWK_SHM_ARRIVAL_H

#include "shm/layout.h"
#include "shm/transfer_choice.h"

enum rwk_shm_arrival_way { RWK_SHM_IN_PIECES, RWK_SHM_FETCHED, RWK_SHM_ARRIVAL_WAYS };

#define RWK_SHM_ARRIVAL_CLASSES 7u /* of rwk_fetched_class */
_Static_assert(RWK_SHM_SLAB_BYTES == RWK_FETCHED_MIN, "what goes in one slab is never fetched");
_Static_assert(RWK_SHM_MESSAGE_MAX == RWK_FETCHED_MIN << RWK_SHM_ARRIVAL_CLASSES, "all have a class");

/** What the last ones measured have cost, ns a KB. */
struct rwk_shm_runs {
	float recent[RWK_SHM_RUNS_KEPT], least; /* 0: not known */
	uint32_t n; /* ever */
};

/** Messages of a class, one after the other, since the sender knows the way that is wanted. */
struct rwk_shm_flow {
	uint64_t start; /* ns; 0: it has not heard of it yet */
	uint64_t bytes; /* of all classes, that had come by then */
	uint32_t messages;
};

/** Of what comes by one channel; zero at first. */
struct rwk_shm_arrival {
	uint8_t wanted, told; /* to be fetched, as rwk_channel.fetched; the sender has been told of */
	struct rwk_shm_arrival_class {
		struct rwk_shm_runs pieces; /* what is answered */
		float read;     /* ns a KB of what is fetched, the reads alone; 0: not known */
		struct rwk_shm_runs flows[RWK_SHM_ARRIVAL_WAYS]; /* from end to end */
		struct rwk_shm_flow flow;
		uint32_t silence; /* so many more that are answered end the stream; 0: it is none */
		uint8_t tried;  /* a bit for the circumstances under which the other way has been */
		uint32_t trial; /* messages for which the way in use is still tried */
		float aside;    /* ns that trials may take more */
		uint64_t count[RWK_SHM_ARRIVAL_WAYS]; /* messages in all */
	} class[RWK_SHM_ARRIVAL_CLASSES];
	uint64_t bytes; /* of all messages */
	struct { /* the message in pieces that is under way, if it is measured */
		uint64_t start; /* ns; else 0 */
		uint32_t late;  /* ns that had passed since its sender began */
	} answered;
};

/**
 * The first piece of a message of `length` bytes is there, which is longer than a slab; `silent`: the client has sent
 * nothing since the last one came. If its sender tells when it was begun: that was `late` ns ago, and it is `now` (ns
 * of any clock); else both 0.
 */
void rwk_shm_arrival_begins(struct rwk_shm_arrival *a, size_t length, bool silent, uint32_t late, uint64_t now);
/** Is the time wanted at which it is whole? */
bool rwk_shm_arrival_measures(const struct rwk_shm_arrival *a, size_t length);
/** It is; `now` (of the same clock) if that is wanted, else 0. True: `wanted` has changed. */
bool rwk_shm_arrival_whole(struct rwk_shm_arrival *a, size_t length, uint64_t now);
/** One has been read, at `now`; by the fastest method that takes `cost` ns a KB, 0: not known. True: as above. */
bool rwk_shm_arrival_fetched(struct rwk_shm_arrival *a, size_t length, float cost, uint64_t now);

/** Of several channels, to be printed: how many messages each way, and the least cost in ns a KB. */
struct rwk_shm_arrivals {
	struct rwk_shm_arrivals_class {
		float cost[RWK_SHM_ARRIVAL_WAYS]; /* 0: not known */
		uint64_t count[RWK_SHM_ARRIVAL_WAYS];
	} class[RWK_SHM_ARRIVAL_CLASSES];
};

void rwk_shm_arrival_add(struct rwk_shm_arrivals *all, const struct rwk_shm_arrival *a);
/**
 * Writes a line per class of which any have come into buf (terminated): the way that most took, and of both the best
 * speed and the number. Returns the characters written.
 */
size_t rwk_shm_arrival_print(const struct rwk_shm_arrivals *a, char *buf, size_t len);

#endif
