"""Resolves what the embedded stack runs: Kafka with Connect, Debezium, a MySQL server.

``ivy.xml`` pins the versions, ``checksums.txt`` the contents. The resolver is the Ivy that
pyspark ships, with Ivy's own default resolvers, so a machine needs Python and Java 17 only.

::

    python -m shardmerge.local.install.artifacts [--cache .local/cache]

1. A finished cache of the same ``ivy.xml`` and ``checksums.txt`` is used as it is (stamp file).
2. Otherwise Ivy retrieves into a new folder, every file is compared with ``checksums.txt`` (a
   missing, extra or different file is an error), the archives are unpacked, and missing system
   libraries are fetched. The stamp is written last: a crash before it repeats the work.

A lock file keeps two processes from doing this at the same time.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shardmerge.schemas.model.errors import ShardMergeError, StackError

from .files import exclusive_lock, tail
from .system_libraries import provide_libraries

DEFAULT_CACHE = Path(".local/cache")
"""Relative to the working directory: the project's folder for everything that is not source."""
_HERE = Path(__file__).parent
_IVY_FILE = _HERE / "ivy.xml"
_CHECKSUMS_FILE = _HERE / "checksums.txt"
_STAMP = "complete"
_MIN_JAVA = 17


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Where the resolved programs are.

    Attributes:
        java: The Java binary, 17 or newer.
        kafka_jars: Folder of the class path of broker and Connect worker.
        plugin_path: Folder that holds one folder per connector plugin: Connect's ``plugin.path``.
        mysql_home: ``--basedir`` of the server; ``bin/mysqld`` is in it.
        library_path: Folder of shared libraries that the system lacks, for ``LD_LIBRARY_PATH``.
        templates: Folder for data directories that are initialised once and then copied.
    """

    java: Path
    kafka_jars: Path
    plugin_path: Path
    mysql_home: Path
    library_path: Path
    templates: Path


def resolve(cache: Path = DEFAULT_CACHE, say: Callable[[str], None] = lambda _: None) -> Artifacts:
    """Make every artifact present and return where they are.

    Args:
        cache: Folder to keep them in; shared by every stack of the project.
        say: Called with a line of progress.

    Raises:
        StackError: Java or pyspark is missing, a file could not be had, or its checksum differs.
    """
    cache = cache.absolute()
    java = find_java()
    home = cache / f"artifacts-{_digest()}"
    if not (home / _STAMP).exists():
        with exclusive_lock(cache / "artifacts.lock"):
            if not (home / _STAMP).exists():
                _build(home, cache, java, say)
    return Artifacts(
        java=java,
        kafka_jars=home / "kafka",
        plugin_path=home / "plugins",
        mysql_home=home / "mysql",
        library_path=home / "libraries" / "lib",
        templates=home / "templates",
    )


def find_java() -> Path:
    """The Java of ``JAVA_HOME``, else of ``PATH``; raises ``StackError`` below version 17."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    hint = (
        f"install Java {_MIN_JAVA} or newer, for example: apt-get install openjdk-17-jre-headless"
    )
    if found is None or not os.access(found, os.X_OK):
        raise StackError(f"no Java found ({found or 'not on PATH'})", hint=hint, code="SM-4603")
    result = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', result.stderr)
    if version is None or int(version.group(1)) < _MIN_JAVA:
        raise StackError(
            f"{found} is not Java {_MIN_JAVA} or newer: {result.stderr.strip()[:200]}",
            hint=hint,
            code="SM-4603",
        )
    return Path(found)


def _build(home: Path, cache: Path, java: Path, say: Callable[[str], None]) -> None:
    shutil.rmtree(home, ignore_errors=True)
    retrieved = home / "retrieved"
    say("about 145 MB when nothing is cached")
    retrieve(_IVY_FILE, retrieved, cache, java, say)
    say("comparing checksums")
    verify_checksums(retrieved, read_checksums(_CHECKSUMS_FILE.read_text()))
    say("unpacking")
    (retrieved / "kafka").rename(home / "kafka")
    for archive in sorted((retrieved / "debezium").glob("*.tar.gz")):
        with tarfile.open(archive) as tar:
            tar.extractall(home / "plugins", filter="data")
    unpack_mysql(next((retrieved / "mysql").glob("*.jar")), home / "mysql")
    shutil.rmtree(retrieved)
    provide_libraries(home / "mysql" / "bin" / "mysqld", home / "libraries", say)
    (home / "templates").mkdir()
    (home / _STAMP).write_text(f"{time.time():.0f}\n")


