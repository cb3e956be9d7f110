# What src/tools adds to the build.
