"""Connect's extension for basic authentication, fetched like the other artifacts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from .artifacts import DEFAULT_CACHE, find_java, read_checksums, retrieve, verify_checksums
from .files import exclusive_lock

_HERE = Path(__file__).parent


def authentication_jars(
    cache: Path = DEFAULT_CACHE, say: Callable[[str], None] = lambda _: None
) -> Path:
    """The folder of the extension's jar; fetched once per cache.

    Raises:
        StackError: It could not be fetched, or its checksum differs.
    """
    home = cache.absolute() / "secure"
    with exclusive_lock(cache.absolute() / "secure.lock"):
        if not home.is_dir():
            # Renamed when it is complete: a crash before that repeats the work.
            fresh = home.with_name("secure-unverified")
            shutil.rmtree(fresh, ignore_errors=True)
            retrieve(_HERE / "ivy-secure.xml", fresh, cache.absolute(), find_java(), say)
            verify_checksums(fresh, read_checksums((_HERE / "checksums-secure.txt").read_text()))
            fresh.rename(home)
    return home / "authentication"
