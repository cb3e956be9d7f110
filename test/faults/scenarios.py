# SPDX-License-Identifier: BSD-3-Clause
"""The faults. Each function is a scenario: it raises Wrong, or returns a line that says what was seen. `setup.full`
asks for the long form."""
import contextlib
import os
import random
import resource
import signal
import socket
import statistics
import subprocess
import time

from job import Job, Wrong

NOBODY = 65534


class Skip(Exception):
    """Why this scenario cannot be had here."""


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root can do this")


# Traffic, without a fault: what the other scenarios build on.

def traffic(setup):
    with Job(setup, 4).start() as job:
        job.run_for(3)
        job.expect_nobody_gone()
        return f"{job.finish()} messages"


def traffic_large(setup):
    with Job(setup, 2, "--mix", "large").start() as job:
        job.run_for(3)
        return f"{job.finish()} messages"


def sleepers(setup):
    with Job(setup, 5, "--sread").start() as job:
        job.run_for(3)
        job.expect_nobody_gone()
        return f"{job.finish()} messages"


def many(setup):
    with Job(setup, 16, "--mix", "small").start() as job:
        job.expect_progress(3)
        return f"{job.finish()} messages"


# Death.

def kills(setup, count, *args, ranks=6, wait=0.06, env=None):
    """Jobs whose ranks are killed at random, one after the other, until two are left, which then still work."""
    took, jobs = [], 0
    while len(took) < count:
        with Job(setup, ranks, *args, env=env).start() as job:
            for _ in range(ranks - 2):
                job.run_for(random.uniform(0, wait))
                took.append(job.kill(random.choice(job.living())))
            job.expect_nobody_gone(but=[w.rank for w in job.workers if w.died_by_us])
            if "wait" not in args:
                job.expect_progress(0.02)
            job.finish()
        setup.expect_nothing_left(job)
        jobs += 1
    median = statistics.median(took)
    if median > 3:  # one may be late on a busy machine, not half of them
        raise Wrong(f"half of {len(took)} deaths were noticed after more than 3 s: {median:.2f} s")
    return f"{len(took)} kills in {jobs} jobs, the last to notice took {max(took):.2f} s"


def kill(setup):
    """A random rank at a random moment, messages of every size."""
    return kills(setup, setup.times(4000, 80))


def kill_large(setup):
    """In the middle of transfers: all messages are large."""
    return kills(setup, setup.times(2000, 40), "--mix", "large", wait=0.03)


def kill_waiting(setup):
    """The survivors wait for the dead rank in directed receives, and for nothing else: it has never sent anything."""
    return kills(setup, setup.times(400, 20), "--mix", "wait")


def kill_asleep(setup):
    """The survivors sleep in fi_cq_sread."""
    return kills(setup, setup.times(400, 20), "--sread")


DIRECT = {"FI_ROPEWALK_LINK": "shm", "FI_ROPEWALK_CMA": "on"}
MESSAGES = {"FI_ROPEWALK_LINK": "shm", "FI_ROPEWALK_CMA": "off"}
UDP = {"FI_ROPEWALK_LINK": "udp"}


def kill_access(setup, link):
    return kills(setup, setup.times(1500, 24), "--mix", "access", ranks=10, wait=0.03, env=link)


def kill_access_direct(setup):
    """In the middle of writes, reads and atomics, where cross-memory copies are allowed."""
    return kill_access(setup, DIRECT)


def kill_access_messages(setup):
    """The same, all by messages."""
    return kill_access(setup, MESSAGES)


def kill_access_udp(setup):
    """The same, between nodes."""
    return kill_access(setup, UDP)


def regions(setup):
    """Regions are closed while accesses are under way, and their keys are others' in the next moment; then ranks are
    killed as well."""
    seen = []
    for name, link in (("direct", DIRECT), ("messages", MESSAGES), ("udp", UDP)):
        with Job(setup, 4, "--mix", "regions", env=link).start() as job:
            job.expect_progress(30 if setup.full else 2)
            job.expect_nobody_gone()
            seen.append(f"{name}: {job.finish()} accesses")
        seen.append(kills(setup, setup.times(300, 8), "--mix", "regions", env=link))
    return "; ".join(seen)


