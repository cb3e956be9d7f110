#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What bench/compare concludes from runs, on input made by hand, and how it treats children that fail or hang."""
import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import resource
import runpy
import shutil
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "comparison"))

import analysis
import arguments
import hosts
import machine
import output
import results
import runs
import stacks
from benchmarks import LOSS, Benchmark, Goodput


def run(stack, probes, **results):
    """A run whose results are given as s8=0.5 for 0.5 at size 8."""
    return {"benchmark": "latency", "stack": stack, "round": 0, "probes": list(probes),
            "results": {int(size[1:]): value for size, value in results.items()}}


def compared(all_runs, more_is_better=False, failed=()):
    """Of runs of everyone but those that failed from the beginning."""
    analysis.assign_modes(all_runs)
    return analysis.compare_benchmark(all_runs, more_is_better, "ropewalk", {r["stack"] for r in all_runs} | set(failed))


class Modes(unittest.TestCase):
    def test_two_modes_and_a_change(self):
        """Up to 1.6 times the quickest probe is near; a run between probes of both modes is mixed."""
        every = [run("a", (50, 60)), run("a", (79, 50)), run("a", (81, 200)), run("a", (50, 81)), run("a", (200, 50))]
        analysis.assign_modes(every)
        self.assertEqual([r["mode"] for r in every], ["near", "near", "far", "mixed", "mixed"])
        counts = analysis.count_modes(every)
        self.assertEqual({m: c["runs"] for m, c in counts.items()}, {"near": 2, "far": 1, "mixed": 2})
        self.assertEqual((counts["far"]["probe_min"], counts["far"]["probe_max"]), (81, 200))

    def test_disturbed(self):
        """A probe that no line needs, ten times the quickest, spoils its run, whatever the other probe says."""
        every = [run("a", (50, 50)), run("a", (50, 501)), run("a", (600, 600)), run("a", (499, 499))]
        analysis.assign_modes(every)
        self.assertEqual([r["mode"] for r in every], ["near", "disturbed", "disturbed", "far"])

    def test_one_mode(self):
        """A machine whose probes are all alike has one mode, however long they took."""
        every = [run("a", (200, 210)), run("a", (220, 205))]
        analysis.assign_modes(every)
        self.assertEqual({r["mode"] for r in every}, {"near"})

    def test_no_table(self):
        """Where no run counts, that is said, and why; one run that counts is enough."""
        some = [run("a", (50, 501)), run("a", (50, 100))]
        analysis.assign_modes(some)
        self.assertIn("each of the 2 runs was disturbed", analysis.why_no_table(some))
        self.assertIn("nothing ran", analysis.why_no_table([]))
        some.append(run("a", (100, 100)))
        analysis.assign_modes(some)
        self.assertIsNone(analysis.why_no_table(some))

    def test_nothing(self):
        analysis.assign_modes([])
        self.assertEqual(analysis.count_modes([]), {})


