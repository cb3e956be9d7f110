# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What quickstart, check and the test runners share: the Debian packages, where the build is, and how an MPI job is
# started. Source it; it sets variables and functions and does nothing else. `contrib/dependencies.md` says what each
# package is for.

# With it `cd` says where it goes, and may go elsewhere.
unset CDPATH
# shellcheck disable=SC2034
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# A build tree that is named from here is meant wherever a script goes.
[[ -z ${BUILD-} || $BUILD = /* ]] || BUILD=$PWD/$BUILD

# libtool is a script, run for each file and program, and by dash takes two thirds of what it takes by bash: minutes, where
# starting processes is dear.
[[ ! -x /bin/dash ]] || export CONFIG_SHELL=/bin/dash

# shellcheck disable=SC2034 # the lists are for those who source this
packages_build="autoconf automake libtool pkg-config make gcc libc6-dev
	libfabric-dev libhwloc-dev libisal-dev libpmix-dev libsodium-dev uthash-dev"
# shellcheck disable=SC2034
packages_run="openmpi-bin libopenmpi-dev libfabric-bin"
# shellcheck disable=SC2034
packages_test="clang libclang-rt-dev libcmocka-dev hpcc netpipe-openmpi python3 python3-mpi4py procps util-linux
	man-db shellcheck git gnuplot-nox spin tshark iproute2 iptables debhelper lintian libucx-dev"

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# Installs those of the packages named that are missing; without the right to do so, says what to run and fails.
need_packages() {
	local p missing=() sudo=()

	command -v dpkg-query >/dev/null ||
		die "this script installs Debian packages, and this is no Debian system; it needs the equivalents of: $*"
	for p in "$@"; do
		dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null ||
			die "these packages are missing, and only root can install them: apt-get install ${missing[*]}"
		sudo=(sudo -n)
	fi
	echo "installing: ${missing[*]}"
	"${sudo[@]}" apt-get update -q &&
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
			apt-get install -q -y --no-install-recommends "${missing[@]}" ||
		die "apt-get could not install: ${missing[*]}"
}

# How many processors there are, hardware threads: jobs for make. What is set for OpenMP's threads is no matter of it.
processors() {
	env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || echo 2
}

# The CPUs that this process may use, a line each: which one of its core's, from 0, and its number. First one of each
# core, then what the cores have more of. ROOT is where /sys is looked for.
cpus() {
	local root=${1-} range cpu core

	for range in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
		for cpu in $(seq "${range%-*}" "${range#*-}"); do
			read -r core <"$root/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" || core=$cpu
			echo "$core $cpu"
		done
	done 2>/dev/null | awk '{ print n[$1]++, $2 }' | sort -n -s -k 1,1
}

# How many cores these CPUs are of.
# shellcheck disable=SC2120 # the test of it names a ROOT
cores() {
	cpus "$@" | grep -c '^0 '
}

# What mpirun is to bind so many ranks to: each has a core of its own, else a hardware thread, else none has anything.
binding() {
	if [ "$1" -le "$(cores)" ]; then
		echo core
	elif [ "$1" -le "$(processors)" ]; then
		echo hwthread
	else
		echo none
	fi
}

# The folder of libropewalk-fi.so in a build tree. Fails with a sentence if it is not there.
provider_dir() {
	local build=$1

	[ -e "$build/.libs/libropewalk-fi.so" ] || {
		echo "the provider is not built: $build/.libs/libropewalk-fi.so is missing" >&2
		return 1
	}
	echo "$build/.libs"
}

# What the user has set of Open MPI's transports is stronger than a parameter file, and mpirun does not say so. It is
# meant for jobs of the user's own: who runs jobs over the transports below calls this first, which leaves it out.
# bench/comparison/stacks.py has the same.
leave_out_settings() {
	local name

	for name in $(compgen -e | grep -xE 'OMPI_MCA_(pml|mtl|btl|osc)(_.*)?'); do
		echo "${0##*/}: $name=${!name} is left out: which transport a job takes, and how, is chosen here" >&2
		unset "$name"
	done
}