def kill_early(setup):
    """While the addresses are being inserted and contact is being made."""
    count, slowest = setup.times(500, 20), 0.0
    for _ in range(count):
        with Job(setup, 3) as job:
            job.connect()
            time.sleep(random.uniform(0, 0.01))
            victim = random.choice(job.workers)
            victim.process.kill()
            victim.process.wait()
            victim.died_by_us = True
            job.wait_for("ready")
            job.tell("go")
            start = time.monotonic()
            job.wait_for(f"gone peer={victim.rank} ", seconds=20, what=" after an early kill")
            slowest = max(slowest, time.monotonic() - start)
            job.finish()
        setup.expect_nothing_left(job)
    return f"{count} kills, the last to notice took {slowest:.2f} s"


def kill_all(setup):
    """The whole job at once: nothing stays behind."""
    count = setup.times(300, 10)
    for _ in range(count):
        with Job(setup, 4).start() as job:
            job.run_for(random.uniform(0, 0.1))
            for worker in job.workers:
                worker.died_by_us = True
                worker.process.kill()
            job.close()
        setup.expect_nothing_left(job)
    return f"{count} jobs"


def stop(setup):
    """SIGSTOP is no death: not for the stopped rank, not for the others, and nothing is lost."""
    seconds = 60 if setup.full else 5
    with Job(setup, 4).start() as job:
        job.expect_progress(0.3)
        sleeper = job.workers[1]
        sleeper.process.send_signal(signal.SIGSTOP)
        job.run_for(seconds)
        job.expect_nobody_gone()
        sleeper.process.send_signal(signal.SIGCONT)
        job.expect_progress(0.5)
        job.expect_nobody_gone()
        return f"stopped for {seconds} s, {job.finish()} messages"


def stop_and_kill(setup):
    """A rank that dies while it is stopped is dead to all; one that is stopped while another dies learns of it
    when it wakes."""
    with Job(setup, 4).start() as job:
        job.expect_progress(0.2)
        job.workers[2].process.send_signal(signal.SIGSTOP)
        job.run_for(0.3)
        took = job.kill(job.workers[2])
        job.workers[1].process.send_signal(signal.SIGSTOP)
        job.workers[3].died_by_us = True
        job.workers[3].process.kill()
        job.run_for(1)
        job.workers[1].process.send_signal(signal.SIGCONT)
        job.wait_for("gone peer=3 ", [job.workers[0], job.workers[1]], seconds=20)
        job.finish()
        return f"noticed in {took:.2f} s"


# Neighbours.

def two_jobs(setup):
    """Two jobs side by side on one node know nothing of each other, and the death of one is nothing to the other."""
    with Job(setup, 3).start() as one, Job(setup, 3).start() as two:
        one.expect_progress()
        two.expect_progress()
        for worker in one.workers:
            worker.died_by_us = True
            worker.process.kill()
        two.expect_progress()
        two.expect_nobody_gone()
        return f"{two.finish()} messages"


def as_nobody(_rank):
    return [], {"user": NOBODY, "group": NOBODY, "extra_groups": []}, []


def abstract_sockets():
    """(kind, name) of the abstract Unix sockets of this network namespace that belong to ropewalk or, in one of our
    own, to anyone."""
    with open("/proc/net/unix", encoding="latin-1") as f:
        for line in list(f)[1:]:
            fields = line.split(None, 7)
            if len(fields) == 8:
                yield int(fields[4], 16), fields[7].rstrip("\n")


def intrude(name, kind):
    """In a process of its own, as nobody: connects, sends rubbish and asks for descriptors. Returns its number; it
    exits with how many came back."""
    pid = os.fork()
    if pid:
        return pid
    got = 0
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        for _ in range(20):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as s:
                s.settimeout(0.2)
                s.connect("\0" + name[1:] if name.startswith("@") else name)
                read_end, write_end = os.pipe()
                with contextlib.suppress(OSError):
                    socket.send_fds(s, [os.urandom(random.choice([1, 16, 64, 200, 4000]))], [write_end])
                os.close(read_end)
                os.close(write_end)
                _, fds, _, _ = socket.recv_fds(s, 65536, 64)
                got += len(fds)
    finally:
        os._exit(min(got, 100))


