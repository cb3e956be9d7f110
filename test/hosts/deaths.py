#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Deaths between two hosts whose processes share their connections, and so what they know of each other's life.

    test/hosts/deaths.py FOLDER

BUILD is the build tree; `hosts`, in the environment, the virtual hosts, two of which are up. FOLDER is for what the
ranks say. Ranks of test/faults, on both hosts in turn, wait for each other: first for long enough that each is known by
one stream to each host, then they die. Whoever waits must have heard of it within three seconds, as in test/faults.
"""
import glob
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "faults"))
from job import Job, Wrong  # noqa: E402

RANKS = 8


class Setup:
    provider = "ropewalk"

    def __init__(self, build, folder):
        self.scratch = folder
        programs = f"{build}/test/faults/.libs/worker", f"{build}/test/faults/worker"
        self.worker = next(p for p in programs if os.path.exists(p))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("FI_", "OMPI_", "PMI", "SLURM_"))}
        self.environment |= {"FI_PROVIDER_PATH": f"{build}/.libs", "FI_ROPEWALK_SERVICE": "src",
                             "FI_ROPEWALK_LINK": "udp"}


def streams(worker):
    """How many TCP connections the rank has."""
    mine = set()
    for fd in glob.glob(f"/proc/{worker.pid}/fd/*"):
        try:
            mine.add(os.readlink(fd))
        except OSError:
            pass
    count = 0
    for name in "tcp", "tcp6":
        with open(f"/proc/{worker.pid}/net/{name}") as f:
            rows = [line.split() for line in list(f)[1:]]
        count += sum(row[3] == "01" and f"socket:[{row[9]}]" in mine for row in rows)
    return count


def settle(job):
    """At most one stream to each rank from each host is left, of one for each pair."""
    most = 2 * 2 * len(job.living())
    for _ in range(40):
        job.run_for(0.5)
        counts = [streams(w) for w in job.living()]
        if sum(counts) <= most:
            return counts
    raise Wrong(f"the ranks have {counts} streams, more than {most} in all")


def expect_gone(job, dead, waiting):
    for worker in dead:
        job.wait_for(f"gone peer={worker.rank} ", waiting, seconds=20, what=f" after rank {worker.rank} was killed")


def main():
    build, hosts = os.path.realpath(os.environ.get("BUILD", ".")), os.environ["hosts"]

    def on_host(rank):
        return [], {}, [hosts, "exec", str(1 + rank % 2)]

    with Job(Setup(build, sys.argv[1]), RANKS, "--mix", "wait", each=on_host).start() as job:
        print("streams of each rank:", settle(job))
        job.expect_nobody_gone()
        workers = job.workers
        print(f"who made the domain of a host: {job.kill(workers[0]):.2f} s")
        for worker in workers[1], workers[2]:
            worker.died_by_us = True
            worker.process.kill()
        expect_gone(job, workers[1:3], job.living())
        print("streams of each rank:", settle(job))
        stopped = workers[3], workers[4]
        for worker in stopped:
            worker.process.send_signal(signal.SIGSTOP)
        workers[5].died_by_us = True
        workers[5].process.kill()
        expect_gone(job, [workers[5]], [w for w in job.living() if w not in stopped])
        for worker in stopped:
            worker.process.send_signal(signal.SIGCONT)
        expect_gone(job, [workers[5]], job.living())
        job.run_for(0.5)
        job.expect_nobody_gone(but=(0, 1, 2, 5))
        job.finish()


if __name__ == "__main__":
    try:
        main()
    except Wrong as e:
        sys.exit(f"wrong: {e}")
