# What src/selection adds to the build.
