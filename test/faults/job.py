# SPDX-License-Identifier: BSD-3-Clause
"""Starts, drives and watches the workers of one job (test/faults/worker.h says what they understand). No mpirun: that
would end the job when a rank dies, and what the others then see is what is tested here."""
import os
import selectors
import signal
import subprocess
import time

# All waits but the death's 3 s are multiplied by this (sanitizers, slow machines).
SLACK = float(os.environ.get("FAULTS_SLACK", "1"))


class Wrong(Exception):
    """Something that a worker did or did not do."""


class Worker:
    def __init__(self, job, rank, argv, options):
        self.job, self.rank, self.lines, self.partial = job, rank, [], b""
        self.stderr_path = os.path.join(job.folder, f"stderr.{rank}")
        with open(options.pop("stderr", self.stderr_path), "wb") as err:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                                            cwd=job.folder, **options)
        self.died_by_us = self.ended = False

    @property
    def pid(self):
        return self.process.pid

    def tell(self, command):
        try:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died: whoever waits for its answer notices

    def take_output(self):
        """Reads what is there. Returns False at the end of it."""
        data = os.read(self.process.stdout.fileno(), 65536)
        *whole, self.partial = (self.partial + data).split(b"\n")
        self.lines += [line.decode() for line in whole]
        return bool(data)

    def stderr(self):
        if not os.path.exists(self.stderr_path):
            return ""
        with open(self.stderr_path, errors="replace") as f:
            return f.read()

    def has(self, start):
        return next((line for line in self.lines if line.startswith(start)), None)


class Job:
    """`ranks` workers. args: worker's options for all; each(rank) -> further (arguments, Popen options, command
    prefix)."""

    count = 0

    def __init__(self, setup, ranks, *args, env=None, each=None, folder=None):
        Job.count += 1
        self.folder = folder or os.path.join(setup.scratch, f"job{Job.count}")
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o777)
        self.selector = selectors.DefaultSelector()
        self.workers = []
        environment = {**setup.environment, **(env or {})}
        for rank in range(ranks):
            more, options, prefix = each(rank) if each else ([], {}, [])
            argv = [*prefix, setup.worker, "--provider", setup.provider, "--rank", str(rank), "--ranks", str(ranks),
                    *args, *more]
            worker = Worker(self, rank, argv, {"env": environment, **options})
            self.workers.append(worker)
            self.selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def living(self):
        return [w for w in self.workers if not w.ended and not w.died_by_us]

    def pump(self, seconds):
        """Takes in what the workers say for that long, or until something was said."""
        for key, _ in self.selector.select(seconds):
            worker = key.data
            if not worker.take_output():
                self.selector.unregister(worker.process.stdout)
                worker.ended = True
            bad = worker.has("wrong")
            if bad and not worker.died_by_us:
                raise Wrong(f"rank {worker.rank}: {bad}{self.complaint(worker)}")

    def complaint(self, worker):
        text = worker.stderr().strip()
        return f"; its standard error ends with: {text[-600:]}" if text else ""

    def run_for(self, seconds):
        """Lets the job run; nobody may die of itself."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.pump(left)
            for worker in self.workers:
                if worker.ended and not worker.died_by_us:
                    raise Wrong(f"rank {worker.rank} ended with {worker.process.wait()}{self.complaint(worker)}")

    def wait_for(self, start, workers=None, seconds=15.0, what=None):
        """Waits until each of the workers has said a line that begins so; returns the lines."""
        workers = self.living() if workers is None else workers
        end = time.monotonic() + seconds * SLACK
        while missing := [w for w in workers if not w.has(start)]:
            gone = [w for w in missing if w.ended]
            if gone:
                raise Wrong(f"rank {gone[0].rank} ended with {gone[0].process.wait()} before '{start}'"
                            f"{self.complaint(gone[0])}")
            if time.monotonic() > end:
                raise Wrong(f"no '{start}' within {seconds * SLACK:g} s from rank(s) {[w.rank for w in missing]}"
                            f"{what or ''}{self.complaint(missing[0])}")
            self.pump(0.05)
        return [w.has(start) for w in workers]

    def tell(self, command, workers=None):
        for worker in self.living() if workers is None else workers:
            worker.tell(command)

    def connect(self):
        addresses = [line.split()[1] for line in self.wait_for("addr")]
        self.tell("peers " + " ".join(addresses))

    def start(self):
        """Addresses are exchanged and traffic begins."""
        self.connect()
        self.wait_for("ready")
        self.tell("go")
        return self

    def counts(self):
        """How many messages each living worker has received."""
        workers = self.living()
        for worker in workers:
            worker.lines = [line for line in worker.lines if not line.startswith("count")]
            worker.tell("report")
        return {w.rank: int(line.split()[1]) for w, line in zip(workers, self.wait_for("count", workers))}

    def expect_progress(self, seconds=1.0, limit=20.0):
        """Each living worker receives something new, in `limit` seconds at most."""
        before = self.counts()
        end = time.monotonic() + limit * SLACK
        self.run_for(seconds)
        while True:
            now = self.counts()
            stuck = [r for r in now if now[r] <= before[r]]
            if not stuck:
                return
            if time.monotonic() > end:
                raise Wrong(f"rank(s) {stuck} received nothing for {limit * SLACK:g} s")
            self.run_for(0.2)

    def kill(self, worker):
        """SIGKILL, and every living rank must notice: all that waits for the dead one ends in error. Returns the longest
        that it took; three seconds are promised, to ranks that have a processor."""
        worker.died_by_us = True
        others = self.living()
        start = time.monotonic()
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait()
        self.wait_for(f"gone peer={worker.rank} ", others, seconds=20, what=f" after rank {worker.rank} was killed")
        return time.monotonic() - start

    def expect_nobody_gone(self, but=()):
        for worker in self.living():
            for line in worker.lines:
                if line.startswith("gone") and int(line.split("peer=")[1].split()[0]) not in but:
                    raise Wrong(f"rank {worker.rank} says that a living peer has died: {line}")

    def finish(self):
        """Stops the traffic; everything that was sent arrives, everyone exits with 0. Returns the messages received."""
        self.tell("stop")
        total = sum(int(line.split("messages=")[1].split()[0]) for line in self.wait_for("done", seconds=30))
        workers = self.living()
        self.tell("exit")
        for worker in workers:
            try:
                code = worker.process.wait(15 * SLACK)
            except subprocess.TimeoutExpired:
                raise Wrong(f"rank {worker.rank} does not exit") from None
            if code:
                raise Wrong(f"rank {worker.rank} exits with {code}{self.complaint(worker)}")
        self.close()
        return total

    def close(self):
        """Ends whatever is left."""
        for worker in self.workers:
            worker.died_by_us = True
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait()
            worker.process.stdin.close()
            worker.process.stdout.close()
        self.selector.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if any(w.process.poll() is None for w in self.workers):
            self.close()
