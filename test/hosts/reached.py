#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory of a rank that does not run, between two hosts whose processes share their connections (S1-8).

    test/hosts/reached.py FOLDER [MTU]

BUILD is the build tree; `hosts`, in the environment, the virtual hosts, two of which are up. FOLDER is for what the
ranks say. Ranks of test/faults, on both hosts in turn, read and write each other's memory, and compare. One is stopped
for two seconds: those of the other host go on with its memory, which its siblings see to, also when one of these is
killed in the middle. What they find there, and what the stopped one finds when it goes on, is what was written. With MTU, the interfaces of both hosts have become
as narrow as that before, while all ran: what the nodes answer goes in fragments then.

Who is stopped while it does the node's work itself has the lock of a target, and holds up the one whose target it is:
then it runs on, and is stopped at another moment.
"""
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from deaths import Setup  # noqa: E402
from job import Job, Wrong  # noqa: E402

RANKS, STOPPED, KILLED, SECONDS, MORE = 6, 1, 3, 2, 64
TRIES = 5  # to stop it at a moment at which it has no lock


def accesses(worker, peer):
    """How many accesses to that peer the rank has told."""
    told = [int(line.rsplit("=", 1)[1]) for line in worker.lines if line.startswith(f"reached peer={peer} ")]
    return told[-1] if told else 0


def wait_for_accesses(job, workers, peer, more, what, seconds=60):
    """So many more of each."""
    before, end = {w.rank: accesses(w, peer) for w in workers}, time.monotonic() + seconds
    while slow := [w for w in workers if accesses(w, peer) < before[w.rank] + more]:
        if time.monotonic() > end:
            count = accesses(slow[0], peer) - before[slow[0].rank]
            raise Wrong(f"rank {slow[0].rank} has {count} accesses to rank {peer} {what}")
        job.pump(0.05)
    return {w.rank: accesses(w, peer) - before[w.rank] for w in workers}


def stop(job, stopped, far):
    """Stops it at a moment at which the others can go on. Returns when that was, and the accesses since."""
    for left in reversed(range(TRIES)):
        stopped.process.send_signal(signal.SIGSTOP)
        job.run_for(0.3)  # what it had begun to answer has been answered
        start = time.monotonic()
        try:
            return start, wait_for_accesses(job, far, STOPPED, MORE, "while it is stopped", 8)
        except Wrong:
            if not left:
                raise
        stopped.process.send_signal(signal.SIGCONT)
        wait_for_accesses(job, far, STOPPED, MORE, "when it runs again")
    return None


def narrow(hosts, mtu):
    for host in "12":
        subprocess.run([hosts, "exec", host, "ip", "link", "set", "eth0", "mtu", mtu], check=True)


def main():
    build, hosts = os.path.realpath(os.environ.get("BUILD", ".")), os.environ["hosts"]

    def on_host(rank):
        return [], {}, [hosts, "exec", str(1 + rank % 2)]

    with Job(Setup(build, sys.argv[1]), RANKS, "--mix", "reach", each=on_host).start() as job:
        stopped, killed = job.workers[STOPPED], job.workers[KILLED]
        far = [w for w in job.workers if w.rank % 2 != STOPPED % 2]
        wait_for_accesses(job, far, STOPPED, MORE, "while it runs")
        for mtu in sys.argv[2:]:
            narrow(hosts, mtu)
            wait_for_accesses(job, far, STOPPED, MORE, "where the way has become narrower")
        start, count = stop(job, stopped, far)
        print("accesses to the stopped rank:", count)
        killed.died_by_us = True
        killed.process.kill()
        count = wait_for_accesses(job, far, STOPPED, MORE, "while it is stopped and a sibling has died")
        print("and with a sibling killed:", count)
        job.run_for(max(0, SECONDS - (time.monotonic() - start)))
        job.expect_nobody_gone(but=(KILLED,))
        stopped.process.send_signal(signal.SIGCONT)
        wait_for_accesses(job, far, STOPPED, MORE, "when it runs again")
        print(f"{job.finish()} accesses")


if __name__ == "__main__":
    try:
        main()
    except Wrong as e:
        sys.exit(f"wrong: {e}")
