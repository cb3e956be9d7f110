/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How objects that are bound to each other come to share a lock while they are in use (bindings/libfabric/group.c,
 * lock.h). The lock words themselves are mutexes here.
 *
 * A call reads where its object's lock is, takes that, looks again, and takes another one as long as it has taken a
 * wrong one; it gives back what the object says then. A bind merges two groups under `control` and both locks: the
 * engines of the one are driven with the other, and its members get the other's lock. A group that nobody is left in is
 * the next object's. Who changes what all look at takes `control` and all locks. The progress thread goes through the
 * groups and tries each lock, without `control`.
 *
 * Claims: one at a time is in a group, and it stays that of the object until he leaves; nobody is in a group that is
 * merged, nor anywhere while all are stopped; the progress thread drives an endpoint under its own lock; nobody waits
 * for ever (an invalid end state for spin). Each of these must be found wrong: -DNO_SECOND_LOOK; -DONE_LOOK, where
 * the lock that is taken then is not looked at; -DNO_LOCK_OF_FROM and -DNO_LOCK_OF_TO, where a merge leaves one out;
 * -DNO_CONTROL, where merges need none; -DSTOP_ALONE, where the one who stops all needs none; -DENGINES_LATER, where a
 * merge gives the locks back before the engines have moved; -DNEW_LOCK, where a group's next use begins with a lock that
 * is open.
 */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef USERS
#define USERS 2
#endif
#define OBJECTS 3 /* open from the start, each in a group of its own; the next one comes and goes */
#define COMER   3
#define GROUPS  4 /* there are never more than objects */

#define BIT(n) (1 << (n))

bool held[GROUPS];
bool control;
byte lock_of[GROUPS];  /* by object: its guard */
byte members[GROUPS];  /* objects of the group, bits; under `control` */
byte engines[GROUPS];  /* endpoints that are driven with it, bits; under its lock */

bool inside[GROUPS];   /* for the assertions: somebody does his work there */

inline lock(g) { atomic { !held[g] -> held[g] = true } }
inline unlock(g) { assert(held[g]); held[g] = false }
inline take_control() { atomic { !control -> control = true } }
inline give_control() { control = false }

inline work_in(g)
{
	assert(!inside[g]);
	inside[g] = true;
	inside[g] = false
}

inline enter(object, taken, now)
{
	taken = lock_of[object];
	lock(taken);
#ifndef NO_SECOND_LOOK
	do
	:: now = lock_of[object];
		if
		:: now == taken -> break
		:: else
		fi;
		unlock(taken);
		lock(now);
		taken = now;
#ifdef ONE_LOOK
		break
#endif
	od;
#endif
	now = 0
}

/* `now` is what the object says, as in the code: it must be what was taken. */
inline leave(object, taken, now)
{
	now = lock_of[object];
	assert(now == taken);
	unlock(now);
	now = 0;
	taken = 0
}

/* All of `from` comes to `to`; members change one by one. */
inline move_engines(to, from)
{
	engines[to] = engines[to] | engines[from];
	engines[from] = 0
}

inline move_members(to, from, i)
{
	i = 0;
	do
	:: i < GROUPS ->
		if
		:: members[from] & BIT(i) -> lock_of[i] = to
		:: else
		fi;
		i++
	:: else -> break
	od;
	members[to] = members[to] | members[from];
	members[from] = 0;
	i = 0
}

inline merge(to, from, i)
{
#ifndef NO_LOCK_OF_TO
	lock(to);
#endif
#ifndef NO_LOCK_OF_FROM
	lock(from);
#endif
	assert(!inside[to] && !inside[from]);
#ifndef ENGINES_LATER
	move_engines(to, from);
#endif
	move_members(to, from, i);
	assert(!inside[to] && !inside[from]);
#ifndef NO_LOCK_OF_FROM
	unlock(from);
#endif
#ifndef NO_LOCK_OF_TO
	unlock(to);
#endif
#ifdef ENGINES_LATER
	move_engines(to, from)
#endif
}

/* The group with more engines stays: either. */
inline tie(a, b, x, y, i)
{
#ifndef NO_CONTROL
	take_control();
#endif
	x = lock_of[a];
	y = lock_of[b];
	if
	:: x == y
	:: x != y -> merge(x, y, i)
	:: x != y -> merge(y, x, i)
	fi;
#ifndef NO_CONTROL
	give_control();
#endif
	x = 0;
	y = 0
}

/* The first that nobody is in. */
inline join(object, g)
{
	take_control();
	g = 0;
	do
	:: members[g] -> g++
	:: else -> break
	od;
#ifdef NEW_LOCK
	held[g] = false;
#endif
	members[g] = BIT(object);
	lock_of[object] = g;
	give_control();
	g = 0
}

inline part(object)
{
	take_control();
	members[lock_of[object]] = members[lock_of[object]] & ~BIT(object);
	give_control()
}

/* A thread of the program that uses objects. */
proctype user()
{
	byte round, object, taken, now;

	do
	:: round < ROUNDS ->
		round++;
		select(object : 0 .. OBJECTS - 1);
		enter(object, taken, now);
		work_in(lock_of[object]);
		leave(object, taken, now)
	:: else -> break
	od
}

/* One that binds two of them, in this order or that. */
proctype binder(byte a, b)
{
	byte x, y, i;

	tie(a, b, x, y, i)
}

/* One that opens an endpoint, binds it to what there is, uses it, and closes it: its first and its last group may be
 * the next one's. */
proctype comer()
{
	byte g, x, y, i, taken, now;

	join(COMER, g);
	enter(COMER, taken, now);
	engines[lock_of[COMER]] = engines[lock_of[COMER]] | BIT(COMER);
	leave(COMER, taken, now);
	tie(COMER, 0, x, y, i);
	enter(COMER, taken, now);
	work_in(lock_of[COMER]);
	engines[lock_of[COMER]] = engines[lock_of[COMER]] & ~BIT(COMER);
	leave(COMER, taken, now);
	part(COMER);
	join(COMER, g);
	enter(COMER, taken, now);
	work_in(lock_of[COMER]);
	leave(COMER, taken, now);
	part(COMER)
}

proctype stopper()
{
	byte g;

#ifndef STOP_ALONE
	take_control();
#endif
	do
	:: g < GROUPS -> lock(g); g++
	:: else -> break
	od;
	assert(!inside[0] && !inside[1] && !inside[2] && !inside[3]);
	do
	:: g > 0 -> g--; unlock(g)
	:: else -> break
	od;
#ifndef STOP_ALONE
	give_control()
#endif
}

proctype progress()
{
	byte g, object;

	do
	:: g < GROUPS ->
		if
		:: atomic { !held[g] -> held[g] = true };
			if
			:: engines[g] ->
				select(object : 0 .. COMER);
				assert(!(engines[g] & BIT(object)) || lock_of[object] == g);
				work_in(g)
			:: else
			fi;
			unlock(g)
		:: held[g] /* the program has it: on to the next */
		fi;
		g++
	:: else -> break
	od
}

init {
	byte i;

	atomic {
		do
		:: i < OBJECTS ->
			lock_of[i] = i;
			members[i] = BIT(i);
			engines[i] = BIT(i);
			i++
		:: else -> break
		od;
		do
		:: i > OBJECTS - USERS -> run user(); i--
		:: else -> break
		od;
		run binder(0, 1);
#ifdef BINDERS
		run binder(1, 0);
		run binder(2, 1);
#endif
#ifdef COMES
		run comer();
#endif
#ifdef STOPS
		run stopper();
#endif
#ifdef PROGRESS
		run progress();
#endif
		i = 0
	}
}
