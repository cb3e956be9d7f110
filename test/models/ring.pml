/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring (transports/shm/ring.c): stamps, credit published each quarter, growth at a wrap. Stores of one side
 * become visible in order, so a line and its stamp are one step; what matters here is which slot is written and read
 * when.
 *
 * Claims: the reader gets every number once and in order; no slot is overwritten that the reader has not consumed;
 * writer and reader never wait for each other (an invalid end state for spin). Stamps come again after STAMPS lines,
 * which is more than the largest ring.
 *
 * -DEARLY_GROWTH: the writer counts with the new size at once instead of from the wrap; -DNO_CREDIT: the writer does
 * not look; -DLATE_PUBLISH: the reader publishes once a ring only: each must be found wrong.
 */
#define FIRST  4 /* slots to begin with */
#define MOST   8
#define LINES  22
#define STAMPS 16

byte slot[MOST];   /* stamp + 1 of what is in it, 0: never written */
byte number[MOST]; /* the message */
bool grow[MOST];   /* it is a record that announces growth */
bool busy[MOST];   /* written and not yet consumed: only for the assertion */
byte consumed;     /* published by the reader: lines, modulo STAMPS */

active proctype writer()
{
	byte next, lines = FIRST, lines_next = FIRST, stamp, message, in_flight;

	do
	:: message < LINES ->
		/* look */
		if
		:: next == lines ->
			if
			:: lines_next == lines -> next = 0
			:: else -> lines = lines_next
			fi
		:: else
		fi;
#ifndef NO_CREDIT
		in_flight = (stamp + STAMPS - consumed) % STAMPS;
		if
		:: in_flight < lines -> skip
		:: else -> (consumed + lines) % STAMPS != stamp; in_flight = (stamp + STAMPS - consumed) % STAMPS
		fi;
#endif
		atomic {
			assert(!busy[next]);
			busy[next] = true;
			if
			:: lines == lines_next && lines < MOST ->
				grow[next] = true;
				lines_next = lines * 2;
#ifdef EARLY_GROWTH
				lines = lines_next;
#endif
			:: true ->
				grow[next] = false;
				message++;
				number[next] = message
			fi;
			slot[next] = stamp + 1
		};
		stamp = (stamp + 1) % STAMPS;
		next++
	:: else -> break
	od
}

active proctype reader()
{
	byte next, lines = FIRST, lines_next = FIRST, stamp, got, due = FIRST / 4;

	do
	:: got < LINES ->
		slot[next] == stamp + 1;
		atomic {
			if
			:: grow[next] -> lines_next = lines * 2
			:: else ->
				got++;
				assert(number[next] == got)
			fi;
			busy[next] = false
		};
		stamp = (stamp + 1) % STAMPS;
		next++;
		due--;
		if
		:: next == lines ->
			if
			:: lines_next == lines -> next = 0
			:: else -> lines = lines_next
			fi
		:: else
		fi;
		if
		:: due == 0 ->
#ifdef LATE_PUBLISH
			due = lines + 1;
#else
			due = lines / 4;
#endif
			consumed = stamp
		:: else
		fi
	:: else -> break
	od
}
