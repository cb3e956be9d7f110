# What src/topology adds to the build.
