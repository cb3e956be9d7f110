# What test/topology adds to the build.
