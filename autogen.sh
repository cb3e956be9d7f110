#!/bin/sh
# Makes ./configure from configure.ac. Needs autoconf, automake and libtool.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --force --warnings=all,no-portability
