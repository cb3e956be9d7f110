/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies in the segment, byte for byte. Everything is in whole cache lines; what different processes write lies in
 * different ones. No pointers but those that the C library keeps in a lock that is held, for its holder alone.
 *
 *   header | members | directory | chains | targets | keys | locks of puzzles | inboxes | puzzles | early packets
 *
 * Where each part begins follows from the sizes in the header. The last three begin on pages; each target's early
 * packets have theirs to themselves. Those, targets, and what
 * belongs to a key have memory only as they are used, which is asked for before the first store (a store where there is
 * none is a signal); all else, where anybody may look at any time, has it from the beginning. A change of any of it
 * needs a new RWK_SRC_LAYOUT, so that different builds on a node refuse each other.
 */
#ifndef RWK_SHARED_RC_LAYOUT_H
#define RWK_SHARED_RC_LAYOUT_H

#include "base/compiler.h"
#include "memory/puzzle.h"
#include "rc/rc.h"
#include "shared_rc/shared_rc.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define RWK_SRC_MAGIC  0x6372736b6c61776full
#define RWK_SRC_LAYOUT 18u
#define RWK_SRC_PAGE   4096u
#define RWK_SRC_GIVEN  65536u /* what is given back is in whole pages also where they are so large */

/** Of a member: who it is, and its inbox without the bytes. */
struct rwk_src_member {
	_Atomic uint32_t srqn;  /* whose seat this is; 0: nobody's. Becomes another only under `lock` */
	_Atomic uint32_t taken; /* how often this seat was taken */
	_Atomic uint32_t pid;
	_Atomic uint32_t asleep;
	_Atomic uint64_t start, pid_space; /* of the process (base/process.h); the PID namespace of pid; 0: unknown */
	struct rwk_link_address bell;      /* written by its owner before it first sleeps */
	_Atomic uint32_t shows_life;       /* its SRQ number: while it lives, the byte of its seat is locked */
	unsigned char space[RWK_CACHE_LINE - 60];

	pthread_mutex_t lock;   /* of the inbox: who puts something in */
	/* An address in its process: who touches the memory of that touches this first; 0: none. */
	_Atomic uint64_t guard;
	_Atomic uint32_t there; /* bytes of the ring, from its begin, that have memory; under `lock` */
	unsigned char space2[RWK_CACHE_LINE - sizeof(pthread_mutex_t) - 12];

	/* Bytes since the seat was first taken. What lies between the two is in the inbox. */
	_Atomic uint64_t tail; /* moved under `lock`, and it alone says that a record is there */
	unsigned char space3[RWK_CACHE_LINE - 8];
	_Atomic uint64_t head; /* moved by the member alone, which has a copy of its own and never reads this one */
	unsigned char space4[RWK_CACHE_LINE - 8];
};
static_assert(sizeof(struct rwk_src_member) == 4 * RWK_CACHE_LINE, "a member is four lines");

/** Of a target what is looked at without its lock. */
struct rwk_src_entry {
	_Atomic uint64_t nonce; /* of its initiator */
	_Atomic uint32_t qpn;   /* 0: none is here. The word that makes and ends a target */
	uint32_t last;          /* the number before this one: the next is to differ */
	_Atomic uint64_t held;  /* the target's number, and below it the SRQ number of its holder; 0: nobody */
	_Atomic uint32_t next;  /* of the same chain: a place and 1; 0: none */
	uint32_t space;
};

/** An initiator, in words that can be read while another is being written. */
#define RWK_SRC_WORDS ((sizeof(struct rwk_src_initiator) + 7) / 8)

/** The responder of one initiator. Two states follow it in memory. */
struct rwk_src_target {
	pthread_mutex_t lock;
	_Atomic uint32_t active; /* 0 or 1: which of the states is true */
	uint32_t has_early;      /* the area for its early packets was used */
	_Atomic uint32_t toucher; /* SRQ number of who is at some member's memory for it, under the lock; 0: nobody */
	uint32_t cut;             /* answers of longer payload go in pieces of so many bytes; 0: whole */
	uint64_t given;           /* packets with lower numbers may have been put into inboxes, taken or not */
	_Atomic uint64_t initiator[RWK_SRC_WORDS];
	uint64_t cut_said; /* when its initiator has said what is in `cut`, by its own clock */
} rwk_aligned;

