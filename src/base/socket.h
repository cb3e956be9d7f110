/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP sockets and their addresses. IPs are 16 bytes: IPv6, or IPv4 mapped into it (::ffff:1.2.3.4), which goes by IPv4;
 * ports are in the host's byte order. Nothing blocks; descriptors are non-blocking, closed by exec, and the caller's.
 */
#ifndef RWK_BASE_SOCKET_H
#define RWK_BASE_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** Room for an address of either family. */
union rwk_socket_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/** Is it IPv4 that is mapped? */
bool rwk_ip_is_v4(const uint8_t ip[16]);

/** Is it zero: any of this host's, of both families? */
bool rwk_ip_is_any(const uint8_t ip[16]);

/** The address as the kernel wants it; returns its length. */
socklen_t rwk_socket_address(union rwk_socket_address *a, const uint8_t ip[16], uint16_t port);

/** And back: false, nothing being set, if it is of another family. */
bool rwk_socket_address_parts(const struct sockaddr *a, uint8_t ip[16], uint16_t *port);

/** Sets an option that is an int: 0 or a negative errno. */
int rwk_socket_set(int fd, int level, int option, int value);

/**
 * Has the kernel ask the peer's, after `idle` seconds of silence, each `interval` seconds; `count` without an answer
 * end it. A stopped process's kernel answers.
 */
void rwk_socket_keep_alive(int fd, int idle, int interval, int count);

/**
 * A socket that listens at that address (any: at both families by one socket, or by IPv4 alone where there is no IPv6)
 * and port (0: the kernel's choice): its descriptor, and the port in *got; -EADDRINUSE, -EADDRNOTAVAIL and the like.
 */
int rwk_socket_listen(const uint8_t ip[16], uint16_t port, uint16_t *got);

/**
 * A socket that holds an address and port (0: the kernel's choice) for who of this process listens or connects there
 * later: its descriptor, and the port in *got; -EADDRINUSE, -EADDRNOTAVAIL and the like.
 */
int rwk_socket_reserve(const uint8_t ip[16], uint16_t port, uint16_t *got);

/** One that has connected: its descriptor, and where it came from; -EAGAIN: there is none. Sends without delay. */
int rwk_socket_accept(int listener, uint8_t ip[16], uint16_t *port);

/**
 * A socket that connects from `source` (NULL: by the route) and `source_port` (0: the kernel's choice), or has done so:
 * its descriptor; else what the kernel said. Sends without delay.
 */
int rwk_socket_connect(const uint8_t source[16], uint16_t source_port, const uint8_t ip[16], uint16_t port);

/**
 * Whether it has connected: 0; -EAGAIN: not yet; else why not. -ECONNREFUSED, too, if it has connected to itself, which
 * TCP allows if its own port happens to be the one that nobody listens at any more.
 */
int rwk_socket_connected(int fd);

/** Where a connected TCP socket leads to: 0; -EINVAL: no TCP socket; -ENOTCONN: it is not connected. */
int rwk_socket_peer(int fd, uint8_t ip[16], uint16_t *port);

/** Has the peer's kernel all that was written to a TCP socket, and its end, if it was shut down? */
bool rwk_socket_all_sent(int fd);

/** The address of this host's that a connected TCP socket's peer knows. 0 or a negative errno. */
int rwk_socket_own_ip(int fd, uint8_t ip[16]);

#endif