class Ratios(unittest.TestCase):
    def test_best_peer_of_the_same_mode(self):
        """Medians over runs of one mode; the quickest peer of that mode is the judge, though another wins elsewhere."""
        rows = compared([
            run("vader", (50, 50), s8=0.4), run("vader", (50, 50), s8=0.2), run("vader", (50, 50), s8=0.3),
            run("ucx", (50, 50), s8=0.5), run("ropewalk", (50, 50), s8=0.15),
            run("vader", (200, 200), s8=0.9), run("ucx", (200, 200), s8=0.8), run("ropewalk", (200, 200), s8=0.6),
        ])
        near, far = rows["near"][8], rows["far"][8]
        self.assertEqual(near["stacks"]["vader"], {"median": 0.3, "min": 0.2, "max": 0.4, "runs": 3})
        self.assertEqual(near["best_peer"], "vader")
        self.assertAlmostEqual(near["ratio"], 0.5)
        self.assertEqual(far["best_peer"], "ucx")
        self.assertAlmostEqual(far["ratio"], 0.75)

    def test_more_is_better(self):
        rows = compared([run("vader", (50, 50), s64=100), run("ucx", (50, 50), s64=200),
                         run("ropewalk", (50, 50), s64=500)], True)
        self.assertEqual(rows["near"][64]["best_peer"], "ucx")
        self.assertAlmostEqual(rows["near"][64]["ratio"], 2.5)

    def test_no_ratio_without_everyone(self):
        """Where a peer ran in the other mode only, no ratio is claimed, and the peer is named."""
        rows = compared([run("vader", (50, 50), s8=0.4), run("ucx", (200, 200), s8=0.1),
                         run("ropewalk", (50, 50), s8=0.2)])
        self.assertNotIn("ratio", rows["near"][8])
        self.assertEqual(rows["near"][8]["absent"], ["ucx"])
        self.assertEqual(output.verdict(rows["near"][8]), "no run of ucx")
        self.assertNotIn("ratio", rows["far"][8])

    def test_no_ratio_without_who_failed(self):
        """So it is with a peer that has no run at all, and with one that has none at this size."""
        rows = compared([run("vader", (50, 50), s8=0.4), run("ropewalk", (50, 50), s8=0.2)], failed=["ucx"])
        self.assertEqual(output.verdict(rows["near"][8]), "no run of ucx")
        rows = compared([run("vader", (50, 50), s8=0.4, s16=0.4), run("ropewalk", (50, 50), s8=0.2, s16=0.2),
                         run("ucx", (50, 50), s8=0.1)])
        self.assertEqual([output.verdict(rows["near"][size]) for size in (8, 16)], ["2.00 x ucx", "no run of ucx"])

    def test_mixed_runs_do_not_count(self):
        rows = compared([run("vader", (50, 50), s8=0.4), run("vader", (50, 200), s8=0.01),
                         run("vader", (50, 900), s8=0.02), run("ropewalk", (50, 50), s8=0.2)])
        self.assertEqual(rows["near"][8]["stacks"]["vader"]["runs"], 1)
        self.assertAlmostEqual(rows["near"][8]["ratio"], 0.5)

    def test_stack_that_has_only_mixed_runs_is_missed(self):
        rows = compared([run("vader", (50, 50), s8=0.4), run("ucx", (50, 200), s8=0.01),
                         run("ropewalk", (50, 50), s8=0.2)])
        self.assertEqual(rows["near"][8]["absent"], ["ucx"])
        self.assertNotIn("ratio", rows["near"][8])

    def test_without_ours(self):
        rows = compared([run("vader", (50, 50), s8=0.4), run("ucx", (50, 50), s8=0.3)])
        self.assertNotIn("ratio", rows["near"][8])
        self.assertEqual(rows["near"][8]["best_peer"], "ucx")
        self.assertEqual(output.verdict(rows["near"][8]), "-")

    def test_nothing_to_divide_by(self):
        """The bandwidth of messages without bytes is 0, and no ratio."""
        rows = compared([run("vader", (50, 50), s0=0), run("ropewalk", (50, 50), s0=0)], True)
        self.assertNotIn("ratio", rows["near"][0])
        self.assertEqual(output.verdict(rows["near"][0]), "-")

    def test_sizes_are_judged_one_by_one(self):
        """A stack that has not run one size is missed at no other."""
        rows = compared([run("vader", (50, 50), s8=0.4, s16=0.4), run("ropewalk", (50, 50), s8=0.2)])
        self.assertAlmostEqual(rows["near"][8]["ratio"], 0.5)
        self.assertNotIn("ratio", rows["near"][16])


