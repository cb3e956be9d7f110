#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Late joiners, between two hosts whose processes share their connections.

    test/hosts/joins.py FOLDER [ROUNDS]

BUILD is the build tree; `hosts`, in the environment, the virtual hosts, two of which are up. FOLDER is for what the
ranks say. Ranks of test/faults, on both hosts in turn, have checked traffic without end. Others of the same job come to
both hosts, have traffic of their own, and go, again and again. While they come in, those who made the hosts' domains
are killed, then a sibling is killed, or one is stopped. All come in, and those who live lose nothing.
"""
import glob
import os
import random
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from deaths import Setup  # noqa: E402
from job import Job, Wrong  # noqa: E402

FOUNDERS, LASTING, LATE = 2, 6, 4
SECONDS = 60  # until all have come in; on two busy cores most of it is how long a process takes to start


def die(worker):
    worker.died_by_us = True
    worker.process.kill()


def domains(*jobs):
    """Whose memory each living rank has mapped, host by host: two files, if all share."""
    found = [set(), set()]
    for worker in sum((job.living() for job in jobs), []):
        for fd in glob.glob(f"/proc/{worker.pid}/fd/*"):
            try:
                if os.readlink(fd).startswith("/memfd:ropewalk src"):
                    found[worker.rank % 2].add(os.stat(fd).st_ino)
            except OSError:
                pass
    return found


def come_and_go(start, lasting, fault):
    """Some come late, and something happens meanwhile. Returns how long it took until all were in."""
    begun = time.monotonic()
    with start(LATE) as late:
        lasting.run_for(random.uniform(0, 0.2))  # none has come in, or some, or all
        fault()
        late.wait_for("addr", seconds=SECONDS)
        took = time.monotonic() - begun
        late.connect()
        late.wait_for("ready")
        late.tell("go")
        late.expect_progress(0.1)
        late.expect_nobody_gone()
        if [len(host) for host in domains(lasting, late)] != [1, 1]:
            raise Wrong(f"the ranks of a host do not share one domain: {domains(lasting, late)}")
        late.finish()
    lasting.expect_nobody_gone(but=[w.rank for w in lasting.workers if w.died_by_us])
    lasting.expect_progress(0.1)
    return took


def main():
    build, hosts = os.path.realpath(os.environ.get("BUILD", ".")), os.environ["hosts"]
    setup, rounds = Setup(build, sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    setup.environment["FI_ROPEWALK_JOB_KEY"] = "of all who come"

    def start(ranks):
        return Job(setup, ranks, each=lambda rank: ([], {}, [hosts, "exec", str(1 + rank % 2)]))

    with start(FOUNDERS).start() as founders, start(LASTING).start() as lasting:
        def found_no_more():
            for worker in founders.workers:
                die(worker)

        def stop():
            victim = random.choice(lasting.living())
            victim.process.send_signal(signal.SIGSTOP)
            lasting.run_for(1)
            victim.process.send_signal(signal.SIGCONT)

        founders.expect_progress(0.1)
        took = [come_and_go(start, lasting, found_no_more)]
        for _ in range(rounds):
            took.append(come_and_go(start, lasting, lambda: None))
            took.append(come_and_go(start, lasting, stop))
        took.append(come_and_go(start, lasting, lambda: die(lasting.workers[1])))
        print("seconds until all were in:", " ".join(f"{t:.2f}" for t in took))
        print(f"{lasting.finish()} messages of those who were there")


if __name__ == "__main__":
    try:
        main()
    except Wrong as e:
        sys.exit(f"wrong: {e}")
