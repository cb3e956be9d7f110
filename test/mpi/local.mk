# What test/mpi adds to the build.
