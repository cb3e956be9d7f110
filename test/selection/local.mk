# What test/selection adds to the build.
