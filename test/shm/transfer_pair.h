/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes, a shared mapping and a trivial control channel: all that transfers need, in place of port, ring and
 * attach. So they can be tested and measured alone, and told lies.
 */
#ifndef TEST_SHM_TRANSFER_PAIR_H
#define TEST_SHM_TRANSFER_PAIR_H

#include "shm/pair.h"
#include "shm/transfer.h"
#include "shm/transfer_state.h"

#include "base/param.h"

#define TP_RECORDS 1024u

/* One direction: written by one side. */
struct tp_side {
	_Atomic uint64_t posted rwk_aligned; /* records put */
	_Atomic uint64_t taken rwk_aligned;  /* of the other side's records */
	_Atomic uint64_t word[16] rwk_aligned; /* for the tests to talk to each other; the last one: 1, it sleeps */
	struct rwk_rkey key[256];
	pid_t pid;
	struct {
		uint32_t kind, len;
		char body[RWK_SHM_CONTROL_MAX];
	} record[TP_RECORDS];
	char area[RWK_SHM_TRANSFER_BYTES] __attribute__((aligned(4096)));
};

/* What both see; anonymous shared memory, made before the fork. */
struct tp_shared {
	struct tp_side side[2];
};

/** So many bytes of it have memory, beyond those a store is a signal; 0: all. */
extern size_t tp_memory;
struct tp_shared *tp_shared_new(void);
void tp_shared_free(struct tp_shared *s);

/** This process's end, after the fork; both sides' pids must be known: waits for the other to open too. */
struct rwk_shm_channel *tp_open(struct tp_shared *s, int side);
/** Stops the transfers of the channel with `status` (unless it has failed) and frees it. */
void tp_close(struct rwk_shm_channel *ch, int status);
/** Ends the transfers and prints what FI_ROPEWALK_STATS would. */
void tp_tell(struct rwk_shm_channel *ch, unsigned rank);
/** Polls records and moves transfers; a peer that broke the protocol gets its channel stopped with -EPROTO. */
int tp_progress(struct rwk_shm_channel *ch);
const char *tp_protocol_error(struct rwk_shm_channel *ch); /* NULL if there was none */
struct rwk_shm_transfer_counts *tp_counts(struct rwk_shm_channel *ch);
/** Are transfers under way? */
bool tp_busy(const struct rwk_shm_channel *ch);
/** Only this method from now on (enum rwk_shm_method), on this side; -1: measured choice among all. */
void tp_force(struct rwk_shm_channel *ch, int method);
/** What is posted from now on is behind others (rwk_op.behind), or not. */
void tp_behind(struct rwk_shm_channel *ch, bool behind);

/**
 * Progress until the word of the other side is at least `value`, or the peer is dead, or ten seconds have gone: false.
 */
bool tp_wait(struct rwk_shm_channel *ch, unsigned word, uint64_t value);
/** The same without making progress; twenty seconds. */
bool tp_wait_deaf(struct rwk_shm_channel *ch, unsigned word, uint64_t value);
void tp_say(struct rwk_shm_channel *ch, unsigned word, uint64_t value);
uint64_t tp_heard(struct rwk_shm_channel *ch, unsigned word);
struct tp_side *tp_side(struct rwk_shm_channel *ch, bool mine);

/** An op with its outcome. status is 1 until it is done. */
struct tp_op {
	struct rwk_op op;
	int status;
};
/** Reads through `key` into iov; 0 or post's error; a read finished at once has status 0. */
int tp_read(struct rwk_shm_channel *ch, struct tp_op *o, const struct rwk_rkey *key, uint64_t offset,
	const struct iovec *iov, uint32_t count, size_t length);
/** The same for a write. */
int tp_write(struct rwk_shm_channel *ch, struct tp_op *o, const struct rwk_rkey *key, uint64_t offset,
	const struct iovec *iov, uint32_t count, size_t length);
/** Progress until it is done; its status, or 1 after `ms` milliseconds. */
int tp_finish(struct rwk_shm_channel *ch, struct tp_op *o, unsigned ms);

#endif
