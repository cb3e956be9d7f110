# What test/libfabric adds to the build.
