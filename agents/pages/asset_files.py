"""The files that pages load, each with a version that changes with its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources

_TYPES = {"css": "text/css", "js": "text/javascript", "txt": "text/plain"}
NAMES = ("pages.css", "pages.js", "idiomorph.min.js", "idiomorph.LICENSE.txt")


@dataclass(frozen=True, slots=True)
class Asset:
    """One file.

    Attributes:
        version: A hash of the content. Pages have it in the address of the file.
    """

    name: str
    content_type: str
    content: bytes
    version: str


@cache
def assets() -> Mapping[str, Asset]:
    """Name → file. The files are read once."""
    return {name: _asset(name) for name in NAMES}


def _asset(name: str) -> Asset:
    content = (resources.files(__package__) / "assets" / name).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]
    return Asset(name, kind, content, sha256(content).hexdigest()[:12])
