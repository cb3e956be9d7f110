/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring (transports/shm/ring.c): stamps, credit published each quarter, growth at a wrap, a second message in a line
 * (the rider: rwk_shm_deliver_rider, and ride in send.c), which its reader looks for in several steps. Stores of one side
 * become visible in order, so a line and its stamp are one step; what matters here is which slot is written and read
 * when.
 *
 * Claims: the reader gets every number once and in order; no slot is overwritten that the reader has not consumed;
 * writer and reader never wait for each other (an invalid end state for spin). Stamps come again after STAMPS lines,
 * which is more than the largest ring.
 *
 * -DRIDERS: with second messages, and a ring that does not grow, or there were too many states.
 * -DEARLY_GROWTH: the writer counts with the new size at once instead of from the wrap; -DNO_CREDIT: the writer does
 * not look; -DLATE_PUBLISH: the reader publishes once a ring only; -DONE_LOOK: the reader of a line that is there does
 * not look once more whether a rider came before it; -DGIVEN_FREE: it publishes a line whose rider may still come: each
 * must be found wrong.
 */
#define FIRST  4 /* slots to begin with */
#ifdef RIDERS
#define MOST   4
#define LINES  14
#define STAMPS 8
#else
#define MOST   8
#define LINES  22
#define STAMPS 16
#endif

byte slot[MOST];   /* stamp + 1 of what is in it, 0: never written */
byte number[MOST]; /* the message */
bool grow[MOST];   /* it is a record that announces growth */
bool half[MOST];   /* a rider may come */
byte rider[MOST];  /* stamp + 1 of the line whose rider has come */
byte second[MOST]; /* the rider's message */
bool busy[MOST];   /* written and not yet consumed: only for the assertion */
byte consumed;     /* published by the reader: lines, modulo STAMPS */

active proctype writer()
{
	byte next, lines = FIRST, lines_next = FIRST, stamp, message, in_flight;
	bool open; /* the line before may still get a rider */

	do
	:: message < LINES && open ->
		atomic {
			assert(busy[next - 1]);
			message++;
			second[next - 1] = message;
			rider[next - 1] = (stamp + STAMPS - 1) % STAMPS + 1;
			open = false
		}
	:: message < LINES ->
		open = false;
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
			half[next] = false;
			rider[next] = 0;
			if
			:: lines == lines_next && lines < MOST ->
				grow[next] = true;
				lines_next = lines * 2;
#ifdef EARLY_GROWTH
				lines = lines_next;
#endif
			:: true ->
				grow[next] = false;
#ifdef RIDERS
				if
				:: open = true
				:: skip
				fi;
#endif
				half[next] = open;
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
	byte before; /* the slot of the line before, whose rider may still come if `open` */
	bool open;

	do
	:: got < LINES && open && rider[before] == (stamp + STAMPS - 1) % STAMPS + 1 ->
rides:
		atomic {
			got++;
			assert(second[before] == got);
			second[before] = 0; /* what has been read is forgotten: fewer states */
			busy[before] = false;
			open = false
		}
	:: got < LINES && slot[next] == stamp + 1 ->
		if
		:: !open -> skip
#ifndef ONE_LOOK
		:: open && rider[before] == (stamp + STAMPS - 1) % STAMPS + 1 -> goto rides
		:: open && rider[before] != (stamp + STAMPS - 1) % STAMPS + 1 ->
#else
		:: open ->
#endif
			busy[before] = false;
			open = false
		fi;
		atomic {
			before = next;
			if
			:: grow[next] -> lines_next = lines * 2
			:: else ->
				got++;
				assert(number[next] == got)
			fi;
			open = half[next];
			busy[next] = open;
			number[next] = 0;
			grow[next] = false;
			half[next] = false
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
#ifdef GIVEN_FREE
			consumed = stamp
#else
			consumed = (stamp + STAMPS - open) % STAMPS
#endif
		:: else
		fi
	:: got >= LINES -> break
	od
}
