/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain of SRC (transports/shared_rc: step.c, inbox.c, answer.c, members.c): what becomes of the packets of one
 * initiator when several members take them and any of them may die at any step.
 *
 * The network holds packets and gives them to whichever member asks, in any order. A member locks the target if nobody
 * has it (else the packet is lost), works on a copy of its state, puts what is for a sibling into its inbox, by one
 * store each, makes the copy the true state, by one store, unlocks, rings for sleepers, drains its own inbox up to
 * where it ended when it took a piece of its own, and takes that one. Some time later it locks the target again, reads
 * where it stands, and acknowledges. A member takes a piece if its number is beyond the last. Locks of the dead are
 * released. A member may begin to compute for ever: it does nothing then, and owes what it owes. The initiator sends
 * the oldest packet again when nothing moves, and EXTRA times when it likes.
 *
 * Claims: no piece is given to a member twice, none out of order; an acknowledgement covers what its owner has, or
 * finds in its inbox, or what is nobody's because the owner is dead; in the end each living member has all that is its
 * own; something comes of each packet that is sent again, unless somebody has died or stopped serving; only a death
 * leaves anybody asleep beside an inbox with something in it, and no longer than until its next look by the clock.
 *
 * Not here: barriers (wake.pml; one that is missing is the same as looking before saying), several targets in one place
 * after each other, messages of several packets.
 *
 * Each of these must be found wrong: -DNO_NUMBER, where a member takes whatever it is given; -DCOMMIT_FIRST, where the
 * state moves on before the inbox is written; -DACK_FIRST, where an acknowledgement is made of the copy, and sent
 * before that is true; -DPLAIN_LOCK, where the dead keep their locks; -DOWN_FIRST, where a member takes its own piece
 * without a look into its inbox; -DNO_LOCK, where members take steps at once; -DNO_BELL; -DRING_EARLY, where a member
 * looks who sleeps, then puts something in; -DLOOK_EARLY, where one looks into its inbox, then says that it sleeps; and
 * -DNO_CLOCK, where a sleeper waits for the bell of one of two siblings who has died, while the other acknowledges.
 */
#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef PACKETS
#define PACKETS 3
#endif
#ifndef KILLS
#define KILLS 1 /* members that die, at most */
#endif
#ifndef SLOWS
#define SLOWS 0 /* members that compute for ever */
#endif
#ifndef EXTRA
#define EXTRA 0 /* packets sent again before there is need */
#endif
#define SLOTS   2 /* records in an inbox */
#define NOBODY  MEMBERS
#define NOTHING PACKETS

#define TO(p)  ((p) % 2) /* whose a packet is; a third member only helps */
#define BIT(p) (1 << (p))

/* The network, and what the initiator knows. */
byte in_net[PACKETS] = 1; /* copies of each packet */
byte acked;               /* packets that have arrived, in order */
byte rounds, extra;

/* The segment. What the target would be after a step is nobody's but the member's that makes it. */
byte expected; /* packets taken, */
byte kept;     /* and early ones, a bit each: the true state */
byte lock = NOBODY;
byte inbox_lock[MEMBERS] = NOBODY;
chan inbox[MEMBERS] = [SLOTS] of { byte };
bool seat[MEMBERS] = true;
bool asleep[MEMBERS];

/* The members, as they are seen from outside. */
byte got[MEMBERS]; /* pieces that they were given, a bit each */
byte own[MEMBERS] = NOTHING;
bool bell[MEMBERS], works[MEMBERS], owes[MEMBERS], waits[MEMBERS];
bool killed[MEMBERS], computes[MEMBERS];
byte kills, slows;