def two_users(setup):
    """A job of another user runs beside; that user gets nothing out of the sockets of the first job and does it
    no harm."""
    need_root()
    with Job(setup, 3).start() as mine, Job(setup, 3, each=as_nobody).start() as theirs:
        mine.expect_progress(0.5)
        theirs.expect_progress(0.5)
        sockets = set(abstract_sockets())
        intruders = [(name, intrude(name, kind)) for kind, name in sockets]
        for name, pid in intruders:
            if got := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
                raise Wrong(f"user nobody was given {got} descriptors by the socket {name}")
        for worker in mine.workers:
            looked = subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                                     "sh", "-c", f"cat /proc/{worker.pid}/fd/* /dev/shm/*"],
                                    stdin=subprocess.DEVNULL, capture_output=True)
            if looked.stdout:
                raise Wrong(f"user nobody can read what rank {worker.rank} shares")
        mine.expect_progress(0.5)
        mine.expect_nobody_gone()
        theirs.expect_nobody_gone()
        theirs.finish()
        return f"{mine.finish()} messages, {len(sockets)} sockets tried"


def mixed_users(setup):
    """Ranks of two users in one job do not share memory: each is refused to the other with an error, and
    nobody hangs."""
    need_root()
    with Job(setup, 2, each=lambda rank: as_nobody(rank) if rank else ([], {}, [])) as job:
        job.connect()
        end = time.monotonic() + 15
        try:
            job.wait_for("ready")
            job.tell("go")
            while time.monotonic() < end and not all(w.has("gone") for w in job.workers):
                job.pump(0.1)
        except Wrong as e:
            if "fi_av_insert refuses" in str(e):
                return "refused when the address was inserted"
            raise
        if any(job.counts().values()):
            raise Wrong(f"messages passed between two users: {job.counts()}")
        if not all(w.has("gone") for w in job.workers):
            raise Wrong("two users can send to each other without an error and without a message")
        return job.workers[0].has("gone")


# What the system refuses.

def in_namespace(*commands):
    """A prefix that runs its command in a mount namespace where those commands were run first."""
    return ["unshare", "--mount", "sh", "-ec", "; ".join(commands) + '; exec "$@"', "sh"]


def shm(setup, size):
    need_root()
    prefix = in_namespace(f"mount -t tmpfs -o size={size} tmpfs /dev/shm")
    with Job(setup, 6, each=lambda _: ([], {}, prefix)).start() as job:
        job.expect_progress(2)
        return f"/dev/shm of {size}: {job.finish()} messages"


def shm_64m(setup):
    return shm(setup, "64m")


def shm_1m(setup):
    return shm(setup, "1m")


def denied(setup, calls, now, ranks=lambda rank: True):
    """The kernel refuses those calls: from the start, or from the middle of the traffic on."""
    def each(rank):
        return ["--deny", calls] + (["--deny-now"] if now else []) if ranks(rank) else [], {}, []

    with Job(setup, 3, "--mix", "all", each=each).start() as job:
        job.expect_progress(0.5)
        if not now:
            victims = [w for w in job.workers if ranks(w.rank)]
            job.tell("deny", victims)
            job.wait_for(f"denied {calls}", victims)
        job.expect_progress(1)
        job.expect_nobody_gone()
        return f"{job.finish()} messages"


def cma_denied(setup):
    return denied(setup, "cma", True)


def cma_denied_later(setup):
    return denied(setup, "cma", False)


def cma_denied_one(setup):
    first = denied(setup, "cma", True, lambda rank: rank == 0)
    return first + ", " + denied(setup, "cma", False, lambda rank: rank == 1)


def pidfd_denied(setup):
    return denied(setup, "pidfd", True)


def membarrier_denied(setup):
    return denied(setup, "membarrier", True)


def user_namespace(setup):
    """Each rank in a user namespace of its own: cross-memory copies are not allowed between them."""
    prefix = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        raise Skip("user namespaces are not allowed here")
    with Job(setup, 3, each=lambda _: ([], {}, prefix)).start() as job:
        job.expect_progress()
        return f"{job.finish()} messages"


