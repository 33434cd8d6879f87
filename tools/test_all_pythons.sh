#!/usr/bin/env bash
# Runs the default tests on every Python newer than the oldest supported one that is installed here, each in an
# environment of its own under .venvs/. Usage: tools/test_all_pythons.sh "PYTHON FLAGS" [PYTEST ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."

flags=${1:-}
shift || true
versions="3.12 3.13 3.14"

# A name on PATH counts only when it really starts that version: version managers put stubs there that do not.
find_python() {
    local version=$1 candidate
    for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
        if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
}

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
declare -A running
for version in $versions; do
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        echo "== Python $version: not here"
        continue
    fi
    # All at once: the suite waits for children and timers half of its time.
    make --no-print-directory test PYTHON="$python" VENV=".venvs/$version" PYTHON_FLAGS="$flags" ARGS="$*" \
        >"$outputs/$version" 2>&1 &
    running[$version]=$!
done

failed=""
for version in $versions; do
    [ -n "${running[$version]:-}" ] || continue
    code=0
    wait "${running[$version]}" || code=$?
    echo "== Python $version"
    cat "$outputs/$version"
    [ "$code" -eq 0 ] || failed="$failed $version"
done

[ "${#running[@]}" -gt 0 ] || echo "No newer Python was found: nothing was tried."
[ -z "$failed" ] || { echo "Failed on:$failed" >&2; exit 1; }
