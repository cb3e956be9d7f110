# SPDX-License-Identifier: BSD-3-Clause
"""The stacks that are compared: how each is started, and what it takes to be present."""
import os
import re
import shutil
import subprocess
import sys

import hosts
import machine

MPI, FABRIC = "mpi", "fabric"
MPI_ONE_SIDED, FABRIC_ONE_SIDED = "one-sided mpi", "one-sided fabric"
FIRST_TRY = {MPI: "latency", FABRIC: "latency", MPI_ONE_SIDED: "put_latency", FABRIC_ONE_SIDED: "write_latency"}
OURS = "ropewalk"

OPENMPI = "openmpi"
MPICH = "mpich"


def leave_out_settings():
    """What the user has set of Open MPI's transports is meant for other jobs (contrib/lib.sh has the same)."""
    for name, value in list(os.environ.items()):
        if re.fullmatch(r"OMPI_MCA_(pml|mtl|btl|osc)(_.*)?", name):
            print(f"{os.path.basename(sys.argv[0])}: {name}={value} is left out: which transport a job takes, and how, "
                  "is chosen here", file=sys.stderr)
            del os.environ[name]


class Stack:
    """One way to run a benchmark."""

    def __init__(self, name, family, build, library=None, options=(), env=None, launcher=None):
        self.name = name
        self.family = family
        self.build = build
        self.library = library  # which MPI library its programs are compiled for
        self.options = list(options)
        self.env = dict(env or {})
        self.launcher = launcher or LAUNCHERS.get(library)  # ranks -> the words that start so many

    def command(self, program, ranks):
        """The command line up to the program; its arguments follow."""
        if self.family in (FABRIC, FABRIC_ONE_SIDED):
            return [os.path.join(self.build, "bench", "ofi", program)] + self.options
        return self.launcher(ranks) + self.options + [os.path.join(self.build, "bench", self.library, program)]

    def set(self, variables):
        """Gives its processes variables of their environment; Open MPI takes them to other hosts only if told to."""
        if self.library == OPENMPI:
            self.options += [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        else:
            self.env.update(variables)

    def environment(self):
        env = dict(os.environ, **self.env)
        if os.geteuid() == 0:
            env["OMPI_ALLOW_RUN_AS_ROOT"] = env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        return env


def openmpi_launcher():
    return "mpirun.openmpi" if shutil.which("mpirun.openmpi") else "mpirun"


def unit(ranks):
    """What each rank has for itself: a core if there are so many, else a hardware thread."""
    return "core" if ranks <= machine.cores() else "hwthread"


LAUNCHERS = {
    OPENMPI: lambda ranks: [openmpi_launcher(), "-n", str(ranks), "--bind-to", unit(ranks)],
    MPICH: lambda ranks: ["mpirun.mpich", "-n", str(ranks), "-bind-to", unit(ranks)],
}
OB1 = ["--mca", "pml", "ob1", "--mca", "btl"]
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
OFI = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include"]
# Open MPI's one-sided operations: over a BTL that has them, or over UCX, or made of messages.
OSC_RDMA, OSC_UCX, OSC_MESSAGES = (["--mca", "osc", name] for name in ("rdma", "ucx", "pt2pt"))
OSC_OFI = OSC_RDMA + ["--mca", "btl", "self,ofi", "--mca", "osc_rdma_btls", "ofi", "--mca", "btl_ofi_provider_include"]


def stacks_on_a_node(build):
    """Every stack known, present or not."""
    ours = {"FI_PROVIDER_PATH": provider_folder(build)}
    return [
        Stack("vader", MPI, build, OPENMPI, OB1 + ["vader,self"]),
        Stack("ucx", MPI, build, OPENMPI, UCX),
        Stack("mpich", MPI, build, MPICH),
        Stack(OURS, MPI, build, OPENMPI, OFI + ["ropewalk"], ours),
        Stack("vader", MPI_ONE_SIDED, build, OPENMPI, OB1 + ["vader,self"] + OSC_RDMA),
        Stack("ucx", MPI_ONE_SIDED, build, OPENMPI, UCX + OSC_UCX),
        Stack("mpich", MPI_ONE_SIDED, build, MPICH),
        Stack(OURS, MPI_ONE_SIDED, build, OPENMPI, OFI + ["ropewalk"] + OSC_OFI + ["ropewalk"], ours),
    ] + [
        Stack(name, family, build, options=["-p", name], env=ours if name == OURS else None)
        for family in (FABRIC, FABRIC_ONE_SIDED) for name in ("shm", "tcp;ofi_rxm", OURS)
    ]


def stacks_between_hosts(build):
    """Every stack known; what their ranks need to know goes there with -x. Bare libfabric's programs stay on a node."""
    ours = ["-x", f"FI_PROVIDER_PATH={provider_folder(build)}"]
    ucx = UCX + ["-x", "UCX_TLS=tcp,self"]
    options = [
        ("tcp", MPI, OB1 + ["tcp,self"]),
        ("ucx", MPI, ucx),
        ("tcp;ofi_rxm", MPI, OFI + ["tcp;ofi_rxm"]),
        ("udp;ofi_rxd", MPI, OFI + ["udp;ofi_rxd"]),
        (OURS, MPI, OFI + ["ropewalk"] + ours),
        ("tcp", MPI_ONE_SIDED, OB1 + ["tcp,self"] + OSC_MESSAGES),
        ("ucx", MPI_ONE_SIDED, ucx + OSC_UCX),
        (OURS, MPI_ONE_SIDED, OFI + ["ropewalk"] + OSC_OFI + ["ropewalk"] + ours),
    ]
    return [Stack(name, family, build, OPENMPI, words, launcher=hosts.launcher) for name, family, words in options]


def find_build(who, given):
    """The build folder: the given one, else the current one or the source folder. Ends if it has not been built."""
    places = [given] if given else [os.getcwd(), os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))]
    for place in places:
        if os.path.exists(os.path.join(place, "bench", "limits")) and os.path.exists(os.path.join(place, "Makefile")):
            return os.path.realpath(place)
    sys.exit(f"{who}: no built benchmarks in {' or '.join(places)}: run make there, "
             f"or name the build folder with --build")


def provider_folder(build):
    return os.path.join(build, ".libs")


def why_missing(stack):
    """Why a stack cannot be run here, or None. Builds the programs for MPICH if need be."""
    provider = os.path.join(provider_folder(stack.build), "libropewalk-fi.so")
    if stack.name == OURS and not os.path.exists(provider):
        return f"{provider} is not there; build the provider first"
    if stack.library == MPICH:
        return build_mpich(stack.build)
    if stack.library == OPENMPI and not os.path.exists(os.path.join(stack.build, "bench", OPENMPI, "latency")):
        return "the Open MPI programs were not built; configure found no MPI compiler"
    if stack.library == OPENMPI and not shutil.which(openmpi_launcher()):
        return "no mpirun"
    return None


def build_mpich(build):
    """Compiles the programs for MPICH as `make` does for Open MPI. Returns why it could not, or None."""
    if not shutil.which("mpicc.mpich") or not shutil.which("mpirun.mpich"):
        return "no mpicc.mpich and mpirun.mpich (Debian: mpich, libmpich-dev)"
    # A header of MPICH's has gcc warn of MPI_STATUSES_IGNORE; that is no reason to leave MPICH out.
    done = subprocess.run(["make", "-C", build, "bench-mpi", "MPICC=mpicc.mpich", "BENCH_MPI_DIR=bench/mpich",
                           "BENCH_MPI_CFLAGS=-Wno-error"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return None if done.returncode == 0 else "its programs do not compile:\n" + done.stdout[-2000:]
