/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a receiver that goes to sleep is woken (transports/shm/wake.c), on a machine whose stores wait in a buffer
 * (TSO: x86-64; what is weaker has release and acquire in the same places, and a barrier behind the OR, which waits for
 * the stores before it here).
 *
 * The sender publishes a line, then looks at `attention`; if it says BELL it sets the bell by an atomic OR and looks
 * at `asleep`; if that is set it exchanges it for 0, and sends a datagram if it was the one to do so. The receiver
 * polls; now and then it arms: asleep, attention, a barrier on behalf of both, one more look at everything; then it
 * waits for the datagram.
 *
 * Claims: every line is delivered once and in order; there is no end state in which the receiver waits for a datagram
 * that will not come (an invalid end state for spin). -DNO_BARRIER leaves out the barrier, -DNO_FENCE the sender's
 * own one in a world where the barrier on behalf of others is denied (-DFENCE): both must be found wrong, else the
 * model proves nothing.
 */
#ifndef LINES
#define LINES 3
#endif
#define BUFFER 3

/* Shared memory. */
byte line;      /* number of the last line that is visible */
bool attention; /* BELL */
bool bell;
bool asleep;
byte datagrams;

/*
 * The store buffers, each of one writer. The sender's holds lines; the receiver's holds attention and asleep as it
 * sets them: 2 * what + value.
 */
chan sent = [BUFFER] of { byte };
chan said = [BUFFER] of { byte };
#define ASLEEP    0
#define ATTENTION 2

byte delivered;

inline apply(v) {
	if
	:: v < ATTENTION -> asleep = v - ASLEEP
	:: else -> attention = v - ATTENTION
	fi
}

/* The memory system: takes stores out of the buffers whenever it likes. */
active proctype sender_stores() { byte v; end: do :: atomic { sent?v -> line = v } od }
active proctype receiver_stores() { byte v; end: do :: atomic { said?v -> apply(v) } od }

active proctype sender()
{
	byte n = 1;
	bool was;

	do
	:: n <= LINES ->
		sent!n;
#ifdef FENCE
#ifndef NO_FENCE
		empty(sent);
#endif
#endif
		if
		:: attention ->
			/* An atomic instruction waits for the stores before it. */
			atomic { empty(sent) -> bell = true };
			if
			:: asleep ->
				atomic { was = asleep; asleep = false };
				if
				:: was -> datagrams++
				:: else
				fi
			:: else
			fi
		:: else
		fi;
		n++
	:: else -> break
	od
}

inline poll_ring()
{
	bell = false; /* an exchange, before the ring is looked at */
	do
	:: line > delivered -> delivered++
	:: else -> break
	od
}

active proctype receiver()
{
	do
	:: delivered == LINES -> break
	:: delivered < LINES -> poll_ring()
	:: delivered < LINES ->
		/* arm */
		said!(ASLEEP + 1);
		said!(ATTENTION + 1);
#ifndef NO_BARRIER
		empty(said); /* our own stores */
#ifndef FENCE
		empty(sent); /* the sender's, on its behalf */
#endif
#endif
		if
		:: line > delivered || bell -> skip
		:: else ->
			/* sleeps; woken by a datagram, and by nothing else */
			datagrams > 0
		fi;
		/* progress disarms: an exchange, then the socket is emptied */
		atomic { empty(said) -> asleep = false };
		said!(ATTENTION + 0);
		datagrams = 0;
		poll_ring()
	od;
	assert(delivered == LINES)
}
