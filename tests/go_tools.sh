#!/usr/bin/env bash
# Builds the tools of a go.mod into FOLDER, from source.
# Usage: go_tools.sh FOLDER_OF_GO_MOD FOLDER
#
# go.mod pins the tools and every module below them; go.sum has the hashes of all of them.
set -euo pipefail
module=$(cd "$1" && pwd)
out=$(mkdir -p "$2" && cd "$2" && pwd)
go=${GO:-$(command -v go || echo /usr/local/go/bin/go)}
if ! command -v "$go" >/dev/null 2>&1; then
    echo "Go is not installed: the tools of $1 are built from source. Install Go 1.26 or newer, or say where it is (GO=/path/to/go)" >&2
    exit 1
fi
version=$(GOTOOLCHAIN=local "$go" env GOVERSION)
if ! [[ $version =~ ^go1\.([0-9]+) ]] || [ "${BASH_REMATCH[1]}" -lt 26 ]; then
    echo "$go is $version: the tools of $1 need Go 1.26 or newer" >&2
    exit 1
fi
cd "$module"
GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly "$go" build -p "${JOBS:-2}" -trimpath -ldflags "-s -w" -o "$out/" tool