#define MOVES      (in_net[0] || in_net[1] || in_net[PACKETS - 1])
#define SERVES(m)  (!killed[m] && !computes[m])
#define IS_SAFE(p) (got[TO(p)] & BIT(p) || inbox[TO(p)] ?? [eval(p)] || own[TO(p)] == (p) || killed[TO(p)])
#define IS_ALL(m)  (got[m] == ((m) -> 2 : (PACKETS == 3 -> 5 : 1)))
#define HAS_ALL(m) (!SERVES(m) || IS_ALL(m))
#ifdef NO_CLOCK
#define RESTS(m) (!works[m] && !owes[m] && (empty(inbox[m]) || (waits[m] && !bell[m])))
#else
#define RESTS(m) (!works[m] && !owes[m] && empty(inbox[m]))
#endif
#define IS_QUIET(m) ((killed[m] && !seat[m]) || computes[m] || (!killed[m] && RESTS(m)))
#if MEMBERS == 2
#define ALL_QUIET   (!MOVES && IS_QUIET(0) && IS_QUIET(1))
#define SERVES_ANY  (SERVES(0) || SERVES(1))
#define OTHERS_REST (!works[1 - me])
#else
#define ALL_QUIET   (!MOVES && IS_QUIET(0) && IS_QUIET(1) && IS_QUIET(2))
#define SERVES_ANY  (SERVES(0) || SERVES(1) || SERVES(2))
#define OTHERS_REST (!works[(me + 1) % MEMBERS] && !works[(me + 2) % MEMBERS])
#endif

/* A piece to this member, unless its number is not beyond the last. */
inline hand_over(p)
{
	if
#ifndef NO_NUMBER
	:: got[me] >= BIT(p)
#endif
	:: else ->
		assert(got[me] < BIT(p)); /* neither twice nor out of order */
		got[me] = got[me] | BIT(p)
	fi
}

inline take_one()
{
	atomic { inbox[me] ? piece -> hand_over(piece); piece = 0 }
}

/* A piece into its owner's inbox: ok is set. */
inline put(p)
{
	if
	:: atomic { inbox_lock[TO(p)] == NOBODY ->
			inbox_lock[TO(p)] = me;
#ifdef RING_EARLY
			told = (asleep[TO(p)] -> BIT(TO(p)) : told)
#endif
		};
		atomic {
			ok = (!seat[TO(p)] || nfull(inbox[TO(p)]));
			if
			:: seat[TO(p)] && ok ->
				inbox[TO(p)] ! p;
#ifndef RING_EARLY
				told = told | BIT(TO(p))
#endif
			:: else
			fi
		};
		inbox_lock[TO(p)] = NOBODY
	:: atomic { inbox_lock[TO(p)] != NOBODY -> ok = false }
	fi
}

/* What the machine does with the packet that it waits for, and with those kept behind it. */
inline deliver(p)
{
#ifdef COMMIT_FIRST
	atomic { becomes++; expected = becomes };
#endif
	if
	:: atomic { !seat[TO(p)] || TO(p) == me ->
		ok = true;
		if
		:: seat[TO(p)] -> own[me] = p; behind = len(inbox[me])
		:: else
		fi }
	:: seat[TO(p)] && TO(p) != me -> put(p)
	fi;
#ifndef COMMIT_FIRST
	atomic { becomes = (ok -> becomes + 1 : becomes) };
#endif
	do
	:: atomic { ok && keeps & BIT(becomes) -> keeps = keeps & ~BIT(becomes) };
		if
		:: !seat[TO(becomes)]
		:: else -> put(becomes)
		fi;
		atomic { becomes = (ok -> becomes + 1 : becomes) }
	:: atomic { !ok || !(keeps & BIT(becomes)) -> break }
	od
}

inline ring_for(m)
{
	if
	:: told & BIT(m) && asleep[m] -> bell[m] = true
	:: else
	fi
}

/* Covers packets below `upto`. */
inline acknowledge(upto)
{
	assert(upto < 1 || IS_SAFE(0));
	assert(upto < 2 || IS_SAFE(1));
	assert(upto < 3 || IS_SAFE(PACKETS - 1));
	acked = (upto > acked -> upto : acked)
}