class Table(unittest.TestCase):
    def test_columns(self):
        class benchmark:
            name, unit, more_is_better, stack_order, varies = "latency", "us", False, ["vader", "ropewalk"], "bytes"
        every = [run("vader", (50, 55), s8=0.4, s4096=1.5), run("vader", (50, 50), s8=0.5, s4096=1.5),
                 run("ropewalk", (50, 50), s8=0.225, s4096=3)]
        rows = compared(every)["near"]
        lines = output.table(benchmark, "near", analysis.count_modes(every), rows)
        self.assertIn("latency, us, less is better; CPUs near each other: a line to the other core takes 50-55 ns", lines[0])
        self.assertEqual(lines[1].split()[:3], ["bytes", "vader", "ropewalk"])
        self.assertEqual(lines[2].split(), ["8", "0.45", "(0.4-0.5)", "0.225", "0.50", "x", "vader"])
        self.assertEqual(lines[3].split(), ["4096", "1.5", "(1.5-1.5)", "3", "2.00", "x", "vader"])
        script = output.plot_script(benchmark, "near", rows, "/somewhere")
        self.assertIn("8 0.225 0.225 0.225", script)
        self.assertIn("/somewhere/latency-near.svg", script)


class Plots(unittest.TestCase):
    class benchmark:
        name, unit, more_is_better, stack_order, varies = "bandwidth", "MB/s", True, ["vader", "ropewalk"], "bytes"

    def rows(self, *every):
        return compared(list(every), True)["near"]

    def test_place_of_sizes(self):
        """No bytes have a place left of one byte, and a value of 0 has none; marks are written as sizes are given."""
        script = output.plot_script(self.benchmark, "near", self.rows(
            run("vader", (50, 50), s0=1, s1=2, s512=3, s4096=4, s1048576=5), run("ropewalk", (50, 50), s1=0)), ".")
        self.assertIn("0.5 1 1 1\n1 2 2 2\n", script)
        self.assertIn("set xtics (\"0\" 0.5, \"1\" 1, \"512\" 512, \"4K\" 4096, \"1M\" 1048576)", script)
        self.assertNotIn("ropewalk", script)

    def test_marks_do_not_crowd(self):
        marks = output.size_axis([2 ** n for n in range(23)]).count(",")
        self.assertTrue(6 <= marks <= 12, marks)

    def test_nothing_to_draw(self):
        self.assertIsNone(output.plot_script(self.benchmark, "near", self.rows(run("vader", (50, 50), s0=0)), "."))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_gnuplot_draws_it(self):
        """One picture for each benchmark and mode that has something to draw, with every stack in it."""
        every = [run("vader", (50, 50), s0=0, s8=10, s4096=300), run("ropewalk", (50, 50), s8=20, s4096=200)]
        empty = [run("vader", (50, 50), s0=0)]
        with tempfile.TemporaryDirectory() as folder:
            done = output.write_plots({"bandwidth": compared(every, True), "empty": compared(empty, True)},
                                      {"bandwidth": self.benchmark, "empty": self.benchmark}, folder)
            self.assertEqual(done, (["bandwidth-near.svg"], None))
            picture = "".join(xml.etree.ElementTree.parse(os.path.join(folder, done[0][0])).getroot().itertext())
        for text in ("bandwidth, CPUs near each other: more is better", "vader", "ropewalk", "4K"):
            self.assertIn(text, picture)


class Teams(unittest.TestCase):
    def test_ranks(self):
        """Of five ranks, programs for two take two, pairs take four, collective operations take all."""
        compare = runpy.run_path(os.path.join(HERE, "..", "..", "bench", "compare"))
        self.assertEqual({b.name: b.ranks(5) for b in compare["BENCHMARKS"] if b.family == "mpi"},
                         {"latency": 2, "bandwidth": 2, "bidirectional": 2, "multi_rate": 4, "multi_latency": 4,
                          "request_latency": 2, "exchange_latency": 2, "headed_latency": 2, "probe_latency": 2,
                          "test_time": 2, "blocking_rate": 2, "unexpected_rate": 2, "pipeline_time": 2,
                          "allreduce": 5, "alltoall": 5, "bcast": 5})


