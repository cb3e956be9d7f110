/* SPDX-License-Identifier: BSD-3-Clause */
/* A domain of two members, and one who speaks to them; packets are handed over by hand. */
#ifndef TEST_SHARED_RC_TWO_H
#define TEST_SHARED_RC_TWO_H

#include "shared_rc/internal.h"
#include "shared_rc/traffic.h"

#define PMTU 256u

struct fixture {
	void *memory;
	int fd;
	struct listener listener[MEMBERS];
	struct ear ear[MEMBERS];
	struct speaker speaker;
	uint32_t qpn;
	struct packet queue[256], answer;
	unsigned queued, answers, room; /* room: answers that the link takes */
	int refusal;                    /* what it says to others; -EAGAIN to begin with */
};

extern struct fixture f;
/** Of its segment. */
extern const struct rwk_src_size two_size;

/** For cmocka: two members, one speaker; they are gone with two_close. */
int two_open(void **state);
int two_close(void **state);

/** With initiators that need not be acknowledged at once. */
int two_open_lazy(void **state);

/** With initiators that keep what is for a member whose inbox is half full. */
int two_open_busy(void **state);

#define with_two(test) cmocka_unit_test_setup_teardown(test, two_open, two_close)

/** One member more, or one less. */
void open_listener(unsigned i);
void leave(unsigned i);

/** Opens the speaker of that number, for target f.qpn. */
void open_speaker(unsigned number);

/**
 * Posts until the next message to that member is a Send of that many packets, and posts that. Its packets are queued.
 */
void post(unsigned member, unsigned packets);

/** A queued packet is taken by that member; all that are queued are, and acknowledged. */
void serve(unsigned member, unsigned packet);
void serve_all(unsigned member);

const struct rwk_src_counters *count(unsigned member);

/** The member has heard all that was posted to it, and nothing else. */
void check_heard(unsigned member);

#endif
