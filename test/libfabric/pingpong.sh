#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric's own fi_pingpong between two processes, every byte checked: plain messages and tagged ones, and those of
# connected endpoints (FI_EP_MSG). FI_ROPEWALK_STATS counts what the others have sent and received.
command -v fi_pingpong >/dev/null || { echo "fi_pingpong is not installed"; exit 77; }
export FI_PROVIDER_PATH=${PROVIDER_PATH:-$PWD/.libs} FI_ROPEWALK_STATS=yes
# fi_pingpong is not built with the sanitizer that the provider may be built with: it must be loaded first.
asan=$(ldd "$FI_PROVIDER_PATH/libropewalk-fi.so" | awk '/libasan/ { print $3 }')
[ -n "$asan" ] && export ASAN_OPTIONS=detect_leaks=0 && sanitizer=(env "LD_PRELOAD=$asan")
log=$(mktemp -d) || exit 1
trap 'rm -rf "$log"' EXIT

# pair <name> <endpoint> <address> <options>: a server and a client on a control port of their own; both must end well and see the largest size.
pair()
{
	# The port is below those that the kernel gives to whoever asks for any.
	local name=$1 type=$2 address=$3 port=$((24000 + RANDOM % 8000)) server ok=0
	shift 3
	timeout 120 ${sanitizer+"${sanitizer[@]}"} fi_pingpong -e "$type" -p ropewalk -c -I 20 -B "$port" "$@" >"$log/server" 2>&1 &
	server=$!
	# The client gives up at once when nobody listens yet.
	for _ in $(seq 100); do
		timeout 120 ${sanitizer+"${sanitizer[@]}"} fi_pingpong -e "$type" -p ropewalk -c -I 20 -P "$port" "$@" "$address" >"$log/client" 2>&1 && ok=1 && break
		grep -qi 'connection refused' "$log/client" || break
		sleep 0.1
	done
	wait "$server" || ok=0
	grep -q '^1m ' "$log/client" || ok=0
	for end in client server; do
		[ "$type" = msg ] || grep -q 'sent [1-9][0-9]* messages, .* received [1-9]' "$log/$end" || ok=0
	done
	[ "$ok" = 1 ] && echo "ok: $name" && return 0
	echo "failed: $name"
	sed 's/^/  server: /' "$log/server"
	sed 's/^/  client: /' "$log/client"
	return 1
}

pair "messages" rdm 127.0.0.1 -m msg && pair "tagged messages" rdm 127.0.0.1 -m tagged &&
	pair "connected" msg 127.0.0.1 || exit
[ ! -e /proc/net/if_inet6 ] || { pair "messages, IPv6" rdm ::1 -m msg -6 && pair "connected, IPv6" msg ::1 -6; }
