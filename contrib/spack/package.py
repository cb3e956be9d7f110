# SPDX-License-Identifier: BSD-3-Clause
"""Spack's recipe, for Spack from 0.23 on. Put the folder into a repository of recipes of your own
as packages/ropewalk, and a release's archive where the url says, or its place into the url;
`spack install --no-checksum ropewalk`."""

from spack.package import *

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass  # before Spack 1.0 it comes with spack.package


class Ropewalk(AutotoolsPackage):
    """MPI-oriented communication middleware behind libfabric: shared memory inside a node,
    RoCEv2 packets over ordinary UDP sockets or TCP between nodes, chosen for each peer and
    explained."""

    # The archive that `make dist` makes is what a release is made of; it has no public place yet.
    url = "file:///ropewalk-0.1.0.tar.xz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("isal", default=True, description="CRC-32 by carry-less multiplication")
    variant("pmix", default=True, description="take the job map from PMIx")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@1.17:")
    depends_on("hwloc@2:")
    depends_on("libsodium@1.0.12:")
    depends_on("uthash", type="build")
    depends_on("isa-l@2.20:", when="+isal")
    depends_on("pmix@3:", when="+pmix", type="build")

    conflicts("platform=darwin", msg="it is made of what Linux has")
    conflicts("platform=windows", msg="it is made of what Linux has")

    def configure_args(self):
        # What MPI is for, benchmarks and tests, is not installed; the host's would be taken.
        args = ["--without-mpi"]
        for name in ("isal", "pmix"):
            args += self.with_or_without(name)
        return args

    def setup_run_environment(self, env):
        env.prepend_path("FI_PROVIDER_PATH", join_path(self.prefix.lib, "libfabric"))
