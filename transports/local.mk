# What transports adds to the build.
