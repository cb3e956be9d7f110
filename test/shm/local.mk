# What test/shm adds to the build.
