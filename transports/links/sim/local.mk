# What transports/links/sim adds to the build.
