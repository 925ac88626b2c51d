"""Prometheus' JMX exporter, which serves the metrics of a Kafka Connect worker.

It is a Java agent inside the worker: ``jmx_option`` is what the worker's command gets. Its rules
are ``docker/jmx/connect.yml``. ``ivy-jmx.xml`` pins its version, ``checksums-jmx.txt`` its content.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from .artifacts import DEFAULT_CACHE, find_java, read_checksums, retrieve, verify_checksums
from .files import exclusive_lock

_HERE = Path(__file__).parent


def jmx_exporter(cache: Path = DEFAULT_CACHE, say: Callable[[str], None] = lambda _: None) -> Path:
    """The agent's jar; fetched once per cache.

    Raises:
        StackError: It could not be fetched, or its checksum differs.
    """
    cache = cache.absolute()
    home, java = cache / "jmx", find_java()
    with exclusive_lock(cache / "jmx.lock"):
        if not home.is_dir():
            # Renamed when it is complete: a crash before that repeats the work.
            fresh = home.with_name("jmx-unverified")
            shutil.rmtree(fresh, ignore_errors=True)
            retrieve(_HERE / "ivy-jmx.xml", fresh, cache, java, say)
            verify_checksums(fresh, read_checksums((_HERE / "checksums-jmx.txt").read_text()))
            fresh.rename(home)
    [jar] = (home / "jmx").glob("*.jar")
    return jar


def jmx_option(jar: Path, port: int, rules: Path) -> str:
    """The option of a Java process that serves its metrics on 127.0.0.1 at this port."""
    return f"-javaagent:{jar}=127.0.0.1:{port}:{rules}"
