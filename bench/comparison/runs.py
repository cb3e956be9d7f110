# SPDX-License-Identifier: BSD-3-Clause
"""Starts the programs, one short run after the other, each between two probes of the line-transfer time."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time


PATIENCE = 5  # seconds for a child that was asked to end


class Failure(Exception):
    """A child that failed: its last words."""


def start(command, env, output):
    """Starts a command in its own process group."""
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                            text=True, start_new_session=True)


def run_child(command, env, timeout):
    """Runs a command and returns its output. Nothing of it is left when this returns."""
    child = start(command, env, subprocess.PIPE)
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        output = stop_group(child)
        raise Failure(f"not done after {timeout:g} s, killed: {output[-1000:]}")
    except BaseException:
        stop_group(child)
        raise
    if child.returncode:
        raise Failure(f"exit status {child.returncode}: {output[-1000:]}")
    return output


def stop_group(child):
    """A launcher is asked first, so that it ends its ranks, which may be in groups of their own."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sig)
        except ProcessLookupError:
            pass
        try:
            return child.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            continue
    return "(its output is held open by a process that survived)"


class Runner:
    def __init__(self, build, arguments, timeout):
        self.build = build
        self.limits = os.path.join(build, "bench", "limits")
        self.arguments = arguments  # of every benchmark
        self.timeout = timeout

    def probe(self):
        """Nanoseconds of a line to the other core."""
        return float(run_child([self.limits, "--probe"], None, 20).split()[-1])

    def one(self, stack, program, ranks, arguments):
        """Runs one benchmark once; returns (its JSON, [probe before, probe after])."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.json")
            before = self.probe()
            command = stack.command(program, ranks) + self.arguments + arguments + ["--json", path]
            run_child(command, stack.environment(), self.timeout)
            after = self.probe()
            try:
                with open(path) as f:
                    return json.load(f), [before, after]
            except (OSError, ValueError) as e:
                raise Failure(f"no result: {e}")


class Progress:
    """A line on stderr now and then, with what is still to come."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.started = self.said = time.monotonic()

    def step(self, what):
        now = time.monotonic()
        if self.done and now - self.said >= 5:
            left = (now - self.started) / self.done * (self.total - self.done)
            print(f"compare: run {self.done + 1} of {self.total}: {what}; about {left:.0f} s to go",
                  file=sys.stderr, flush=True)
            self.said = now
        self.done += 1


def run_all(runner, plan, rounds, failures):
    """Runs the plan: [(benchmark, ranks, [groups of sizes], [stacks])].

    Within each group of sizes the stacks take turns, A B C A B C. Returns the runs. A stack that fails is noted in
    `failures` and does not run that benchmark again.
    """
    runs = []
    progress = Progress(sum(len(groups) * len(stacks) * rounds for _, _, groups, stacks in plan))
    for benchmark, ranks, groups, stacks in plan:
        try:
            runs += run_benchmark(runner, benchmark, ranks, groups, stacks, rounds, failures, progress)
        finally:
            benchmark.finish()
    return runs


def run_benchmark(runner, benchmark, ranks, groups, stacks, rounds, failures, progress):
    runs, out = [], set()
    for sizes in groups:
        benchmark.prepare(sizes)
        for number in range(rounds):
            for stack in stacks:
                progress.step(f"{benchmark.name}, {stack.name}, round {number + 1}")
                if stack.name in out:
                    continue
                run = one_run(runner, benchmark, ranks, stack, sizes, number, failures)
                if run:
                    runs.append(run)
                else:
                    out.add(stack.name)
    return runs


def one_run(runner, benchmark, ranks, stack, sizes, number, failures):
    try:
        result, probes = runner.one(stack, benchmark.program, ranks, benchmark.arguments(sizes))
    except Failure as e:
        failures.append({"benchmark": benchmark.name, "stack": stack.name, "sizes": sizes, "round": number,
                         "reason": str(e)})
        print(f"compare: {benchmark.name}, {stack.name}: FAILED: {e}", file=sys.stderr, flush=True)
        return None
    return {
        "benchmark": benchmark.name,
        "stack": stack.name,
        "ranks": ranks,
        "round": number,
        "probes": probes,
        "unit": result["unit"],
        "library": result["library"],
        "results": benchmark.results(sizes, result["results"]),
        "rows": result["results"],
    }
