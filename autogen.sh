#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes ./configure from configure.ac. Needs autoconf, automake and libtool.
set -e
unset CDPATH # with it `cd` may go elsewhere
cd "$(dirname "$0")"
exec autoreconf --install --force --warnings=all,no-portability
