# SPDX-License-Identifier: BSD-3-Clause
# What the tests of the benchmark programs share: running, judging, counting. Sourced, in the build folder.
scratch=$(mktemp -d)
: >"$scratch/begun"

# Libfabric's shm leaves its memory where a process is killed, and keeps a later one of that number from starting: what
# processes of this test have left.
remove_left_memory() {
	local f pid

	for f in /dev/shm/*:"$(id -u)":*; do
		pid=${f##*/}
		pid=${pid%%:*}
		[ "$f" -nt "$scratch/begun" ] && [ ! -e "/proc/$pid" ] && rm -f "$f"
	done
}

clean_up() {
	remove_left_memory
	rm -rf "$scratch"
}
trap clean_up EXIT
failures=0
checks=0
unset CDPATH # with it `cd` says where it goes
here=$(cd "$(dirname "$0")" && pwd)
export ASAN_OPTIONS=detect_leaks=0 # what MPI libraries leave allocated at exit is not ours

skip() {
	echo "skipped: $*"
	exit 77
}

need_python() {
	command -v python3 >/dev/null || skip "no python3 to read the JSON with"
}

if [ "$(id -u)" -eq 0 ]; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# Open MPI's folder for all jobs goes with the last one that ends, also where another one is about to begin: those here
# have one of their own.

# Runs an Open MPI job of two ranks on this node over its own shared memory.
job() {
	timeout 60 mpirun -n 2 --oversubscribe --mca orte_tmpdir_base "$scratch" --mca pml ob1 --mca btl vader,self "$@"
}

# Runs an MPI program as a job of one rank without a launcher.
alone() {
	OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_orte_tmpdir_base=$scratch timeout 60 "$@"
}

# expect WHAT STATUS COMMAND...: the command must end with that status; its output is kept for `said`.
expect() {
	local what=$1 status=$2 got
	shift 2
	"$@" >"$scratch/out" 2>&1
	got=$?
	checks=$((checks + 1))
	if [ "$got" -ne "$status" ]; then
		failures=$((failures + 1))
		echo "FAILED: $what: exit status $got instead of $status; output:"
		cat "$scratch/out"
	fi
}

# said TEXT: the last command printed it. said_line PATTERN: it printed a line that is all matched by the pattern.
said() {
	judge_output "\"$1\"" grep -qF -- "$1"
}

said_line() {
	judge_output "line like $1" grep -qEx -- "$1"
}

judge_output() {
	local wanted=$1
	shift
	checks=$((checks + 1))
	if ! "$@" "$scratch/out"; then
		failures=$((failures + 1))
		echo "FAILED: no $wanted in:"
		cat "$scratch/out"
	fi
}

# json_is FILE NAME "SIZE ..." REPEATS: a complete result of that benchmark, these sizes, data right. Removes the file.
json_is() {
	python3 "$here/json_is.py" "$@" && rm "$1"
}

finish() {
	echo "$checks checks, $failures failed"
	[ "$checks" -gt 0 ] && [ "$failures" -eq 0 ]
	exit
}
