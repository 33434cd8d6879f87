#!/usr/bin/env bash
# Runs a command with no network but the loopback device, where this machine lets it: programs of other projects may
# want to report home or to update themselves. Where it does not, the command runs all the same, and that is said.
# Usage: tools/offline.sh COMMAND ARGS...
set -euo pipefail

if command -v ip >/dev/null && unshare --net true 2>/dev/null; then
    exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
fi
echo "offline: no network namespace can be made here (unshare, ip): the network stays reachable" >&2
exec "$@"