/* The target is locked. */
inline step(p)
{
	atomic {
		becomes = expected;
		keeps = kept | (p > expected -> BIT(p) : 0)
	};
	if
	:: p == becomes -> deliver(p)
	:: else
	fi;
#ifdef ACK_FIRST
	atomic { acknowledge(becomes) };
#endif
	atomic { expected = becomes; kept = keeps; becomes = 0; keeps = 0 };
	atomic { lock = NOBODY; owes[me] = true };
#ifndef NO_BELL
	atomic { ring_for(0); ring_for(1) };
#endif
	if
	:: own[me] != NOTHING ->
#ifndef OWN_FIRST
		do
		:: behind -> take_one(); behind--
		:: else -> break
		od;
#endif
		atomic { hand_over(own[me]); own[me] = NOTHING; behind = 0 }
	:: else
	fi
}

inline pump()
{
	if
	:: atomic { lock == NOBODY -> lock = me };
		atomic { p = expected; lock = NOBODY };
		atomic { acknowledge(p); owes[me] = false; p = 0 }
	:: lock != NOBODY
	fi
}

/* Until a bell, a packet, or the clock. */
inline sleep()
{
#ifdef LOOK_EARLY
	waits[me] = empty(inbox[me]);
	asleep[me] = true;
#else
	asleep[me] = true;
	waits[me] = empty(inbox[me]);
#endif
	if
	:: waits[me] ->
end_asleep:
		if
		:: bell[me]
		:: MOVES
#ifndef NO_CLOCK
		:: nempty(inbox[me]) && !bell[me] && OTHERS_REST -> assert(kills)
#endif
		fi
	:: else
	fi;
	atomic { waits[me] = false; bell[me] = false; asleep[me] = false }
}

proctype member(byte me)
{
	byte p, piece, becomes, keeps, told, behind;
	bool ok;

	{
end:
		do
		:: atomic { MOVES ->
				if
				:: in_net[0] -> p = 0
				:: in_net[1] -> p = 1
				:: in_net[PACKETS - 1] -> p = PACKETS - 1
				fi;
				in_net[p]--;
				works[me] = true };
			if
#ifdef NO_LOCK
			:: step(p)
#else
			:: atomic { lock == NOBODY -> lock = me }; step(p)
			:: lock != NOBODY /* locked out */
#endif
			fi;
			atomic { works[me] = false; p = 0; ok = false; told = 0 }
		:: atomic { owes[me] -> works[me] = true }; pump(); works[me] = false
		:: take_one()
#ifndef NO_SLEEP
		:: !MOVES && !owes[me] && empty(inbox[me]) -> sleep()
#endif
		:: atomic { slows < SLOWS -> slows++; computes[me] = true; break }
		od
	} unless {
		atomic {
			killed[me] ->
			works[me] = false;
			owes[me] = false;
			own[me] = NOTHING;
			p = 0; piece = 0; becomes = 0; keeps = 0; told = 0; behind = 0; ok = false;
#ifndef PLAIN_LOCK
			lock = (lock == me -> NOBODY : lock);
			inbox_lock[0] = (inbox_lock[0] == me -> NOBODY : inbox_lock[0]);
			inbox_lock[1] = (inbox_lock[1] == me -> NOBODY : inbox_lock[1])
#endif
		}
	}
}

proctype initiator()
{
	do
	:: atomic { acked == PACKETS || !SERVES_ANY -> break }
	:: atomic { extra < EXTRA && acked < PACKETS -> extra++; in_net[acked]++ }
	:: atomic { ALL_QUIET && acked < PACKETS && SERVES_ANY ->
			if
			:: computes[TO(acked)] && len(inbox[TO(acked)]) == SLOTS -> break
			:: else
			fi;
			rounds++;
			assert(rounds <= PACKETS + KILLS + SLOWS);
			in_net[acked]++ }
	od;
	ALL_QUIET || !SERVES_ANY;
	assert(HAS_ALL(0) && HAS_ALL(1))
}

/* Kills; and says that somebody has died, as any living member does by the clock. */
proctype fate()
{
	byte m;

	do
	:: atomic { kills < KILLS ->
			select(m : 0 .. MEMBERS - 1);
			if
			:: !killed[m] && !computes[m] -> kills++; killed[m] = true
			:: else -> break
			fi };
		(!works[m]);
		seat[m] = false
	:: break
	od
}

init
{
	byte m;

	atomic {
		for (m : 0 .. MEMBERS - 1) {
			run member(m)
		};
		run initiator();
		run fate()
	}
}
