# SPDX-License-Identifier: BSD-3-Clause
"""Tables and plots."""
import os
import shutil
import subprocess

from benchmarks import LOSS
from stacks import OURS

MODE_TITLES = {"near": "CPUs near each other", "far": "CPUs far from each other"}


def number(value):
    """Four significant digits, without an exponent."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"


def cell(summary):
    if not summary:
        return "-"
    if summary["runs"] == 1:
        return number(summary["median"])
    return f"{number(summary['median'])} ({number(summary['min'])}-{number(summary['max'])})"


def verdict(row):
    """The last column: the ratio, or why there is none."""
    if "ratio" in row:
        return f"{row['ratio']:.2f} x {row['best_peer']}"
    if row["absent"]:
        return "no run of " + ", ".join(row["absent"])
    return "-"


def better(benchmark):
    return "more is better" if benchmark.more_is_better else "less is better"


def table(benchmark, mode, modes, rows):
    """The lines of one benchmark in one mode."""
    names = [n for n in benchmark.stack_order if any(n in row["stacks"] for row in rows.values())]
    probe = modes[mode]
    lines = [f"{benchmark.name}, {benchmark.unit}, {better(benchmark)}; {MODE_TITLES[mode]}: "
             f"a line to the other core takes {probe['probe_min']:.0f}-{probe['probe_max']:.0f} ns"]
    cells = [[benchmark.varies] + names + [f"{OURS} / best peer"]]
    for size, row in rows.items():
        cells.append([str(size)] + [cell(row["stacks"].get(n)) for n in names] + [verdict(row)])
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return lines + ["  ".join(text.rjust(width) for text, width in zip(line, widths)) for line in cells]


def machine_lines(facts):
    return [f"# {key}: {value}" for key, value in facts.items() if value is not None]


def mode_lines(modes):
    lines = [f"# {mode}: {m['runs']} runs, a line to the other core took {m['probe_min']:.0f}-{m['probe_max']:.0f} ns"
             for mode, m in modes.items()]
    if "mixed" in modes:
        lines.append("# mixed runs, during which the machine changed its mode, are in the JSON only")
    if "disturbed" in modes:
        lines.append("# disturbed runs, during which something else ran on the cores, are in the JSON only; "
                     "leave the machine alone")
    return lines


# The same stack has the same colour in every plot.
COLOURS = {OURS: "#d62728", "vader": "#1f77b4", "ucx": "#2ca02c", "mpich": "#9467bd", "shm": "#1f77b4",
           "tcp": "#1f77b4", "tcp;ofi_rxm": "#ff7f0e", "udp;ofi_rxd": "#8c564b"}


def short_size(size):
    """As it is given to -s: 512, 4K, 1M."""
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if size and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def place(size):
    """Where a size stands on the axis, which is logarithmic and has no 0."""
    return size or 0.5


def size_axis(sizes):
    """Gnuplot's commands for the axis of these sizes (ascending): a dozen marks at most, room at both ends."""
    marked = sizes[::-1][::1 + (len(sizes) - 1) // 12][::-1]
    marks = ", ".join(f"\"{short_size(size)}\" {place(size)}" for size in marked)
    return (f"set logscale x 2\nset xrange [{place(sizes[0]) / 1.4}:{place(sizes[-1]) * 1.4}]\n"
            f"set xtics ({marks})\nset xlabel \"bytes\"\n")


def loss_axis(percentages):
    """The same for percentages of lost packets; 0 is a place like others."""
    return f"set xrange [-0.2:{percentages[-1] + 0.2}]\nset xlabel \"packets lost, %\"\n"


def plot_script(benchmark, mode, rows, folder):
    """Gnuplot's commands for one benchmark in one mode, with the data in them; writes <benchmark>-<mode>.svg.

    None where there is nothing to draw: 0, as the bandwidth of messages without bytes is, has no place on the axis.
    """
    plots, blocks, sizes = [], [], set()
    at, axis = (float, loss_axis) if benchmark.varies == LOSS else (place, size_axis)
    for index, name in enumerate(benchmark.stack_order):
        points = [(size, s) for size, row in rows.items() if (s := row["stacks"].get(name)) and s["min"] > 0]
        if not points:
            continue
        width = 3 if name == OURS else 1.5
        plots.append(f"$d{index} using 1:2:3:4 with yerrorlines lw {width} pt 7 ps 0.5 lc rgb \"{COLOURS[name]}\" "
                     f"title \"{name}\"")
        lines = [f"{at(size)} {s['median']} {s['min']} {s['max']}" for size, s in points]
        blocks.append(f"$d{index} << EOD\n" + "\n".join(lines) + "\nEOD\n")
        sizes.update(size for size, _ in points)
    if not plots:
        return None
    target = os.path.join(folder, f"{benchmark.name}-{mode}.svg").replace("\"", "\\\"")
    return "".join(blocks) + (
        "set terminal svg size 900,600 background \"white\" noenhanced\n"
        f"set output \"{target}\"\n"
        f"set logscale y\nset format y \"{'%.0s%c' if benchmark.unit == 'msg/s' else '%g'}\"\n"
        "set grid\nset key outside top center horizontal\n"
        f"set title \"{benchmark.name}, {MODE_TITLES[mode]}: {better(benchmark)}\"\n"
        f"set ylabel \"{benchmark.unit}\"\n" + axis(sorted(sizes)) +
        "plot " + ", \\\n     ".join(plots) + "\n")


def write_plots(compared, benchmarks, folder):
    """Returns (files written, why there are none or fewer)."""
    if not shutil.which("gnuplot"):
        return [], "gnuplot is not installed, so there are no plots"
    written = []
    for name, modes in compared.items():
        for mode, rows in modes.items():
            script = plot_script(benchmarks[name], mode, rows, folder)
            if not script:
                continue
            done = subprocess.run(["gnuplot"], input=script, text=True, timeout=60, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            if done.returncode:
                return written, f"gnuplot failed on {name}: {done.stdout[-500:]}"
            written.append(f"{name}-{mode}.svg")
    return written, None
