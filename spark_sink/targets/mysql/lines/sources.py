"""The C code beside this module, and the files that are compiled from it.

``setup.py`` runs this module by its path, so it imports nothing of the project.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

PLACE = Path(__file__).parent
CODE = PLACE / "record_lines.c"
FILES = ("json.h", "record_lines.c", "values.h")
MACHINES = ("x86_64", "aarch64")
"""Kinds of processor, as Linux names them. A wheel has a library for each."""


def library_path(machine: str) -> Path:
    """Where the library for a kind of processor is, if it was compiled.

    By the number behind, nobody takes it for a module of Python.
    """
    return PLACE / f"librecord_lines-{machine}.so.1"


def digest() -> str:
    """Of the code. A library holds that of the code it was compiled from."""
    found = sha256()
    for name in FILES:
        found.update((PLACE / name).read_bytes())
    return found.hexdigest()
