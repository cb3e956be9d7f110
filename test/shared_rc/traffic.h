/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic towards a domain that can be checked piece by piece: speakers, who are initiators on other nodes, each with
 * the packet machine's requester; ears, which are what a member hears of them. What the n-th message of a speaker to a
 * member is (a Send or a Write, its length, its bytes) follows from the three numbers, so that an ear knows what must
 * come next and what must not.
 */
#ifndef TEST_SHARED_RC_TRAFFIC_H
#define TEST_SHARED_RC_TRAFFIC_H

#include "rc/rc.h"
#include "shared_rc/shared_rc.h"

#define SPEAKERS 8u
#define MEMBERS  8u

/* Speakers' messages: up to so many bytes. */
#define LONGEST 65536u

struct packet {
	uint32_t speaker, len, cut;
	struct rwk_wire w;
	uint8_t bytes[RWK_WIRE_OWN_MAX];
};

/* What a member has heard; it may lie in shared memory, and outlive the member. */
struct ear {
	uint32_t member;
	uint32_t heard[SPEAKERS]; /* whole messages */
	uint32_t at[SPEAKERS];    /* bytes of the one under way */
	uint32_t wrong;           /* pieces that are not what must come next */
	char why[200];            /* of the first of them */
};

/* Bytes of the n-th message of that speaker to that member; is it a Write? */
uint32_t message_length(unsigned speaker, unsigned member, uint32_t n, bool *write);

struct speaker {
	unsigned number, members;
	struct rwk_rc *qp;
	void *responder;          /* of no use: it sends alone */
	uint32_t qpn;             /* of its target */
	uint32_t srqn[MEMBERS];   /* 0: nothing is sent to it */
	uint32_t posted[MEMBERS]; /* messages */
	unsigned under_way, most; /* messages */
	uint32_t seed;
	int failed;
	/* Takes a packet on its way to the domain; 0 or -EAGAIN. */
	int (*emit)(void *user, const struct packet *p);
	void *user;
};

/* What all speakers have agreed with the domain (enum rwk_rc_own); SELECTIVE and ENDLESS to begin with. */
extern uint16_t speakers_own;

/* Opens a speaker whose target has that QPN; its packets have `pmtu` bytes. */
void speaker_open(struct speaker *s, unsigned number, uint32_t qpn, uint16_t pmtu);
/* What it tells the domain of itself. */
struct rwk_src_initiator speaker_initiator(unsigned number, uint16_t pmtu);
/* Posts messages to members by chance, until `total` were posted in all, and does what is due. */
void speaker_speak(struct speaker *s, uint32_t total, rwk_time now);
/* Posts one message to that member. */
void speaker_post(struct speaker *s, unsigned member);
void speaker_answer(struct speaker *s, const struct packet *p, rwk_time now);
/* All that was posted has been acknowledged. */
bool speaker_idle(const struct speaker *s);
uint32_t speaker_posted(const struct speaker *s);
void speaker_close(struct speaker *s);

/* A view with an ear. */
struct listener {
	struct rwk_src_view *view;
	struct ear *ear;
	/* Takes an acknowledgement on its way to a speaker; 0 or -EAGAIN. */
	int (*emit)(void *user, const struct packet *p);
	void *user;
	unsigned woken; /* siblings, by this view */
	uint32_t last_woken;
};

int listener_open(struct listener *l, void *memory, struct ear *ear);
/* The same beside others who take a seat: one of them may lack a processor just then. */
int listener_join(struct listener *l, void *memory, struct ear *ear);
/* A packet has come for the domain. */
void listener_packet(struct listener *l, const struct packet *p, rwk_time now);

/* Shared memory of that many bytes, zeroed, of a memfd; *fd may be NULL. */
void *shared_memory(size_t bytes, int *fd);
/* A formatted segment. */
void *segment(uint32_t members, uint32_t targets, uint32_t inbox_bytes);

uint32_t chance(uint32_t *seed);

#endif