def too_few(job):
    return any("raise `ulimit -n`" in w.stderr() for w in job.workers)


def descriptors(setup):
    """Few file descriptors: 48 are enough for six ranks; with fewer it works or says why not, and never hangs."""
    seen = []
    for limit, must in ((48, True), (24, False), (16, False), (9, False)):
        def each(_rank, n=limit):
            return [], {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))}, []

        try:
            with Job(setup, 6, "--mix", "small", each=each).start() as job:
                job.run_for(0.5)
                job.expect_progress(0.5, limit=5 if too_few(job) else 20)
                job.finish()
            seen.append(f"{limit} work")
        except Wrong as e:
            # refused is what a rank said itself, or an exit with a message; not silence, and not a signal
            said = "wrong" in str(e) or "ended with 1" in str(e) and "standard error" in str(e)
            said = said or too_few(job)
            if must or not said:
                raise Wrong(f"with {limit} descriptors: {e}") from None
            seen.append(f"{limit} refused ({str(e)[:90]}...)")
        setup.expect_nothing_left(job)
    return "; ".join(seen)


def file_size(setup):
    """No file may be made, and memory that processes share counts as one: said, and no rank is ended by a signal."""
    def each(_rank):
        return [], {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))}, []

    with Job(setup, 2, each=each, env={"FI_ROPEWALK_LINK": "shm"}) as job:
        try:
            job.start().expect_progress(limit=5)
        except Wrong as e:
            if "ended with -" in str(e):
                raise
        if not all("raise `ulimit -f`" in w.stderr() for w in job.workers):
            raise Wrong("nobody says that `ulimit -f` is too low")
    with Job(setup, 2, each=each, env={"FI_ROPEWALK_LINK": "udp"}).start() as job:
        job.expect_progress()
        return f"by UDP {job.finish()} messages"


def pid_namespaces(setup):
    """Each rank in a PID namespace of its own, as containers are: what to do is said, and with it they reach
    each other."""
    need_root()
    prefix = ["unshare", "--pid", "--fork", "--kill-child"]
    with Job(setup, 2, each=lambda _: ([], {}, prefix)) as job:
        try:
            job.start().expect_progress(limit=5)
            raise Wrong("processes that cannot see each other share memory")
        except Wrong as e:
            if "received nothing" not in str(e):
                raise
        if not all("FI_ROPEWALK_LINK=udp" in w.stderr() for w in job.workers):
            raise Wrong("a rank does not say what can be done about its PID namespace")
    with Job(setup, 2, env={"FI_ROPEWALK_LINK": "udp"}, each=lambda _: ([], {}, prefix)).start() as job:
        job.expect_progress()
        return f"by UDP {job.finish()} messages"


def no_proc(setup):
    """There is no /proc."""
    need_root()
    prefix = in_namespace("mount -t tmpfs tmpfs /proc")
    with Job(setup, 3, "--mix", "all", each=lambda _: ([], {}, prefix)).start() as job:
        job.expect_progress()
        return f"{job.finish()} messages"


def full_capture(setup):
    """The device that a capture is written to is full: said, and the job goes on."""
    with Job(setup, 2, env={"FI_ROPEWALK_LINK": "udp", "FI_ROPEWALK_PCAP": "/dev/full"}).start() as job:
        job.expect_progress()
        job.finish()
        if not all("FI_ROPEWALK_PCAP: /dev/full: No space left" in w.stderr() for w in job.workers):
            raise Wrong("a rank does not say that its capture ends")
        return "said"


def forks(setup):
    """Children of the host program, also such that become other programs, disturb nothing."""
    with Job(setup, 3, "--fork").start() as job:
        job.expect_progress(3)
        job.expect_nobody_gone()
        return f"{job.finish()} messages"


def full_disk(setup):
    """Nothing can be written: the current folder and TMPDIR are full, and so is what standard error goes to."""
    need_root()
    prefix = in_namespace("mount -t tmpfs -o size=16k tmpfs /mnt", "cd /mnt",
                          "head -c 100000 /dev/zero >fill 2>/dev/null || true")
    env = {"TMPDIR": "/mnt", "HOME": "/mnt", "FI_ROPEWALK_EXPLAIN": "1", "FI_ROPEWALK_STATS": "1",
           "FI_ROPEWALK_LOG": "debug"}
    with Job(setup, 3, env=env, each=lambda _: ([], {"stderr": "/dev/full"}, prefix)).start() as job:
        job.expect_progress()
        return f"{job.finish()} messages"


