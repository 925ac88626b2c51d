"""The jar that makes Debezium's values exact (``connectors/java``), compiled beside its connectors.

::

    python -m shardmerge.local.install.exact_values --debezium FOLDER --output JAR

FOLDER is the folder of Debezium's plugin on a Connect worker; the sources are compiled against its
jars. Put the new jar into the same folder on every worker. The embedded stack does this by itself,
in its own folder of plugins with links to Debezium's jars.

The compiler is the JDK's. If Java has none, Eclipse's compiler is fetched like the other artifacts.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from shardmerge.connectors.debezium.source_config import EXACT_VALUES_PLUGIN, NO_ROW_TWICE
from shardmerge.schemas.model.errors import ShardMergeError, StackError

from .artifacts import DEFAULT_CACHE, find_java, read_checksums, retrieve, verify_checksums
from .files import exclusive_lock

_HERE = Path(__file__).parent
_SOURCES = _HERE.parents[1] / "connectors" / "java"
JAR = "shardmerge-exact-values.jar"
_SERVICES = {
    "org.apache.kafka.connect.transforms.predicates.Predicate": EXACT_VALUES_PLUGIN,
    "org.apache.kafka.connect.transforms.Transformation": NO_ROW_TWICE,
}
"""What the jar offers to Connect: interface → class."""
_RELEASE = "17"
# The first day of the ZIP format, for every entry: equal sources give equal jars.
_DAY = (1980, 1, 1, 0, 0, 0)


def with_exact_values(
    plugins: Path, cache: Path, java: Path, say: Callable[[str], None] = lambda _: None
) -> Path:
    """Debezium's plugins with the jar in each of them; made once per cache and source text.

    Args:
        plugins: Folder that holds one folder per plugin.
        cache: Gets the folder that is returned.
        java: The Java binary.
        say: Called with a line of progress.

    Raises:
        StackError: It cannot be compiled.
    """
    digest = hashlib.sha256(str(plugins.resolve()).encode())
    for source in _java_files():
        digest.update(source.read_bytes())
    digest.update(str(_SERVICES).encode())
    home = cache.absolute() / f"plugins-{digest.hexdigest()[:12]}"
    if home.is_dir():
        return home
    with exclusive_lock(cache.absolute() / "plugins.lock"):
        if not home.is_dir():
            # Renamed when it is complete: a crash before that repeats the work.
            fresh = home.with_name(f"{home.name}-unfinished")
            shutil.rmtree(fresh, ignore_errors=True)
            for plugin in sorted(p for p in plugins.iterdir() if p.is_dir()):
                shutil.copytree(plugin, fresh / plugin.name, copy_function=_link)
                write_jar(fresh / plugin.name / JAR, plugin, cache, java, say)
            fresh.rename(home)
    return home


def write_jar(
    jar: Path, debezium: Path, cache: Path, java: Path, say: Callable[[str], None] = lambda _: None
) -> None:
    """Compile the sources against a plugin's jars.

    Args:
        jar: Is written.
        debezium: Folder with the connector's jars.
        cache: Where a compiler is kept, if one has to be fetched.
        java: The Java binary.
        say: Called with a line of progress.

    Raises:
        StackError: The compiler refuses them, or cannot be had.
    """
    with tempfile.TemporaryDirectory(prefix="exact-values-") as folder:
        command = [
            *compiler(java, cache, say),
            *("--release", _RELEASE),
            *("-cp", os.pathsep.join(map(str, sorted(debezium.glob("*.jar"))))),
            *("-d", folder),
            *map(str, _java_files()),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise StackError(
                f"the converter of values cannot be compiled: {result.stderr.strip()[:2000]}",
                hint=f"{debezium} must hold the jars of Debezium's connector",
                code="SM-4606",
            )
        with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
            for offered, name in _SERVICES.items():
                entry = zipfile.ZipInfo(f"META-INF/services/{offered}", _DAY)
                archive.writestr(entry, f"{name}\n")
            for path in sorted(Path(folder).rglob("*.class")):
                name = path.relative_to(folder).as_posix()
                archive.writestr(zipfile.ZipInfo(name, _DAY), path.read_bytes())


def _java_files() -> list[Path]:
    return sorted(_SOURCES.glob("*.java"))


def compiler(java: Path, cache: Path, say: Callable[[str], None] = lambda _: None) -> Sequence[str]:
    """The command line of the JDK's compiler, or else of Eclipse's, which is a jar."""
    beside = java.resolve().with_name("javac")
    if os.access(beside, os.X_OK):
        return [str(beside)]
    home = cache.absolute() / "compiler"
    with exclusive_lock(cache.absolute() / "compiler.lock"):
        if not home.is_dir():
            fresh = home.with_name("compiler-unverified")
            shutil.rmtree(fresh, ignore_errors=True)
            retrieve(_HERE / "ivy-compiler.xml", fresh, cache.absolute(), java, say)
            checksums = (_HERE / "checksums-compiler.txt").read_text()
            verify_checksums(fresh, read_checksums(checksums))
            fresh.rename(home)
    return [str(java), "-jar", str(next((home / "compiler").glob("*.jar"))), "-warn:none"]


def _link(source: str, target: str) -> str:
    """Make a hard link, or a copy where the file system cannot link."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def main(arguments: list[str] | None = None) -> int:
    """Compile the jar; 1 when that fails."""
    parser = argparse.ArgumentParser(description="Compile what makes Debezium's values exact.")
    parser.add_argument(
        "--debezium", type=Path, required=True, help="folder of Debezium's plugin, with its jars"
    )
    parser.add_argument("--output", type=Path, default=Path(JAR))
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    options = parser.parse_args(arguments)
    try:
        write_jar(options.output, options.debezium, options.cache, find_java(), print)
    except ShardMergeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