class Cores(unittest.TestCase):
    """A machine of two cores, whose CPUs are 0 and 2, 1 and 3."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for cpu in range(4):
            place = f"{self.root}/sys/devices/system/cpu/cpu{cpu}/topology"
            os.makedirs(place)
            with open(f"{place}/thread_siblings_list", "w") as f:
                f.write(f"{cpu % 2},{cpu % 2 + 2}\n")
        self.addCleanup(setattr, os, "sched_getaffinity", os.sched_getaffinity)

    def allow(self, *cpus):
        os.sched_getaffinity = lambda pid: set(cpus)

    def test_count(self):
        for cpus, cores in (((0, 1, 2, 3), 2), ((0, 2), 1), ((1, 2), 2), ((3,), 1), ((4, 5), 2)):
            self.allow(*cpus)
            self.assertEqual(machine.cores(self.root), cores, cpus)

    def test_binding(self):
        """A rank has a core of its own where there are enough, else a hardware thread."""
        self.allow(0, 1, 2, 3)
        self.addCleanup(setattr, machine, "cores", machine.cores)
        machine.cores = lambda count=machine.cores: count(self.root)
        for library in (stacks.OPENMPI, stacks.MPICH):
            self.assertEqual([stacks.LAUNCHERS[library](n)[-1] for n in (1, 2, 3, 4)],
                             ["core", "core", "hwthread", "hwthread"])


class Facts(unittest.TestCase):
    def test_build(self):
        """The source's commit is no fact about the build: when that was made is told."""
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(machine.built(folder))
            os.mkdir(f"{folder}/.libs")
            open(f"{folder}/.libs/libropewalk-fi.so", "w").close()
            os.utime(f"{folder}/.libs/libropewalk-fi.so", (10 ** 9, 10 ** 9))
            self.assertRegex(machine.facts(folder, folder)["ropewalk_built"], "^2001-09-0[89] ..:..:40 [+-]....$")