BAD_VALUES = {
    "EXPLAIN": ("perhaps", "yes"), "STATS": ("2", "yes"), "LOG": ("loud", "debug"), "SERVICE": ("air-mail", "uc"),
    "LINK": ("carrier-pigeon", "shm"), "PMIX": ("sure", "auto"), "EAGER_MAX": ("1T", "256"),
    "EAGER_MAX_NETWORK": ("1M", "262144"),
    "EAGER_CREDIT": ("-5", "4096"), "CMA": ("maybe", "auto"), "PTRACER": ("", "yes"),
    "CONNECT_WAIT": ("86401", "86400"), "RING_LINES": ("1", "64"), "SPIN": ("x", "0"),
    "INTERFACES": ("eth0,10.0.0.0/99", "10.0.0.0/8"), "PORTS": ("9-1", "65535"), "UDP": ("perhaps", "yes"),
    "TCP": ("2", "yes"), "PMTU": ("1500", "4096"), "RECEIVE_BUFFER": ("lots", "1073741824"), "WINDOW": ("257", "256"),
    "RENDEZVOUS": ("push", "write"), "SRC_LIMIT": ("many", "16777216"), "VISIBLE": ("never", "yes"),
}
TEXTS = {"JOB_FILE", "JOB_KEY", "PCAP"} # any value may be right


def parameters(setup):
    """A wrong value of each parameter: a warning names variable and good values, and the job runs on with
    the default."""
    listed = subprocess.run(["fi_info", "-e", "-g", "ropewalk"], env=setup.environment, capture_output=True,
                            text=True).stdout
    named = [line.split("FI_ROPEWALK_")[1] for line in listed.splitlines() if "FI_ROPEWALK_" in line]
    names = {text.split(":")[0].split()[0] for text in named}
    if unknown := names - set(BAD_VALUES) - TEXTS:
        raise Wrong(f"parameters that this test has no wrong value for: {sorted(unknown)}")
    if not names:
        raise Wrong("fi_info -e lists no parameter FI_ROPEWALK_*")
    env = {f"FI_ROPEWALK_{name}": bad for name, (bad, _) in BAD_VALUES.items() if name in names}
    with Job(setup, 2, env=env).start() as job:
        job.expect_progress(0.5)
        job.finish()
    for worker in job.workers:
        for name in names - TEXTS:
            bad, good = BAD_VALUES[name]
            line = next((x for x in worker.stderr().splitlines() if f"FI_ROPEWALK_{name}={bad}" in x), None)
            if not line or good not in line.split(f"FI_ROPEWALK_{name}={bad}")[1]:
                raise Wrong(f"rank {worker.rank} does not say what is wrong with FI_ROPEWALK_{name}={bad}: {line}")
    with Job(setup, 2, env={"FI_ROPEWALK_JOB_FILE": "/does/not/exist"}).start() as job:
        job.expect_progress(0.3)
        job.finish()
    if not all("/does/not/exist" in w.stderr() for w in job.workers):
        raise Wrong("nobody says that FI_ROPEWALK_JOB_FILE=/does/not/exist cannot be read")
    return f"{len(names)} parameters"


QUICK = [traffic, sleepers, kill, kill_large, kill_waiting, kill_access_direct, kill_access_udp, regions, stop,
         cma_denied_later, forks]
ALL = [traffic, traffic_large, sleepers, many, kill, kill_large, kill_waiting, kill_asleep, kill_early, kill_all,
       kill_access_direct, kill_access_messages, kill_access_udp, regions, stop, stop_and_kill, two_jobs, two_users,
       mixed_users, shm_64m, shm_1m, cma_denied, cma_denied_later, cma_denied_one, pidfd_denied, membarrier_denied,
       user_namespace, pid_namespaces, no_proc, descriptors, file_size, forks, full_disk, full_capture, parameters]