def retrieve(
    ivy_file: Path,
    retrieved: Path,
    cache: Path,
    java: Path,
    say: Callable[[str], None],
    *,
    settings: Path | None = None,
) -> None:
    """Run Ivy, at most twice, so that one broken connection does not fail the whole set-up.

    Args:
        ivy_file: What to resolve.
        retrieved: Gets one folder per configuration of the file.
        cache: Ivy's own folder and its log are in it.
        java: The Java binary.
        say: Called with a line of progress.
        settings: Ivy's; None: its own defaults.

    Raises:
        StackError: Something could not be resolved; with the end of the log.
    """
    log = cache / "ivy.log"
    pattern = f"{retrieved}/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    command = [
        str(java),
        "-cp",
        str(_ivy_jar()),
        "org.apache.ivy.Main",
        *(("-settings", str(settings)) if settings is not None else ()),
        "-ivy",
        str(ivy_file),
        "-cache",
        str(cache / "ivy"),
        "-retrieve",
        pattern,
    ]
    say(f"resolving {ivy_file.name}, see {log}")
    for attempt in (1, 2):
        with log.open("wb") as output:
            result = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if result.returncode == 0 and retrieved.is_dir():
            return
        say(f"attempt {attempt} failed")
    raise StackError(
        f"Ivy could not resolve the artifacts of the local stack, see {log}:\n{tail(log)}",
        hint="check the network, then run it again: what is cached is kept",
        code="SM-4602",
    )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise StackError(
            "pyspark is not installed", hint="pip install 'shardmerge[local]'", code="SM-4604"
        )
    jars = sorted(Path(spec.submodule_search_locations[0]).glob("jars/ivy-*.jar"))
    if not jars:
        raise StackError(
            f"no Ivy jar in {spec.submodule_search_locations[0]}/jars",
            hint="reinstall pyspark",
            code="SM-4604",
        )
    return jars[-1]


def read_checksums(text: str) -> Mapping[str, str]:
    """Parse ``checksums.txt``: file name relative to the retrieved folder → sha256."""
    pairs = (
        line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")
    )
    return {name.strip(): digest for digest, name in pairs}


def verify_checksums(folder: Path, expected: Mapping[str, str]) -> None:
    """Compare every file of a folder with its checksum.

    Raises:
        StackError: A file is missing, is not in the list, or differs. The text names it.
    """
    actual = _checksums(folder)
    for name in sorted(set(actual) | set(expected)):
        if actual.get(name) != expected.get(name):
            raise StackError(
                f"{name}: expected sha256 {expected.get(name, '(no such file)')}, "
                f"got {actual.get(name, '(no file)')}",
                hint=f"a damaged download, or not what was pinned; remove {folder.parent}",
                code="SM-4602",
            )


def _checksums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def unpack_mysql(jar: Path, mysql_home: Path) -> None:
    """Unpack the server from the archive inside a jar."""
    with zipfile.ZipFile(jar) as archive:
        server = archive.read("mysql-Linux-amd64.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(server)) as tar:
        tar.extractall(mysql_home, filter="data")


def _digest() -> str:
    return hashlib.sha256(_IVY_FILE.read_bytes() + _CHECKSUMS_FILE.read_bytes()).hexdigest()[:12]


def _write_checksums(cache: Path) -> None:
    """Renew ``checksums.txt`` from what Ivy gives now: after a change of ``ivy.xml`` only."""
    retrieved = cache.absolute() / "unverified"
    shutil.rmtree(retrieved, ignore_errors=True)
    retrieved.parent.mkdir(parents=True, exist_ok=True)
    retrieve(_IVY_FILE, retrieved, cache.absolute(), find_java(), print)
    lines = [f"{digest}  {name}" for name, digest in _checksums(retrieved).items()]
    header = "# sha256 of every file that ivy.xml resolves to: artifacts.py --write-checksums\n"
    _CHECKSUMS_FILE.write_text(header + "\n".join(lines) + "\n")
    shutil.rmtree(retrieved)


def main(arguments: list[str] | None = None) -> int:
    """Resolve everything, printing what is done; 1 when that fails."""
    parser = argparse.ArgumentParser(
        description="Resolve the artifacts of the embedded local stack."
    )
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument(
        "--write-checksums",
        action="store_true",
        help="renew checksums.txt after a change of ivy.xml",
    )
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        if options.write_checksums:
            _write_checksums(options.cache)
        artifacts = resolve(options.cache, print)
    except ShardMergeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"ready in {time.monotonic() - started:.1f} s: {artifacts.kafka_jars.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
