# What test/packet adds to the build.
