# SPDX-License-Identifier: BSD-3-Clause
"""Facts about the machine and the software on it, for the record."""
import os
import platform
import re
import subprocess
import time


def first_line(command):
    """The first line that a command prints, or None where it is not there."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip("# ") for line in done.stdout.splitlines() if line.strip("# ")]
    return lines[0] if lines and done.returncode == 0 else None


def read(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return None


def cpu_model():
    for line in (read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "CPU implementer"):
            return value.strip()
    return platform.machine()


def cores(root=""):
    """How many cores this process may use: the hardware threads of one count once. /sys is looked for in root."""
    return len({read(f"{root}/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or cpu
                for cpu in os.sched_getaffinity(0)})


def mpich_version():
    try:
        text = subprocess.run(["mpichversion"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next((" ".join(line.split()) for line in text.splitlines() if line.startswith("MPICH Version")), None)


def tell_environment():
    """Prints and returns what is set of the libraries that are measured: it goes to all stacks that look at it, and a
    stack may be another one by it. A secret is not told. (contrib/lib.sh has the same.)"""
    told = {name: "(secret)" if name == "FI_ROPEWALK_JOB_KEY" else value for name, value in sorted(os.environ.items())
            if re.match(r"(FI|UCX|OMPI_MCA|MPICH|MPIR_CVAR)_", name)}
    for name, value in told.items():
        print(f"# environment: {name}={value}")
    return told


def built(build):
    """When the provider was linked, which may have been long before the source became what it is."""
    try:
        at = os.stat(os.path.join(build, ".libs", "libropewalk-fi.so")).st_mtime
    except OSError:
        return None
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at))


def facts(source, build):
    """Everything that a reader of the figures may ask about; None for what is not there."""
    return {
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "cores_allowed": cores(),
        "kernel": platform.release(),
        "load_at_start": os.getloadavg()[0],
        "transparent_hugepages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "ptrace_scope": read("/proc/sys/kernel/yama/ptrace_scope"),
        "source": first_line(["git", "-C", source, "describe", "--always", "--dirty"]),
        "ropewalk_built": built(build),
        "open_mpi": first_line(["ompi_info", "--version"]),
        "ucx": first_line(["ucx_info", "-v"]),
        "mpich": mpich_version(),
        "libfabric": first_line(["fi_info", "--version"]),
    }
