# What test/engine adds to the build.
