# What src/engine adds to the build.
