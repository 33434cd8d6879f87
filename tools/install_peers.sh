#!/usr/bin/env bash
# Installs the peer programs of the interop tests and benchmarks into one throw-away directory, by package name:
#   DIR/python                 an environment with the PyPI package agent-client-protocol and uvloop
#   DIR/agent-client-protocol  the source package of the same, whose examples/ are the peers
#   DIR/node                   node_modules with the npm package @agentclientprotocol/sdk
# A step that fails is named, here and in DIR/missing; the tests that need it are skipped, the others run.
# Usage: tools/install_peers.sh PYTHON DIR
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
dir=$2
acp_python="agent-client-protocol==0.12.1"
acp_node="@agentclientprotocol/sdk@2.4.0"

mkdir -p "$dir"
: >"$dir/missing"

# step NAME MARKER FUNCTION: run FUNCTION unless MARKER says that this very version is there already.
step() {
    local name=$1 stamp="$dir/.$2" install=$3
    if [ "$(cat "$stamp" 2>/dev/null)" = "$name" ]; then
        return
    fi
    rm -f "$stamp"
    if ("$install") >"$dir/$2.log" 2>&1; then
        echo "$name" >"$stamp"
        echo "peers: $name: installed"
    else
        echo "$name" >>"$dir/missing"
        echo "peers: $name: NOT INSTALLED, the end of $dir/$2.log is:" >&2
        tail -n 5 "$dir/$2.log" >&2
    fi
}

# The steps are chains: errexit is off inside a condition.
install_python() {
    rm -rf "$dir/python" &&
        "$python" -m venv "$dir/python" &&
        "$dir/python/bin/python" -m pip install --quiet --disable-pip-version-check "$acp_python" uvloop
}

install_source() {
    rm -rf "$dir/agent-client-protocol" "$dir/source" &&
        "$python" -m pip download --quiet --no-deps --no-binary agent-client-protocol --dest "$dir/source" "$acp_python" &&
        mkdir "$dir/agent-client-protocol" &&
        tar -xzf "$dir"/source/*.tar.gz -C "$dir/agent-client-protocol" --strip-components 1
}

install_node() {
    rm -rf "$dir/node" &&
        mkdir "$dir/node" &&
        npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$dir/node" "$acp_node"
}

step "$acp_python" python install_python
step "$acp_python (source package)" source install_source
step "$acp_node" node install_node