# Says what else is set of the libraries that jobs use: it is left to them, and a job over some transport may be another
# one by it. A secret is not told. bench/comparison/machine.py has the same.
tell_settings() {
	local name value

	for name in $(compgen -e | grep -E '^(FI|UCX|OMPI_MCA|MPICH|MPIR_CVAR)_'); do
		value=${!name}
		[ "$name" != FI_ROPEWALK_JOB_KEY ] || value="(secret)"
		echo "environment: $name=$value"
	done
}

# Options of mpirun that make an MPI job use a transport, one a line: ropewalk (of that build tree),
# ropewalk-installed:FILE (a parameter file), vader (Open MPI's own shared memory), tcp (Open MPI's own between hosts),
# ucx, or ofi:PROVIDER for any other libfabric provider. None of them falls back to another: a transport that does not
# load is an error of mpirun's.
transport_options() {
	local transport=$1 build=$2

	case $transport in
	ropewalk)
		provider_dir "$build" >/dev/null &&
			transport_options "ropewalk-installed:$build/contrib/openmpi/uninstalled.conf" "$build"
		;;
	ropewalk-src)
		transport_options ropewalk "$build" && printf '%s\n' -x FI_ROPEWALK_SERVICE=src
		;;
	ropewalk-installed:*)
		# mpirun would go on without a parameter file that it does not find, and over whatever transport.
		[ -e "${transport#*:}" ] || {
			echo "the parameter file ${transport#*:} is missing" >&2
			return 1
		}
		printf '%s\n' --tune "${transport#*:}"
		;;
	vader) printf '%s\n' --mca pml ob1 --mca btl vader,self ;;
	tcp) printf '%s\n' --mca pml ob1 --mca btl tcp,self ;;
	ucx) printf '%s\n' --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any ;;
	ofi:*) printf '%s\n' --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "${transport#ofi:}" ;;
	*)
		echo "transport '$transport' is not one of:" \
			"ropewalk ropewalk-src ropewalk-installed:FILE vader tcp ucx ofi:PROVIDER" >&2
		return 1
		;;
	esac
}

# Options of mpirun, one a line, beside those of transport_options: MPI's one-sided operations become the provider's own
# (contrib/openmpi/README.md).
one_sided_options() {
	printf '%s\n' --mca osc rdma,sm --mca btl self,ofi --mca osc_rdma_btls ofi --mca btl_ofi_provider_include ropewalk
}

# limited SECONDS GRACE COMMAND...: runs the command and ends it after SECONDS, as timeout does, which kills it GRACE
# seconds later. An interrupt does not reach it in the process group that timeout makes: what ends this shell ends the
# command first, and is then the caller's again, who would go on with the next one.
limited() {
	local traps child='' status s signal=''

	traps=$(trap -p INT TERM HUP)
	for s in INT TERM HUP; do
		# shellcheck disable=SC2064 # of s as it is now
		trap "signal=$s; [ -z \"\$child\" ] || kill \$child 2>/dev/null" $s
	done
	timeout --kill-after="$2" "$1" "${@:3}" </dev/null &
	child=$!
	[ -z "$signal" ] || kill $child 2>/dev/null
	wait $child
	status=$?
	[ -z "$signal" ] || wait $child
	trap - INT TERM HUP
	eval "$traps"
	[ -z "$signal" ] || kill -s "$signal" $BASHPID
	return $status
}

# mpi SECONDS RANKS [mpirun options --] PROGRAM [arguments]: runs the program over $TRANSPORT (ropewalk) from the build
# tree $BUILD, ends it after SECONDS. Ranks may outnumber processors, and are not bound then.
mpi() {
	local seconds=$1 ranks=$2 options=() extra=()

	shift 2
	mapfile -t options < <(transport_options "${TRANSPORT:-ropewalk}" "$BUILD")
	[ ${#options[@]} -gt 0 ] || return 1
	if [ "${1#-}" != "$1" ]; then
		while [ $# -gt 0 ] && [ "$1" != -- ]; do
			extra+=("$1")
			shift
		done
		[ $# -gt 0 ] || die "mpi: the options of mpirun must end with --"
		shift
	fi
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		limited "$seconds" 10 mpirun "${options[@]}" --oversubscribe --bind-to "$(binding "$ranks")" \
		"${extra[@]}" -np "$ranks" "$@"
}
