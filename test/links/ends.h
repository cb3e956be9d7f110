/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports on one simulated network, of the simulated service or of the packet service (RC, or UC as on a stream), for
 * tests of the service. The same test runs over all where it can: ENDS_EACH. And ports on real sockets, of this host's
 * loopback, in one process or several: there time passes by itself (ends_wait).
 *
 *   end    a port and what its client was told
 *   side   one end's view of one peer
 *
 * A side's messages have the numbers 0, 1, ...; length, envelope and bytes follow from the number, so that the other
 * side checks by itself that each comes once, in order and whole.
 *
 * What an upcall must not be, and what may not come any more once `failed` was called, is asserted in the upcalls.
 */
#ifndef RWK_TEST_LINKS_ENDS_H
#define RWK_TEST_LINKS_ENDS_H

#include "rwk_test.h"

#include "links/sim/service.h"
#include "packet/sim_packet.h"

#define ENDS   12
#define LENGTH 262144 /* of the longest message */

#define ENDS_KEY "the key of the ends' job"

struct side; /* one end's view of one peer */

struct end {
	struct rwk_port *port;
	struct rwk_address address;
	unsigned number;
	struct side *sides[ENDS];
	bool in_progress;
	int refuse; /* what connected returns */
	unsigned connects, by_stream;
};

struct side {
	struct rwk_place place;
	struct iovec iov;
	uint8_t buf[LENGTH];
	struct end *end;
	unsigned peer;
	struct rwk_channel *ch;
	uint64_t sent, received; /* numbers of messages */
	unsigned failed, ended_badly, ops;
	int error;
	bool in_place;
	struct rwk_envelope env;
	size_t len;
};

/** What carries the ends that are opened next: ends_use sets it to a test's state. */
extern const struct rwk_transport *ends_transport;
/** The longest message of ends_length; set to 4096 by ends_use. */
extern size_t ends_longest;
/** Lengths to take in turn instead, set to none by ends_use. */
extern const size_t *ends_lengths;
extern size_t ends_lengths_count;
/** Of the ends that are added next: their machine, its processors (rwk_port_attr) and their node; 0 by ends_use. */
extern uint32_t ends_machine, ends_processors, ends_node;
/** Who may connect that is none of the ends; NULL: nobody. */
extern struct side *ends_guest;
extern struct rwk_sim *ends_net;
extern struct end *ends[ENDS];
/** Times that a message of several pieces began at an end while another was in place there. */
extern unsigned ends_interleaved;
extern const struct rwk_client ends_client;
/** A path that loses, doubles, corrupts and reorders. */
extern const struct rwk_sim_path ends_lossy;

/** A test's set-up: its state says over what it runs. */
int ends_use(void **state);
/** Is it the packet service (RC or UC)? */
bool ends_packets(void);

/** A test's entries in a list, each over another service. */
#define ENDS_ON(test, name, transport)                                                                                 \
	{                                                                                                              \
#test ", " name, test, ends_use, NULL, (void *)&(transport)                                            \
	}
#define ENDS_SIM(test)  ENDS_ON(test, "simulated", rwk_sim_transport)
#define ENDS_RC(test)   ENDS_ON(test, "RC", sim_packet_transport)
#define ENDS_UC(test)   ENDS_ON(test, "UC", sim_stream_transport)
#define ENDS_NET(test)  ENDS_ON(test, "network", rwk_network_transport)
#define ENDS_EACH(test) ENDS_SIM(test), ENDS_RC(test), ENDS_UC(test)

/**
 * A network with `count` ends; attr and how NULL: the defaults. Over UC the paths lose, double, corrupt and reorder
 * nothing, whatever attr says: a stream does not.
 */
void ends_open(const struct rwk_sim_attr *attr, const struct rwk_sim_service *how, unsigned count);
/** The defaults, two ends, 0 connected to 1. */
void ends_open_two(void);
/** One more end, at any port or that one; or one of another process, which has only an address here. */
struct end *ends_add(void);
struct end *ends_add_at(uint16_t port);
/** Another process in the place of an end that was closed; what its peers know of that one is forgotten. */
void ends_open_again(unsigned i);
struct end *ends_add_foreign(const struct rwk_address *address);
/** Goes on, on real sockets, until *what is `value` or more; fails the test after 20 seconds. */
void ends_wait(const volatile uint64_t *what, uint64_t value);
void ends_wait_failed(const struct side *s);
/** Closes the ports that are still open, and the network. */
void ends_close(void);
void ends_close_port(unsigned i);

struct side *ends_side(unsigned from, unsigned to);
void ends_connect(unsigned from, unsigned to);

/** One progress of that end. */
int ends_progress(struct end *e);
/** Of all of them, until there is nothing to do at this time; was there anything? */
bool ends_progress_all(void);
/** The same where real time is waited for: if there is nothing, others have the processor for a moment. */
void ends_turn(void);
/** Lets time pass until nothing happens any more. */
void ends_settle(void);

/** The next message by send, or by post; what that returned. The buffer is scribbled over once it is ours again. */
int ends_send(struct side *s);
int ends_post(struct side *s);

/** What the messages are made of: the length of number n, the bytes and the envelope of the side's next. */
size_t ends_length(unsigned from, unsigned to, uint64_t n);
void ends_fill(struct side *s, uint8_t *buf, size_t len);
struct rwk_envelope ends_envelope(const struct side *s);

/** An op of a test's own: counts how often it is done. */
struct ends_op {
	struct rwk_op op;
	struct iovec iov;
	unsigned done;
	int status;
};

void ends_make_op(struct ends_op *s, enum rwk_op_type type, void *buf, size_t len);

#endif
