# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of the examples share. Sourced; in the build folder, or BUILD names it.
examples=${BUILD:-$PWD}/contrib/examples
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
export LC_ALL=C
failed=0
# One that another run of this test at the same time is not likely to have, and no other test or the kernel gives out.
port=$((16000 + $$ % 4000))

wrong() {
	echo "FAIL: $what: $*"
	cat "$scratch/server" "$scratch/client"
	failed=1
}

# says FILE PATTERN: there is a line that is like that.
says() {
	grep -qxE -e "$2" "$scratch/$1" || wrong "no line like \"$2\" of the $1's"
}

finish() {
	[ "$failed" -eq 0 ] && echo "${0##*/}: all as expected"
	exit "$failed"
}
