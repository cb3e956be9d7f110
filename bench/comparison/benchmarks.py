# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks: what is started with which arguments, and what varies within each."""
import hosts
from stacks import FABRIC, FABRIC_ONE_SIDED, MPI, MPI_ONE_SIDED

TWO, PAIRS, ALL = "two ranks", "pairs of ranks", "all ranks"
K, M = 1 << 10, 1 << 20
QUICK_SIZES = [8, 64, 256, K, 4 * K, 16 * K, 64 * K, M, 4 * M]
SIZE, LOSS = "bytes", "% lost"  # what varies, as the head of its column


class Benchmark:
    """One program over a list of sizes."""

    varies = SIZE
    grain = 1  # sizes are multiples of it

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
        self.options = []  # of the program, for all stacks alike

    def ranks(self, most):
        return {TWO: 2, PAIRS: most - most % 2, ALL: most}[self.team]

    def groups(self):
        """Sizes that one run measures, small and large apart, so that the stacks take turns quickly."""
        bounds = [256, 8 * K, 256 * K]
        groups = [[s for s in self.sizes if low < s <= high]
                  for low, high in zip([-1] + bounds, bounds + [1 << 30])]
        return [g for g in groups if g]

    def take_sizes(self, wanted):
        """Of the sizes that the user wants those that suit."""
        self.sizes = [s for s in wanted if not s % self.grain]

    def prepare(self, group):
        """Before the first run of a group."""

    def finish(self):
        """After the last run, also where one was interrupted."""

    def arguments(self, group):
        return ["-s", ",".join(map(str, group))] + self.options

    def results(self, group, rows):
        """{size: value}."""
        return {row["size"]: row["median"] for row in rows}


class Sums(Benchmark):
    """Adds up numbers of `grain` bytes."""

    def __init__(self, grain, *arguments, **named):
        super().__init__(*arguments, **named)
        self.grain = grain


class Word(Benchmark):
    """An operation on one word of 8 bytes, whatever sizes are wanted of others."""

    def __init__(self, name, family, program, options=()):
        super().__init__(name, family, program, "us", False, [8], TWO)
        self.options = list(options)

    def take_sizes(self, wanted):
        pass


class Goodput(Benchmark):
    """The bandwidth of messages of one size between hosts that lose some of the packets: percentages vary."""

    varies = LOSS

    def __init__(self, percentages, size, seconds):
        super().__init__("goodput", MPI, "bandwidth", "MB/s", True, percentages, TWO)
        self.size = size
        self.seconds = max(0.5, seconds)  # of a repeat: a loss is a rare event with a long shadow

    def groups(self):
        return [[percentage] for percentage in self.sizes]

    def prepare(self, group):
        hosts.lose(group[0])

    def finish(self):
        hosts.lose_none()

    def arguments(self, group):
        """Few iterations to warm up, which may be slow."""
        return ["-s", str(self.size), "-t", str(self.seconds), "-x", "2"]

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
    Benchmark("request_latency", MPI, "request_latency", "us", False, powers(8, M), TWO),
    Benchmark("exchange_latency", MPI, "exchange_latency", "us", False, powers(8, M), TWO),
    Benchmark("headed_latency", MPI, "headed_latency", "us", False, powers(8, M), TWO),
    Benchmark("probe_latency", MPI, "probe_latency", "us", False, powers(8, M), TWO),
    Benchmark("test_time", MPI, "test_time", "us", False, [8], TWO),
    Benchmark("blocking_rate", MPI, "blocking_rate", "msg/s", True, powers(8, M), TWO),
    Benchmark("unexpected_rate", MPI, "unexpected_rate", "msg/s", True, powers(8, 64 * K), TWO),
    Benchmark("pipeline_time", MPI, "pipeline_time", "us", False, powers(8, 64 * K), TWO),
    Sums(4, "allreduce", MPI, "allreduce", "us", False, powers(4, M), ALL),
    Benchmark("alltoall", MPI, "alltoall", "us", False, powers(1, M), ALL),
    Benchmark("bcast", MPI, "bcast", "us", False, powers(1, M), ALL),
    Benchmark("tagged_latency", FABRIC, "latency", "us", False, [0] + powers(1, 4 * M), TWO),
    Benchmark("tagged_bandwidth", FABRIC, "bandwidth", "MB/s", True, powers(1, 4 * M), TWO),
    Benchmark("tagged_rate", FABRIC, "rate", "msg/s", True, powers(8, 8 * K), TWO),
    Benchmark("put_latency", MPI_ONE_SIDED, "put_latency", "us", False, powers(1, 4 * M), TWO),
    Benchmark("get_latency", MPI_ONE_SIDED, "get_latency", "us", False, powers(1, 4 * M), TWO),
    Benchmark("put_bandwidth", MPI_ONE_SIDED, "put_bandwidth", "MB/s", True, powers(1, 4 * M), TWO),
    Benchmark("get_bandwidth", MPI_ONE_SIDED, "get_bandwidth", "MB/s", True, powers(1, 4 * M), TWO),
    Benchmark("put_rate", MPI_ONE_SIDED, "put_rate", "msg/s", True, powers(8, 8 * K), PAIRS),
    Sums(8, "accumulate_latency", MPI_ONE_SIDED, "accumulate_latency", "us", False, powers(8, M), TWO),
    Word("fetch_and_op_latency", MPI_ONE_SIDED, "fetch_and_op_latency"),
    # Open MPI's osc/rdma crashes in memory that it has allocated: https://github.com/open-mpi/ompi/issues/9146
    Word("compare_and_swap_latency", MPI_ONE_SIDED, "compare_and_swap_latency", ["--own-memory"]),
    Benchmark("rma_write_latency", FABRIC_ONE_SIDED, "write_latency", "us", False, powers(1, 4 * M), TWO),
    Benchmark("rma_read_latency", FABRIC_ONE_SIDED, "read_latency", "us", False, powers(1, 4 * M), TWO),
    Benchmark("rma_write_bandwidth", FABRIC_ONE_SIDED, "write_bandwidth", "MB/s", True, powers(1, 4 * M), TWO),
    Benchmark("rma_read_bandwidth", FABRIC_ONE_SIDED, "read_bandwidth", "MB/s", True, powers(1, 4 * M), TWO),
    Word("fetch_add_latency", FABRIC_ONE_SIDED, "fetch_add_latency"),
    Word("compare_swap_latency", FABRIC_ONE_SIDED, "compare_swap_latency"),
]
