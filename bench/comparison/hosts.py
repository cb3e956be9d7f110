# SPDX-License-Identifier: BSD-3-Clause
"""The virtual hosts that a comparison between hosts runs on: contrib/virtual-hosts."""
import os
import re
import subprocess
import sys

SCRIPT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "contrib", "virtual-hosts"))


MTU = 9000  # of hosts for which none is named


def enter(count, mtu=None):
    """Starts this program again with hosts around it, which end with it. Hosts that are there already are taken, if there
    are so many, and with that MTU where one is named. Returns the MTU."""
    if "VIRTUAL_HOSTS" not in os.environ:
        sys.stdout.flush()
        os.execv(SCRIPT, [SCRIPT, "run", str(count), "--mtu", str(mtu or MTU), "--", sys.executable, *sys.argv])
    there = len(command("keepers").split(","))
    if there != count:
        refuse(f"{count} hosts are needed, and there are {there} already")
    theirs = int(command("exec", "1", "cat", "/sys/class/net/eth0/mtu"))
    if mtu not in (None, theirs):
        refuse(f"--mtu {mtu}: the hosts that are there already have {theirs}")
    if lossy():
        print("# the hosts that are there already lose packets, or have their bursts cut (contrib/virtual-hosts loss)")
    return theirs


def refuse(why):
    print(f"{os.path.basename(sys.argv[0])}: {why} (contrib/virtual-hosts status)", file=sys.stderr)
    sys.exit(2)


def command(*words):
    """Runs a command of the script and returns what it prints."""
    done = subprocess.run([SCRIPT, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60)
    if done.returncode:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {done.stdout.strip()}")
    return done.stdout


def lose(percentage):
    """So many percent of all packets are lost from now on."""
    command("loss", f"{percentage:g}", "--proto", "all")


def lose_none():
    """And none any more."""
    command("loss", "off")


def lossy():
    """Has a loss been set, of 0 even? Then the kernel's bursts are cut into packets."""
    return re.search(r"\bgso_max_segs 1\b", command("exec", "1", "ip", "-d", "link", "show", "eth0")) is not None


def keepers():
    """The processes that hold the first two hosts, as bench/limits takes them."""
    return ",".join(command("keepers").strip().split(",")[:2])


def launcher(ranks):
    """Open MPI over the hosts. A build with sanitizers is told what to pass over there too."""
    passed = [word for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ for word in ("-x", name)]
    return [SCRIPT, "mpirun", "-n", str(ranks), *passed]
