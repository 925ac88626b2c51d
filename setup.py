"""Compiles the sink's C code; all else about the distribution is in pyproject.toml.

The compiler is a package of Python (ziglang), so none has to be installed. It compiles for every
kind of processor that is known here, so one wheel serves them all. The libraries need glibc 2.17 or
newer.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCES = runpy.run_path(
    str(Path(__file__).parent / "spark_sink" / "targets" / "mysql" / "lines" / "sources.py")
)
OPTIONS = (
    "-O2", "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC", "-s",
)  # fmt: skip


class BuildWithLibraries(build_py):
    """Makes the libraries beside their code: there they are used in a checkout, and packed."""

    def run(self) -> None:
        """Compile, then do what setuptools does."""
        if find_spec("ziglang") is None:
            print("no compiler for this machine: rows will become lines by Python alone")
        else:
            with tempfile.TemporaryDirectory() as place:
                for machine in SOURCES["MACHINES"]:
                    compile_for(machine, Path(place))
        super().run()


def compile_for(machine: str, place: Path) -> None:
    """Compile the library for one kind of processor; ``place``: for what is made on the way."""
    path = SOURCES["library_path"](machine)
    made = place / path.name
    subprocess.run(
        [
            sys.executable, "-m", "ziglang", "cc", *OPTIONS, "-target", f"{machine}-linux-gnu.2.17",
            f'-DSOURCES="{SOURCES["digest"]()}"', "-o", str(made), str(SOURCES["CODE"]),
        ],
        check=True,
        env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(place), "ZIG_LOCAL_CACHE_DIR": str(place)},
    )  # fmt: skip
    # A process that has the old library keeps it.
    new = shutil.copy(made, f"{path}.{os.getpid()}")
    os.replace(new, path)


setup(cmdclass={"build_py": BuildWithLibraries})
