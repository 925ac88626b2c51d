"""A real Prometheus: Debian's package, unpacked beside the other servers' programs."""

from __future__ import annotations

from pathlib import Path

from shardmerge.local.install.debs import Wanted, loader_command, unpack_package
from shardmerge.local.install.files import exclusive_lock

PATIENCE_S = 60.0


def program(name: str, cache: Path) -> tuple[str, ...]:
    """How to start ``prometheus`` or ``promtool``; fetches the package once."""
    home = cache / "servers" / "prometheus"
    with exclusive_lock(cache / "prometheus.lock"):
        if not (home / "complete").exists():
            unpack_package(Wanted(("prometheus",), "bookworm"), home, print)
            (home / "complete").touch()
    return loader_command(home / "root", f"usr/bin/{name}")
