# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks: what is started with which arguments, and what varies within each."""
import hosts
from stacks import FABRIC, MPI

TWO, PAIRS, ALL = "two ranks", "pairs of ranks", "all ranks"
K, M = 1 << 10, 1 << 20
QUICK_SIZES = [8, 64, 256, K, 4 * K, 16 * K, 64 * K, M, 4 * M]
SIZE, LOSS = "bytes", "% lost"  # what varies, as the head of its column


class Benchmark:
    """One program over a list of sizes."""

    varies = SIZE

    def __init__(self, name, family, program, unit, more_is_better, sizes, team, quick=False):
        self.name = name
        self.family = family
        self.program = program
        self.unit = unit
        self.more_is_better = more_is_better
        self.sizes = sizes
        self.team = team  # TWO, PAIRS or ALL: of the ranks that there may be
        self.quick = quick  # part of --quick
        self.stack_order = []

    def ranks(self, most):
        return {TWO: 2, PAIRS: most - most % 2, ALL: most}[self.team]

    def groups(self):
        """Sizes that one run measures, small and large apart, so that the stacks take turns quickly."""
        bounds = [256, 8 * K, 256 * K]
        groups = [[s for s in self.sizes if low < s <= high]
                  for low, high in zip([-1] + bounds, bounds + [1 << 30])]
        return [g for g in groups if g]

    def prepare(self, group):
        """Before the first run of a group."""

    def arguments(self, group):
        return ["-s", ",".join(map(str, group))]

    def results(self, group, rows):
        """{size: value}."""
        return {row["size"]: row["median"] for row in rows}


class Goodput(Benchmark):
    """The bandwidth of messages of one size between hosts that lose some of the packets: percentages vary."""

    varies = LOSS

    def __init__(self, percentages, size):
        super().__init__("goodput", MPI, "bandwidth", "MB/s", True, percentages, TWO)
        self.size = size

    def groups(self):
        return [[percentage] for percentage in self.sizes]

    def prepare(self, group):
        hosts.lose(group[0])

    def arguments(self, group):
        """Longer repeats, as a loss is a rare event with a long shadow; few iterations to warm up, which may be slow."""
        return ["-s", str(self.size), "-t", "0.5", "-x", "2"]

    def results(self, group, rows):
        return {group[0]: rows[0]["median"]}


def powers(first, last):
    sizes = [first]
    while sizes[-1] * 2 <= last:
        sizes.append(sizes[-1] * 2)
    return sizes


BENCHMARKS = [
    Benchmark("latency", MPI, "latency", "us", False, [0] + powers(1, 4 * M), TWO, quick=True),
    Benchmark("bandwidth", MPI, "bandwidth", "MB/s", True, powers(1, 4 * M), TWO, quick=True),
    Benchmark("bidirectional", MPI, "bidirectional", "MB/s", True, powers(1, 4 * M), TWO),
    Benchmark("multi_rate", MPI, "multi_rate", "msg/s", True, powers(8, 8 * K), PAIRS, quick=True),
    Benchmark("multi_latency", MPI, "multi_latency", "us", False, powers(8, M), PAIRS),
    Benchmark("allreduce", MPI, "allreduce", "us", False, powers(4, M), ALL),
    Benchmark("alltoall", MPI, "alltoall", "us", False, powers(1, M), ALL),
    Benchmark("bcast", MPI, "bcast", "us", False, powers(1, M), ALL),
    Benchmark("tagged_latency", FABRIC, "latency", "us", False, [0] + powers(1, 4 * M), TWO),
    Benchmark("tagged_bandwidth", FABRIC, "bandwidth", "MB/s", True, powers(1, 4 * M), TWO),
    Benchmark("tagged_rate", FABRIC, "rate", "msg/s", True, powers(8, 8 * K), TWO),
]
