/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How memory is given back while a peer may be writing into it (transports/shm/transfer_guard.c, transfer_direct.c), on
 * a machine whose stores wait in a buffer (TSO).
 *
 * The writer sees where the guard page is, announces, has a barrier, looks whether the region is valid, and makes a
 * call of the kernel's that first touches the page and then writes, or one that is made only if the page is still where
 * it was seen, with no stop in between (base/call_if.h); afterwards it withdraws the announcement. It may be
 * stopped before the call or after it, not in the middle, and be continued at any time. The exposer makes the region
 * invalid, has a barrier, and waits until there is no announcement; when that takes too long it takes the page away
 * and makes another one, and from then on a writer seen stopped is enough. One that is not stopped is waited for.
 *
 * Claims: what has been given back is not written. The exposer does not wait for ever for one who is stopped (an
 * invalid end state for spin). Each of these must be found wrong: -DNO_WRITER_BARRIER, -DNO_EXPOSER_BARRIER;
 * -DNO_GUARD, where the page stays; -DLATE_GUARD, where the writer sees where it is after it has announced;
 * -DSTOPPED_BETWEEN, where it can be stopped between the look and the call; -DNO_GUARD_BARRIER, where the exposer has no
 * barrier after it has said where the new page is;
 * -DLOOK_FIRST, where the exposer looks whether the writer is stopped before it takes the page away; -DNO_STOP_SEEN,
 * where stopped writers are waited for.
 */
#ifndef ROUNDS
#define ROUNDS 3
#endif

#ifdef NO_STOP_SEEN
#define SEEN_STOPPED (stopped && false)
#else
#define SEEN_STOPPED stopped
#endif

/* Shared memory, and pages of the exposer's: the one that there is has the number `page`. */
bool announced;
bool valid = true;
byte guard;
byte page;

bool given_back; /* for the assertion */
bool stopped;    /* the writer, as /proc shows it */

/* The store buffers, each of one writer. The exposer's: 0 for `valid`, 1 for a new guard. */
chan said = [2] of { bit }; /* what `announced` becomes */
chan told = [2] of { bit };

active proctype writer_stores() { bit v; end: do :: atomic { said?v -> announced = v } od }

active proctype exposer_stores()
{
	bit v;
end:
	do
	:: atomic {
		told?v ->
		if
		:: v -> guard++
		:: else -> valid = false
		fi
	}
	od
}

/* On its way from or to user space. Whoever has stopped it may continue it, or never do. */
inline perhaps_stopped()
{
	if
	:: true
	:: stopped = true;
		if
		:: stopped = false
		:: goto end_stopped
		fi
	fi
}

active proctype writer()
{
	byte round, seen;
	bool there;

	do
	:: round < ROUNDS ->
		round++;
		seen = guard;
		said!1;
#ifndef NO_WRITER_BARRIER
		empty(said);
#endif
		if
		:: valid ->
			perhaps_stopped();
#ifdef LATE_GUARD
			seen = guard;
#endif
			/* the call: the page, then the memory; or the word, in the call itself */
			if
			:: there = (seen == page)
			:: there = (seen == guard);
#ifdef STOPPED_BETWEEN
				perhaps_stopped()
#endif
			fi;
			if
			:: there -> assert(!given_back)
			:: else
			fi;
			perhaps_stopped()
		:: else
		fi;
		said!0
	:: else -> break
	od;
end_stopped:
	skip
}

inline replace_page()
{
#ifndef NO_GUARD
	told!1; /* published, */
#ifndef NO_GUARD_BARRIER
	empty(told);
#endif
	page++ /* then taken away */
#else
	skip
#endif
}

active proctype exposer()
{
	told!0;
#ifndef NO_EXPOSER_BARRIER
	empty(told);
#endif
	if
	:: !announced
	:: true -> /* it takes long */
#ifdef LOOK_FIRST
		if
		:: !announced
		:: stopped -> replace_page()
		fi
#else
		replace_page();
		if
		:: !announced
		:: SEEN_STOPPED
		fi
#endif
	fi;
	given_back = true
}
