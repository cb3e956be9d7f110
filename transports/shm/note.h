/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datagrams of the handshake and the sockets that they travel by. What they mean is in attach.c.
 */
#ifndef RWK_SHM_NOTE_H
#define RWK_SHM_NOTE_H

#include "shm/channel.h"

#include <sys/socket.h>

enum rwk_shm_note_type { RWK_SHM_HELLO = 1, RWK_SHM_OFFER, RWK_SHM_ACCEPT, RWK_SHM_REFUSE };

#define RWK_SHM_NOTE_MAGIC 0x4b57u

/** A datagram of the handshake. Its first 56 bytes mean the same in every version. */
struct rwk_shm_note {
	uint16_t magic;
	uint8_t layout;
	uint8_t type;
	int32_t reason; /* of a REFUSE: errno, negative */
	struct rwk_address from;
	uint64_t to;        /* nonce_port expected of the receiver; nonce 0 if not known yet */
	uint32_t contact;   /* the sender's number for this channel */
	uint32_t to_contact; /* the receiver's, 0 if not known yet */
	uint32_t bell;      /* what the receiver shall ring in the sender's inbox */
	uint32_t barrier;   /* 1: the sender has joined rwk_barrier_everywhere */
	uint64_t start;     /* of the sender's process, ticks, 0: not known */
};
_Static_assert(offsetof(struct rwk_shm_note, to) == 48 && sizeof(struct rwk_shm_note) == 80, "the note's layout");

/** What the kernel says about a datagram's sender. */
struct rwk_shm_sender {
	pid_t pid; /* 0: not told, or not to be seen from here */
	uid_t uid;
	uint16_t number; /* of the socket it came from; 0: not one of ours */
	int fd[2], fds;  /* descriptors that came along; closed by who has received the note */
};

/** An unbound socket that tells who sends; negative errno. */
int rwk_shm_note_socket(void);
/** Binds it to the name of that port number, 0: a free one from 32768 on, which is set. 0; -EADDRINUSE. */
int rwk_shm_note_bind(int sock, uint16_t *number);
/** Sends a note with at most two descriptors: 0, or negative errno: -ECONNREFUSED nobody is there, -EAGAIN its queue is
 * full. */
int rwk_shm_note_send(int sock, uint16_t number, const struct rwk_shm_note *note, const int *fds, unsigned count);
/**
 * A datagram socket for nothing but what follows: the caller's, who closes it. It sees `own`, the caller's port number:
 * one that is made in another network namespace, into which this process may have gone, does not, and would find nobody
 * anywhere. -1: none to be had.
 */
int rwk_shm_note_spare(uint16_t own);
/**
 * A socket that has the full name of that port, which no later port of the same number has, and is for nothing else;
 * negative errno.
 */
int rwk_shm_note_name(uint64_t nonce_port);
/**
 * Is that port there? With a nonce that one and no other, else whoever has the number. By a spare socket; nothing is
 * sent. 0; -ECONNREFUSED: nobody; another errno: no answer.
 */
int rwk_shm_note_look(int sock, uint64_t nonce_port);
/** The same by a spare socket made for it. 0: somebody is there, or it cannot be told; -ECONNREFUSED. */
int rwk_shm_note_probe(uint16_t own, uint64_t nonce_port);
/** Does anything that this socket has sent lie where it went to, not read yet? */
bool rwk_shm_note_lies_unread(int sock);
/**
 * Sends one byte, which means nothing but that the receiver's socket becomes readable, by the socket of port number
 * `own`. True: it is, or nobody is there; false: this socket cannot send now, since too much that it has sent lies
 * unread, and a spare one is not to be had.
 */
bool rwk_shm_note_wake(int sock, uint16_t own, uint16_t number);
/** Receives a datagram: its length, of which at most a note's is stored; negative errno: -EAGAIN there is none. */
ssize_t rwk_shm_note_receive(int sock, struct rwk_shm_note *note, struct rwk_shm_sender *from);

static inline uint64_t rwk_shm_nonce(uint64_t nonce_port)
{
	return nonce_port >> 16;
}

#endif