/** Where a target stands. A responder follows, of so many bytes: */
#define RWK_SRC_RESPONDER (rwk_rc_responder_size() + RWK_RC_BUSY_RESPONDER_SIZE)
struct rwk_src_state {
	uint64_t taken; /* packets that were taken in order, counted on from target to target of the same place */
	uint32_t early; /* packets that are kept */
	uint32_t space;
	uint64_t responder[];
};

/** Keys of a segment, for each of its targets; and in how many places, side by side, each may stand. */
#define RWK_SRC_KEYS_EACH 8u
#define RWK_SRC_KEY_TRIES 16u

#define RWK_SRC_PIECES 8u /* of a region */

/**
 * A region that its owner has published (reach.c). Which target's key it is stands in a word of its own, in an array
 * before all of these: the word that makes and ends it. All in words that can be read while another is being written.
 */
struct rwk_src_region {
	_Atomic uint64_t owner; /* its SRQ number */
	/* Something was taken by that name that could not be carried out: from then on nothing is. 0: nothing was. */
	_Atomic uint64_t refused;
	_Atomic uint64_t count;
	struct {
		_Atomic uint64_t at, length;
	} piece[RWK_SRC_PIECES];
} rwk_aligned;

/** Packets whose pieces come (pieces.c): so many places, each a struct rwk_puzzle in whole lines. */
#define RWK_SRC_PUZZLES 128u
#define RWK_SRC_PUZZLE  ((sizeof(struct rwk_puzzle) + RWK_CACHE_LINE - 1) / RWK_CACHE_LINE * RWK_CACHE_LINE)
struct rwk_src_puzzle_lock {
	pthread_mutex_t lock;
} rwk_aligned;

/** An early packet, but for its bytes. */
struct rwk_src_early {
	struct rwk_wire w;
	uint32_t len;
};

enum rwk_src_kind { RWK_SRC_FILLER, RWK_SRC_SEND, RWK_SRC_WRITE };

/** What stands in front of each record in an inbox. Records begin at multiples of 8, and none wraps. */
struct rwk_src_record_head {
	uint32_t bytes; /* of the record, this included */
	uint8_t kind;   /* enum rwk_src_kind; a filler, up to the end of the ring, is this head alone */
	uint8_t where;  /* RWK_PIECE_* */
	uint16_t space;
};

/** A piece of a Send or of a Write; its bytes follow. */
struct rwk_src_record {
	struct rwk_src_record_head head;
	uint32_t target; /* QPN */
	uint32_t len;
	uint64_t number; /* of the packet, see rwk_src_state.taken */
	uint64_t address;
	uint32_t key, space;
};
static_assert(sizeof(struct rwk_src_record_head) == 8 && sizeof(struct rwk_src_record) == 40, "records are packed");

struct rwk_src_header {
	uint64_t magic;
	uint32_t layout;
	uint32_t sizes[7]; /* of what lies in here: two builds with other structs are other layouts */
	struct rwk_src_size size;
	uint64_t bytes;
	pthread_mutex_t lock;      /* of making targets, and of taking seats */
	_Atomic uint32_t seat;     /* where the search for a free seat begins */
	_Atomic uint32_t directed; /* entries of the directory that have ever been used, */
	_Atomic uint32_t ended;    /* how often one became free, */
	_Atomic uint32_t reused;   /* how often one was used again, */
	_Atomic uint32_t vacant;   /* and where the search for a free one begins */
	_Atomic uint64_t looked;   /* when a member last began to look whose locks have gone */
	_Atomic uint64_t polled;   /* when a member last said that it polls, and who (polling.c); 0: none does */
	unsigned char space[RWK_CACHE_LINE];
	_Atomic uint32_t socket_word; /* looked at before each look at the sockets, seldom written */
};
static_assert(sizeof(struct rwk_src_header) <= RWK_SRC_PAGE, "the header has one page");

/** Where things are: bytes from the start of the segment, and from one to the next. */
struct rwk_src_layout {
	size_t members, directory, chains, targets, key_words, regions, puzzle_locks, inboxes, puzzles, early, bytes;
	size_t target_stride, state_bytes, early_stride;
	uint32_t keys;
};

/** 0; -EINVAL: no such size. */
int rwk_src_layout_of(const struct rwk_src_size *size, struct rwk_src_layout *layout);
/** 0, and the size that it says it has; -EPROTONOSUPPORT: another layout made it. */
int rwk_src_layout_check(const void *memory, struct rwk_src_size *size, struct rwk_src_layout *layout);

#endif