class Hosts(unittest.TestCase):
    def setUp(self):
        """Two hosts whose packets have 1500 bytes are there already."""
        self.said = {"keepers": "7,8\n", "cat": "1500\n", "ip": "mtu 1500 gso_max_size 65536 gso_max_segs 65535\n"}
        self.addCleanup(setattr, hosts, "command", hosts.command)
        hosts.command = lambda *words: self.said[words[2] if words[0] == "exec" else words[0]]
        self.addCleanup(os.environ.pop, "VIRTUAL_HOSTS", None)
        os.environ["VIRTUAL_HOSTS"] = "there"

    def refused(self, *asked):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            hosts.enter(*asked)
        return said.getvalue()

    def test_taken_as_they_are(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual((hosts.enter(2), hosts.enter(2, 1500)), (1500, 1500))
        self.assertEqual(said.getvalue(), "")
        self.assertIn("3 hosts are needed, and there are 2 already", self.refused(3, 1500))
        self.assertIn("--mtu 9000: the hosts that are there already have 1500", self.refused(2, 9000))

    def test_loss_is_told(self):
        self.said["ip"] = "mtu 1500 gso_max_size 65536 gso_max_segs 1\n"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            hosts.enter(2)
        self.assertIn("# the hosts that are there already lose packets", said.getvalue())


class BetweenHosts(unittest.TestCase):
    """bench/progress and bench/footprint with jobs that are made by hand."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.replace(hosts, "enter", lambda count, mtu=None: 9000)
        self.replace(stacks, "find_build", lambda who, given: self.folder)
        self.replace(os, "geteuid", lambda: 0)
        self.replace(os, "environ", dict(os.environ, FI_ROPEWALK_LINK="udp", FI_ROPEWALK_JOB_KEY="hush"))

    def replace(self, where, name, value):
        self.addCleanup(setattr, where, name, getattr(where, name))
        setattr(where, name, value)

    def main(self, name, run, *words):
        """What the program prints with jobs made by that function."""
        loader = importlib.machinery.SourceFileLoader(name, os.path.join(HERE, "..", "..", "bench", name))
        program = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        loader.exec_module(program)
        program.run = run
        self.replace(sys, "argv", [name, *words])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            program.main()
        self.assertIn("# environment: FI_ROPEWALK_LINK=udp\n", said.getvalue())
        self.assertNotIn("hush", said.getvalue())
        return said.getvalue()

    def content(self, name):
        with open(os.path.join(self.folder, name)) as f:
            content = json.load(f)
        self.assertEqual((content["mtu"], content["environment"]["FI_ROPEWALK_LINK"]), (9000, "udp"))
        self.assertEqual(content["environment"]["FI_ROPEWALK_JOB_KEY"], "(secret)")

    def progress(self, *words):
        def run(service, args):
            return {("put", t): {"measure": "put", "target": t, "unit": "us", "value": 2, "longest_us": 3}
                    for t in ("waits", "computes")}
        said = self.main("progress", run, "--out", self.folder)
        self.content("progress.json")
        return said

    def test_progress_without_gnuplot(self):
        self.replace(shutil, "which", lambda program: None)
        self.assertIn("gnuplot is not installed, so there are no plots", self.progress())

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_progress_with_gnuplot(self):
        said = self.progress()
        self.assertIn("progress-latency.svg", said)
        self.assertNotIn("no plots", said)

    def test_footprint(self):
        def run(service, args):
            return [dict.fromkeys(("seconds", "own", "initiators", "targets", "sockets", "sockets_before", "descriptors",
                                   "rss_kib", "rss_kib_before", "pss_kib", "pss_kib_before", "anonymous_kib",
                                   "anonymous_kib_before"), 1)] * 4
        self.main("footprint", run, "--hosts", "2", "--ranks", "2", "--json", os.path.join(self.folder, "it.json"))
        self.content("it.json")


class Children(unittest.TestCase):
    def test_output(self):
        self.assertEqual(runs.run_child(["sh", "-c", "echo word"], None, 20), "word\n")

    def test_failure_says_why(self):
        with self.assertRaisesRegex(runs.Failure, "exit status 3: no luck"):
            runs.run_child(["sh", "-c", "echo no luck >&2; exit 3"], None, 20)

    def test_hanging_child_and_its_children_are_killed(self):
        runs.PATIENCE, usual = 0.5, runs.PATIENCE
        self.addCleanup(setattr, runs, "PATIENCE", usual)
        with tempfile.TemporaryDirectory() as folder:
            pid_file = os.path.join(folder, "pid")
            command = ["sh", "-c", f"trap '' TERM; sleep 50 & echo $! >{pid_file}; echo started; wait"]
            start = time.monotonic()
            with self.assertRaisesRegex(runs.Failure, "not done after 3 s, killed: started"):
                runs.run_child(command, None, 3)
            self.assertLess(time.monotonic() - start, 30)
            with open(pid_file) as f:
                grandchild = int(f.read())
            self.assertTrue(gone(grandchild))


def gone(pid, patience=30):
    """Whether the process ends, or is only a zombie that its new parent has not collected."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


class Turns(unittest.TestCase):
    def test_order_and_failure(self):
        """Stacks take turns within each group of sizes; one that fails is noted and leaves that benchmark."""
        order, started = [], []

        class Named:
            def __init__(self, name):
                self.name = name

        class FakeRunner:
            def one(self, stack, program, ranks, arguments):
                order.append((program, arguments[1], stack.name))
                started.append(ranks)
                if (program, stack.name) == ("latency", "b"):
                    raise runs.Failure("boom")
                return {"unit": "us", "library": "x", "results": [{"size": 8, "median": 1.0}]}, [50, 50]

        failures = []
        stacks = [Named("a"), Named("b"), Named("c")]
        latency, bcast = [Benchmark(name, "mpi", name, "us", False, [8], None) for name in ("latency", "bcast")]
        plan = [(latency, 2, [[8], [64, 128]], stacks), (bcast, 4, [[8]], stacks)]
        with contextlib.redirect_stderr(io.StringIO()):
            done = runs.run_all(FakeRunner(), plan, 2, failures)
        self.assertEqual([o[2] for o in order if o[:2] == ("latency", "8")], ["a", "b", "c", "a", "c"])
        self.assertEqual([o[2] for o in order if o[:2] == ("latency", "64,128")], ["a", "c", "a", "c"])
        self.assertEqual([o[2] for o in order if o[0] == "bcast"], ["a", "b", "c", "a", "b", "c"])
        self.assertEqual([(f["benchmark"], f["stack"], f["reason"]) for f in failures], [("latency", "b", "boom")])
        self.assertEqual(len(done), len(order) - 1)
        self.assertEqual(started, [2 if program == "latency" else 4 for program, _, _ in order])

    def test_goodput(self):
        """The loss is set once before the stacks take their turns, and stands in the place of the size; it does not
        stay."""
        order = []

        class FakeRunner:
            def one(self, stack, program, ranks, arguments):
                order.append((program, arguments[:2]))
                return {"unit": "MB/s", "library": "x", "results": [{"size": 65536, "median": 700.0}]}, [50, 50]

        class Stack:
            name = "tcp"

        for name, stand_in in (("lose", order.append), ("lose_none", lambda: order.append("off"))):
            self.addCleanup(setattr, hosts, name, getattr(hosts, name))
            setattr(hosts, name, stand_in)
        goodput = Goodput([0, 0.1], 65536, 0.02)
        self.assertEqual([g.arguments([0])[2:4] for g in (goodput, Goodput([0], 65536, 2))], [["-t", "0.5"], ["-t", "2"]])
        done = runs.run_all(FakeRunner(), [(goodput, 2, goodput.groups(), [Stack])], 2, [])
        run = ("bandwidth", ["-s", "65536"])
        self.assertEqual(order, [0, run, run, 0.1, run, run, "off"])
        self.assertEqual([r["results"] for r in done], [{0: 700.0}, {0: 700.0}, {0.1: 700.0}, {0.1: 700.0}])
        goodput.stack_order = ["tcp"]
        rows = compared(done, True)["near"]
        self.assertEqual(output.table(goodput, "near", analysis.count_modes(done), rows)[1].split()[:2], LOSS.split())
        script = output.plot_script(goodput, "near", rows, ".")
        self.assertIn("0.0 700.0 700.0 700.0\n0.1 700.0", script)
        self.assertNotIn("set logscale x", script)

        def interrupted(self, *_):
            raise SystemExit

        FakeRunner.one = interrupted
        with self.assertRaises(SystemExit):
            runs.run_all(FakeRunner(), [(goodput, 2, goodput.groups(), [Stack])], 2, [])
        self.assertEqual(order[-2:], [0, "off"])


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "results")
        results.write_json(self.path, "of yesterday")

    def room(self, size):
        """So much can be written to a file, as if the disk were full then."""
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, usual)

    def are(self, words):
        """In the one file that there is besides a link."""
        self.assertEqual(set(os.listdir(self.folder)) - {"link"}, {"results"})
        with open(self.path) as f:
            self.assertEqual(f.read(), f'"{words}"\n')

    def test_no_room(self):
        """The file is as it was, nothing else is left, and what is wrong is said."""
        self.room(100000)
        with self.assertRaisesRegex(SystemExit, "^.*: the results were not written: .*/results: File too large$"):
            results.write_json(self.path, "x" * 150000)
        self.are("of yesterday")

    def test_no_json(self):
        with self.assertRaises(TypeError):
            results.write_json(self.path, ["of today", object()])
        self.are("of yesterday")

    def test_link(self):
        """The file that it names is replaced, not the link."""
        link = os.path.join(self.folder, "link")
        os.symlink("results", link)
        results.write_json(arguments.writable(link), "of today")
        self.assertTrue(os.path.islink(link))
        self.are("of today")


class Arguments(unittest.TestCase):
    def test_a_file_for_results(self):
        """That it cannot be written is told at once; what is in it stays until there are results."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results")
            with open(path, "w") as f:
                f.write("of yesterday")
            self.assertEqual(arguments.writable(path), path)
            with open(path) as f:
                self.assertEqual(f.read(), "of yesterday")
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "No such file"):
                arguments.writable(os.path.join(folder, "absent", "results"))
            self.assertEqual(arguments.writable(path + "2"), path + "2")
            self.assertFalse(os.path.exists(path + "2"))

    def test_seconds(self):
        self.assertEqual(arguments.seconds(60)("60"), 60)
        for bad in ("60.1", "0", "nan", "x", "-1"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "at most 60"):
                arguments.seconds(60)(bad)


if __name__ == "__main__":
    unittest.main()
