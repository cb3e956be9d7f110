# SPDX-License-Identifier: BSD-3-Clause
"""What is concluded from the runs. Pure: runs in, figures out.

A run is one program started once: {"benchmark", "stack", "ranks", "round", "probes": [before, after],
"results": {size: value}}; where loss is what varies, a percentage stands in the place of the size.
The two cores of a virtual machine may be two threads of one physical core in one second (they are near) and two cores
in the next (far), and a line between them then takes four times as long, so every run is taken between two probes of
that time, and only runs of one mode are compared with each other. A probe far above both modes says that something else
was running on one of the cores.
"""
from statistics import median

MODE_WIDTH = 1.6  # a probe up to this much above the quickest one says that the cores are near
BUSY_WIDTH = 10  # a probe more than this many times the quickest one has been disturbed

NEAR, FAR, MIXED, DISTURBED = "near", "far", "mixed", "disturbed"


def mode_of_probe(probe, quickest):
    if probe <= MODE_WIDTH * quickest:
        return NEAR
    return FAR if probe <= BUSY_WIDTH * quickest else DISTURBED


def mode_of(run, quickest):
    """The mode of a run: MIXED where the machine changed between its two probes."""
    modes = {mode_of_probe(p, quickest) for p in run["probes"]}
    if DISTURBED in modes:
        return DISTURBED
    return modes.pop() if len(modes) == 1 else MIXED


def assign_modes(runs):
    """Sets run["mode"] on each run. The modes of all runs are judged against the same quickest probe."""
    quickest = min((p for run in runs for p in run["probes"]), default=0)
    for run in runs:
        run["mode"] = mode_of(run, quickest)


def count_modes(runs):
    """{mode: {"runs", "probe_min", "probe_max"}} for the modes that occurred."""
    counts = {}
    for mode in (NEAR, FAR, MIXED, DISTURBED):
        probes = [p for run in runs if run["mode"] == mode for p in run["probes"]]
        if probes:
            counts[mode] = {"runs": len(probes) // 2, "probe_min": min(probes), "probe_max": max(probes)}
    return counts


def summary(values):
    return {"median": median(values), "min": min(values), "max": max(values), "runs": len(values)}


def compare_size(by_stack, more_is_better, ours, everyone):
    """One row: each stack's summary, the best peer, and the ratio of ours to it.

    The ratio is there only when everyone has a result here: the best of some of the peers would be a kind judge.
    """
    row = {"stacks": {name: summary(values) for name, values in by_stack.items() if values}}
    peers = {name: s["median"] for name, s in row["stacks"].items() if name != ours}
    row["absent"] = sorted(everyone - set(row["stacks"]))
    if peers:
        row["best_peer"] = (max if more_is_better else min)(peers, key=peers.get)
    if ours in row["stacks"] and peers and not row["absent"]:
        judge = peers[row["best_peer"]]
        if judge:  # the bandwidth of messages without bytes is 0 for everybody
            row["ratio"] = row["stacks"][ours]["median"] / judge
    return row


def compare_benchmark(runs, more_is_better, ours, everyone):
    """{mode: {size: row}} of one benchmark's runs, whose modes are set. Mixed and disturbed runs are left out. `everyone`
    is the stacks that were to run it at each size, also those that failed."""
    everyone = set(everyone)
    modes = {}
    for mode in (NEAR, FAR):
        rows = {}
        for size in sorted({size for run in runs for size in run["results"]}):
            by_stack = {}
            for run in runs:
                if run["mode"] == mode and size in run["results"]:
                    by_stack.setdefault(run["stack"], []).append(run["results"][size])
            if by_stack:
                rows[size] = compare_size(by_stack, more_is_better, ours, everyone)
        if rows:
            modes[mode] = rows
    return modes


def why_no_table(runs):
    """A sentence where no run, whose mode is set, counts; else None."""
    if not runs:
        return "there is no table: nothing ran to its end"
    if not any(run["mode"] in (NEAR, FAR) for run in runs):
        return (f"there is no table: each of the {len(runs)} runs was disturbed, or saw the machine change its mode; "
                "run it again while the machine has nothing else to do")
    return None
