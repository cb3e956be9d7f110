# What bench adds to the build.
