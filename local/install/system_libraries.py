"""Finds the shared libraries that a server binary lacks, without touching the system.

A fresh machine has no libaio. Its package is downloaded with apt into a private folder (private
package lists too, so no root is needed), unpacked there and put on the library path. apt checks
the signatures, as it does for an installation.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from shardmerge.schemas.model.errors import StackError

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "libaio.so.1": ("libaio1", "libaio1t64"),
    "libnuma.so.1": ("libnuma1",),
}
"""Which packages hold a library: the newer releases call libaio1 by another name."""

_APT_CONF = """\
// The system's hooks expect the system's folders.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
"""


def provide_libraries(binary: Path, directory: Path, say: Callable[[str], None]) -> None:
    """Make ``binary --version`` run, with ``directory/lib`` on its library path.

    Idempotent: nothing is downloaded when nothing is missing.

    Raises:
        StackError: The binary cannot run here and no package mends that.
    """
    library_dir = directory / "lib"
    library_dir.mkdir(parents=True, exist_ok=True)
    updated = False
    while (missing := _missing_library(binary, library_dir)) is not None:
        packages = PACKAGES.get(missing, ())
        try:
            if not packages or (library_dir / missing).exists():
                raise StackError("no package is known that holds it", code="SM-4607")
            if not updated:
                say("reading the package lists (privately)")
                _apt(directory, "update", cwd=directory)
                updated = True
            say(f"fetching {missing} from package {' or '.join(packages)}")
            _fetch(missing, packages, directory, library_dir)
        except StackError as error:
            raise StackError(
                f"{binary} needs the shared library {missing}: {error.message}",
                hint=f"install it: apt-get install {packages[0]}" if packages else "",
                code="SM-4607",
            ) from None


def _missing_library(binary: Path, library_dir: Path) -> str | None:
    """The library that the loader misses first; None when the binary runs."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library_dir)}
    hint = "the embedded stack needs x86-64 Linux with glibc; use docker/compose.yaml"
    try:
        result = subprocess.run(
            [str(binary), "--version"], env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise StackError(
            f"{binary} does not run here: {error}", hint=hint, code="SM-4607"
        ) from None
    if result.returncode == 0:
        return None
    found = re.search(r"shared libraries: (\S+?):", result.stderr)
    if found is None:
        text = (result.stderr or result.stdout).strip()[:500]
        raise StackError(f"{binary} does not run here: {text}", hint=hint, code="SM-4607")
    return found.group(1)


def _fetch(library: str, packages: tuple[str, ...], directory: Path, library_dir: Path) -> None:
    download_dir = directory / "debs"
    download_dir.mkdir(exist_ok=True)
    errors = []
    for package in packages:
        try:
            _apt(directory, "download", package, cwd=download_dir)
        except StackError as error:
            errors.append(str(error))
            continue
        deb = max(download_dir.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)
        unpacked = directory / "unpacked" / package
        unpacked.parent.mkdir(exist_ok=True)
        _run(["dpkg-deb", "-x", str(deb), str(unpacked)], cwd=directory)
        stem = library.removesuffix(".1")
        # libaio1t64 names its file libaio.so.1t64.0.2: the soname that mysqld asks for is a link.
        found = sorted(
            p for p in unpacked.rglob(f"{stem}.1*") if p.is_file() and not p.is_symlink()
        )
        if found:
            link = library_dir / library
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.relpath(found[-1], library_dir))
            return
        errors.append(f"{deb.name} holds no {library}")
    raise StackError("; ".join(errors), code="SM-4607")


def _apt(directory: Path, *arguments: str, cwd: Path) -> None:
    for sub in ("lists/partial", "cache/archives/partial"):
        (directory / "apt" / sub).mkdir(parents=True, exist_ok=True)
    conf = directory / "apt" / "apt.conf"
    conf.write_text(_APT_CONF)
    command = [
        "apt-get",
        "-q",
        "-c",
        str(conf),
        "-o",
        f"Dir::State::lists={directory.resolve()}/apt/lists",
    ]
    command += [
        "-o",
        f"Dir::Cache={directory.resolve()}/apt/cache",
        "-o",
        "APT::Sandbox::User=root",
        *arguments,
    ]
    _run(command, cwd=cwd)


def _run(command: list[str], cwd: Path) -> None:
    try:
        result = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackError(f"{command[0]}: {error}", code="SM-4607") from None
    if result.returncode != 0:
        raise StackError(
            f"{command[0]} {command[-1]}: {result.stderr.strip()[-500:]}", code="SM-4607"
        )
