"""Replaces the text of a pipeline file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Replace a file by its new text, whole or not at all. Its permissions stay.

    Raises:
        OSError: The file or its folder cannot be written.
    """
    real = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), real.stat().st_mode & 0o7777)
            os.fsync(file.fileno())
        os.replace(name, real)
    except OSError:
        os.unlink(name)
        raise
