#!/usr/bin/env bash
# Runs the default tests with the oldest run-time dependencies that pyproject.toml allows, in .venvs/oldest.
# Usage: tools/test_oldest.sh PYTHON [PYTEST ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
shift
venv=.venvs/oldest

make --no-print-directory "$venv/.ready" PYTHON="$python" VENV="$venv"
oldest=$("$venv/bin/python" - <<'PY'
import re, tomllib
with open("pyproject.toml", "rb") as file:
    for requirement in tomllib.load(file)["project"]["dependencies"]:
        print(re.sub(r"^([\w-]+)>=([\w.]+)", r"\1==\2", requirement).split(";")[0].strip())
PY
)
echo "== oldest dependencies:" $oldest
# shellcheck disable=SC2086  # one word per requirement
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check $oldest
make --no-print-directory test PYTHON="$python" VENV="$venv" ARGS="$*"
