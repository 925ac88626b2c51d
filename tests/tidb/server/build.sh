#!/usr/bin/env bash
# Builds the TiDB server of go.mod as FOLDER/tidb-server: 10 to 50 minutes of two cores and 6 GB of disk, once.
# Usage: build.sh FOLDER
#
# go.mod pins TiDB and, through TiDB's own go.mod, every module below it. go.sum has the hashes of TiDB's two modules,
# which Go's checksum database does not know (GONOSUMDB); those of all others Go checks against that database itself,
# so they are not repeated here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
go=${GO:-$(command -v go || echo /usr/local/go/bin/go)}
if ! command -v "$go" >/dev/null 2>&1; then
    echo "Go is not installed: TiDB is built from source. Install Go 1.25 or newer, or say where it is (GO=/path/to/go)" >&2
    exit 1
fi
version=$(GOTOOLCHAIN=local "$go" env GOVERSION)
if ! [[ $version =~ ^go1\.([0-9]+) ]] || [ "${BASH_REMATCH[1]}" -lt 25 ]; then
    echo "$go is $version: TiDB needs Go 1.25 or newer" >&2
    exit 1
fi
mkdir -p "$out/module"
cp "$here/go.mod" "$here/go.sum" "$out/module/"
cd "$out/module"
# TiDB's libraries reach into Go's runtime, which Go's linker refuses by default from 1.23 on.
GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=mod GONOSUMDB=github.com/pingcap/tidb GOMODCACHE=${GOMODCACHE:-$out/mod} \
    GOCACHE=${GOCACHE:-$out/cache} \
    nice -n 19 "$go" build -p "${JOBS:-2}" -ldflags "-s -w -checklinkname=0" -o "$out/tidb-server.new" \
    github.com/pingcap/tidb/cmd/tidb-server
mv "$out/tidb-server.new" "$out/tidb-server"
echo "$out/tidb-server"
