"""Builds a release as it would be published, installs it in empty environments, and checks it.

Usage: ``PYTHONPATH=. python -m tests.release TWINE [TAG]``. ``TWINE`` is a Python that has twine.

1. Version, changelog, Helm chart and tag agree (``rules``). The tag is the one that is named, or
   HEAD's.
2. sdist and wheel are built from the files that git tracks, and from nothing else: an earlier build
   in the project's folder could leave a module in the wheel that is gone. The wheel that the sdist
   gives has the same files.
3. twine finds the metadata good.
4. The wheel is installed in an empty environment without an extra, and in one with each extra. The
   modules of the extra's rooms can be loaded, pip finds nothing missing, and the command says its
   version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import venv
import zipfile
from hashlib import sha256
from pathlib import Path

from .rules import (
    PACKAGES,
    chart_faults,
    differing,
    loading,
    tag_of,
    version_faults,
    without_command,
)

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "release"


class Broken(Exception):
    """A step failed; the text says how."""


def main(twine: str, asked: str = "") -> int:
    """Check everything; returns the exit code."""
    faults: list[str] = []
    try:
        version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
        tag = tag_of(asked, _git("tag", "--points-at", "HEAD").split())
        print(f"version {version}, {f'tag {tag}' if tag else 'no tag'}", flush=True)
        faults += version_faults(version, (ROOT / "CHANGELOG.md").read_text("utf-8"), tag)
        faults += chart_faults(version, (ROOT / "docker/chart/Chart.yaml").read_text("utf-8"))
        if tag and (changed := _git("status", "--porcelain")):
            faults.append(f"the tree has changes that are not committed:\n{changed}")
        if not faults:
            _check_build(version, twine, faults)
    except Broken as error:
        faults.append(str(error))
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    print(f"release {version if not faults else 'cannot be made'}: {len(faults)} faults")
    return 1 if faults else 0


def _check_build(version: str, twine: str, faults: list[str]) -> None:
    sdist, wheel = _build(version, faults)
    _run([twine, "-m", "twine", "check", "--strict", str(sdist), str(wheel)])
    for extra in PACKAGES:
        try:
            _install(wheel, extra, version)
        except Broken as error:
            faults.append(f"extra {extra or 'none'}: {error}")


def _build(version: str, faults: list[str]) -> tuple[Path, Path]:
    """Build both; returns the paths of sdist and wheel."""
    shutil.rmtree(PLACE, ignore_errors=True)
    tree, again = PLACE / "tree", PLACE / "again"
    for name in _git("ls-files", "-z").split("\0"):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    build = [sys.executable, "-m", "build"]
    _run([*build, "--sdist", "--wheel", "--outdir", str(PLACE / "dist"), str(tree)], quiet=True)
    sdist = PLACE / "dist" / f"shardmerge-{version}.tar.gz"
    with tarfile.open(sdist) as packed:
        packed.extractall(again, filter="data")
    unpacked = again / f"shardmerge-{version}"
    _run([*build, "--wheel", "--outdir", str(again / "dist"), str(unpacked)], quiet=True)
    [wheel], [other] = (sorted(p.glob("*.whl")) for p in (PLACE / "dist", again / "dist"))
    if names := differing(_contents(wheel), _contents(other)):
        faults.append(f"the sdist gives another wheel, the files differ: {', '.join(names)}")
    print(f"{sdist.name} and {wheel.name}: {len(_contents(wheel))} files", flush=True)
    return sdist, wheel


def _contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: sha256(packed.read(name)).hexdigest() for name in packed.namelist()}


def _install(wheel: Path, extra: str, version: str) -> None:
    began = time.monotonic()
    place = PLACE / "environment"
    venv.create(place, clear=True, with_pip=True)
    python = str(place / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    _run([*pip, "install", "--quiet", "--no-compile", wanted])
    _run([*pip, "check"], quiet=True)
    count = _run([python, "-c", loading(extra)], quiet=True).strip()
    command = str(place / "bin" / "shardmerge")
    if not without_command(extra) and version not in _run([command, "--version"], quiet=True):
        raise Broken(f"shardmerge --version does not say {version}")
    shutil.rmtree(place)
    seconds = time.monotonic() - began
    print(f"extra {extra or 'none'}: {count} modules loaded, {seconds:.0f} s", flush=True)


def _git(*words: str) -> str:
    return _run(["git", *words], quiet=True).rstrip("\n")


def _run(command: list[str], *, quiet: bool = False) -> str:
    """Run a command in the build's folder; returns what it printed.

    Raises:
        Broken: It ended with an error.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    # Not in the checkout, where Python would find the folders of the tree.
    where = ROOT if command[0] == "git" else PLACE
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=where, env=env, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        shown = " ".join(word.strip().partition("\n")[0] for word in command[1:6])
        raise Broken(f"{shown}: exit {done.returncode}\n{done.stdout[-3000:]}")
    if not quiet and done.stdout.strip():
        print(done.stdout.rstrip(), flush=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
