# What bindings/libfabric adds to the build.
