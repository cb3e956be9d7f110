# What contrib adds to the build.
EXTRA_DIST += contrib/check contrib/hacking.md
