#!/usr/bin/env bash
# Builds the Helm and the kubeconform of go.mod into FOLDER: about three minutes of a processor, once.
# Usage: build.sh FOLDER
#
# go.mod pins both and every module below them; go.sum has the hashes of all of them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
go=${GO:-$(command -v go || echo /usr/local/go/bin/go)}
if ! command -v "$go" >/dev/null 2>&1; then
    echo "Go is not installed: Helm and kubeconform are built from source. Install Go 1.26 or newer, or say where it is (GO=/path/to/go)" >&2
    exit 1
fi
version=$(GOTOOLCHAIN=local "$go" env GOVERSION)
if ! [[ $version =~ ^go1\.([0-9]+) ]] || [ "${BASH_REMATCH[1]}" -lt 26 ]; then
    echo "$go is $version: Helm needs Go 1.26 or newer" >&2
    exit 1
fi
cd "$here"
GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly "$go" build -p "${JOBS:-2}" -trimpath -ldflags "-s -w" -o "$out/" \
    helm.sh/helm/v3/cmd/helm github.com/yannh/kubeconform/cmd/kubeconform
