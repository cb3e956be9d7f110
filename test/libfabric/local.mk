# What test/libfabric adds to the build.
EXTRA_DIST += test/libfabric/run_pingpong
