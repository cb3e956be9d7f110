# What test/hosts adds to the build: nothing but its files. Not part of `make check` itself: it needs root.
EXTRA_DIST += test/hosts/run test/hosts/deaths.py test/hosts/joins.py test/hosts/reached.py test/hosts/traffic.py
