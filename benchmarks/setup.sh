#!/usr/bin/env bash
# Installs the peers that only the benchmarks use, by package name, each into a place of its own below DIR/bench, and
# matplotlib for the charts into the checkout's environment. Versions are pinned so that two runs compare the same peers.
# A step that fails is named and skipped; `make bench` names it again. `rm -r DIR/bench` undoes all of it.
# Usage: benchmarks/setup.sh PYTHON DIR
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
dir=$2/bench
pypi=("mcp==2.3.0" "pygls==2.1.1" "python-lsp-jsonrpc==1.1.2")
npm=("vscode-jsonrpc@10.0.0")
skipped=()

# step NAME STAMP COMMAND ARGS...: run COMMAND unless STAMP says that NAME is there already.
step() {
    local name=$1 stamp=$2
    if [ "$(cat "$stamp" 2>/dev/null)" = "$name" ]; then
        echo "bench-setup: $name: was there"
    elif ("${@:3}") >"$stamp.log" 2>&1; then
        echo "$name" >"$stamp"
        echo "bench-setup: $name: installed"
    else
        skipped+=("$name")
        echo "bench-setup: $name: NOT INSTALLED, the end of $stamp.log is:" >&2
        tail -n 5 "$stamp.log" >&2
    fi
}

# Each in its own environment: what one brings (a telemetry package, say) may slow another down.
install_pypi() {
    rm -rf "$2" && "$python" -m venv "$2" &&
        "$2/bin/python" -m pip install --quiet --disable-pip-version-check "$1" uvloop
}

install_npm() {
    rm -rf "$dir/node" && mkdir -p "$dir/node" &&
        npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$dir/node" "$@"
}

mkdir -p "$dir"
for package in "${pypi[@]}"; do
    step "$package" "$dir/.${package%%==*}" install_pypi "$package" "$dir/${package%%==*}"
done
step "${npm[*]}" "$dir/.node" install_npm "${npm[@]}"
step "matplotlib for $("$python" -c 'import sys; print(sys.prefix)')" "$dir/.matplotlib" \
    "$python" -m pip install --quiet --disable-pip-version-check --editable '.[bench]'

if [ "${#skipped[@]}" -gt 0 ]; then
    printf 'bench-setup: skipped: %s\n' "${skipped[@]}"
fi
