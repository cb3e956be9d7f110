#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams and connections between two hosts.

    traffic.py receive READY       takes datagrams and connections at port 7000 until SIGTERM, then prints how many
                                   datagrams came; makes the file READY when it listens
    traffic.py send HOST COUNT SIZE [SEGMENT]
                                   sends datagrams, not too fast; with SEGMENT each is a burst of SIZE bytes that the
                                   kernel cuts up
    traffic.py connect HOST...     exit status 0 if each accepts a connection within two seconds
"""
import selectors
import signal
import socket
import sys
import time

PORT = 7000
SOL_UDP, UDP_SEGMENT, SO_RCVBUFFORCE = 17, 103, 33


def listening(kind):
    s = socket.socket(socket.AF_INET6, kind)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    # Room for all that comes while we have no processor: every datagram is counted. Hosts are made by root alone.
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    if kind == socket.SOCK_STREAM:  # connections that have just ended hold the port
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("::", PORT))
    s.setblocking(False)
    return s


def receive(ready):
    datagrams, connections = listening(socket.SOCK_DGRAM), listening(socket.SOCK_STREAM)
    connections.listen()
    poll = selectors.DefaultSelector()
    poll.register(datagrams, selectors.EVENT_READ)
    poll.register(connections, selectors.EVENT_READ)
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    open(ready, "w").close()
    count = 0
    while True:
        last = bool(ending)
        there = poll.select(0 if last else 0.1)
        if last and not there:
            break  # what had come before the signal is counted
        for key, _ in there:
            if key.fileobj is connections:
                connections.accept()[0].close()
            else:
                datagrams.recv(65536)
                count += 1
    print(count)


def send(host, count, size, segment=0):
    family, _, _, _, address = socket.getaddrinfo(host, PORT, type=socket.SOCK_DGRAM)[0]
    s = socket.socket(family, socket.SOCK_DGRAM)
    if segment:
        s.setsockopt(SOL_UDP, UDP_SEGMENT, int(segment))
    for i in range(int(count)):
        s.sendto(bytes(int(size)), address)
        if i % 20 == 19:
            time.sleep(0.002)
    time.sleep(0.2)  # so that all of them have arrived when this ends


def connect(*hosts):
    for host in hosts:
        try:
            socket.create_connection((host, PORT), 2).close()
        except OSError as e:
            sys.exit(f"no connection to {host}: {e}")


if __name__ == "__main__":
    {"receive": receive, "send": send, "connect": connect}[sys.argv[1]](*sys.argv[2:])
