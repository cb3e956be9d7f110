# What transports/shm adds to the build.
