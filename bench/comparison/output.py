# SPDX-License-Identifier: BSD-3-Clause
"""Tables, plots, JSON."""
import json
import os
import shutil
import subprocess

from stacks import OURS

MODE_TITLES = {"fast": "fast mode", "slow": "slow mode"}


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


def table(benchmark, mode, modes, rows):
    """The lines of one benchmark in one mode."""
    names = [n for n in benchmark.stack_order if any(n in row["stacks"] for row in rows.values())]
    better = "more is better" if benchmark.more_is_better else "less is better"
    probe = modes[mode]
    lines = [f"{benchmark.name}, {benchmark.unit}, {better}; {MODE_TITLES[mode]}: "
             f"a line to the other core takes {probe['probe_min']:.0f}-{probe['probe_max']:.0f} ns"]
    cells = [["bytes"] + names + [f"{OURS} / best peer"]]
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


def plot_script(benchmark, mode, rows, folder):
    """Gnuplot's commands for one benchmark in one mode, with the data in them; writes <benchmark>-<mode>.svg."""
    names = [n for n in benchmark.stack_order if any(n in row["stacks"] for row in rows.values())]
    plots, blocks = [], []
    for index, name in enumerate(names):
        width = 3 if name == OURS else 1.5
        plots.append(f"$d{index} using 1:2:3:4 with yerrorlines lw {width} title \"{name}\"")
        points = [f"{max(size, 0.5)} {s['median']} {s['min']} {s['max']}"
                  for size, row in rows.items() if (s := row["stacks"].get(name))]
        blocks.append(f"$d{index} << EOD\n" + "\n".join(points) + "\nEOD\n")
    target = os.path.join(folder, f"{benchmark.name}-{mode}.svg").replace("\"", "\\\"")
    return "".join(blocks) + (
        "set terminal svg size 900,600 background \"white\" noenhanced\n"
        f"set output \"{target}\"\n"
        "set logscale x 2\nset logscale y\nset format x \"%.0b%B\"\nset grid\nset key top left\n"
        f"set title \"{benchmark.name}, {MODE_TITLES[mode]}\"\n"
        f"set xlabel \"bytes\"\nset ylabel \"{benchmark.unit}\"\n"
        "plot " + ", \\\n     ".join(plots) + "\n")


def write_plots(compared, benchmarks, folder):
    """Returns (files written, why there are none or fewer)."""
    if not shutil.which("gnuplot"):
        return [], "gnuplot is not installed, so there are no plots"
    written = []
    for name, modes in compared.items():
        for mode, rows in modes.items():
            script = plot_script(benchmarks[name], mode, rows, folder)
            done = subprocess.run(["gnuplot"], input=script, text=True, timeout=60, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            if done.returncode:
                return written, f"gnuplot failed on {name}: {done.stdout[-500:]}"
            written.append(f"{name}-{mode}.svg")
    return written, None


def write_json(path, content):
    """Whole or not at all."""
    with open(path + ".part", "w") as f:
        json.dump(content, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)
