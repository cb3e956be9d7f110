/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts for a test: network namespaces, in each of which this process can be, one at a time. A socket belongs to the
 * host in which it was made. Needs root.
 */
#ifndef UDP_HOSTS_H
#define UDP_HOSTS_H

#define UDP_HOSTS 3

/** Makes the hosts, each with its loopback up; 0, or negative errno: namespaces are not to be had here. Ends in host 0.
 */
int udp_hosts_make(void);
/** From now on this process is in that host. */
void udp_host_enter(int host);
/** Runs a shell command in that host (printf's format); the test fails if it does. */
void udp_host_run(int host, const char *command, ...) __attribute__((format(printf, 2, 3)));
/** A cable: interface `name` of host `from` to interface `far` of host `to`, of that MTU, both up. */
void udp_host_cable(int from, const char *name, int to, const char *far, int mtu);

#endif
