"""The environment of a Spark cluster's executors, as an archive for ``spark.archives``.

An executor runs our code in Python workers of its own. They need this project and the packages that
it imports there, in the versions that the driver has: the driver pickles its values for them. The
archive is made from what is installed here, so nothing is fetched and no version can differ.

Theory of operation:

1. ``needed`` follows the requirements of this project, from one installed package to the next. Java
   and PySpark come with Spark itself: ``LEFT_OUT``.
2. The archive is laid out as a virtual environment: ``bin/python`` is a link to Python on the
   executor's machine, and Python finds ``pyvenv.cfg`` and the packages from there. So it works in
   whatever folder Spark unpacks it.
3. Entries are sorted and carry no times and no owners: equal packages make equal archives.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

from shardmerge.schemas.model.errors import ConfigError

NAME, EXTRA = "shardmerge", "spark"
ROOMS = ("connectors", "schemas", "spark_sink")
"""The packages of this project that an executor imports."""
LEFT_OUT = frozenset({"pyspark", "py4j"})
_Entry = tuple[str, Path]


def needed(
    requirements: Callable[[str], Sequence[str] | None], name: str = NAME, extra: str = EXTRA
) -> tuple[str, ...]:
    """The names of the packages that a package with an extra needs, without itself, sorted.

    Args:
        requirements: The requirements of an installed package, as in its metadata; None if it is
            not installed.
        name: The package.
        extra: Its extra.

    Raises:
        ConfigError: A package is not installed.
    """
    found: set[str] = set()
    waiting = [(name, extra)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        package, its_extra = waiting.pop()
        if (package, its_extra) in seen:
            continue
        seen.add((package, its_extra))
        wanted = requirements(package)
        if wanted is None:
            raise ConfigError(
                f"the package {package} is not installed here, and executors need it",
                hint=f"pip install '{NAME}[{EXTRA}]'",
                code="SM-5801",
            )
        for text in wanted:
            one = Requirement(text)
            if one.marker is not None and not one.marker.evaluate({"extra": its_extra}):
                continue
            other = normalised(one.name)
            if other in LEFT_OUT:
                continue
            found.add(other)
            waiting += [(other, each) for each in ("", *one.extras)]
    return tuple(sorted(found - {name}))


def normalised(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_archive(path: Path, python: str) -> tuple[str, ...]:
    """Write the archive.

    Args:
        path: The file, which must not exist; its name ends with ``.tar.gz``.
        python: Path of Python on the executors' machines, of the same version as this one.

    Returns:
        The packages in it, as ``name==version``.

    Raises:
        ConfigError: A package is not installed, or the file exists or cannot be written.
    """
    names = needed(_requirements)
    entries = sorted({*_of_this_project(), *_of_packages(names)})
    folder = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    try:
        with (
            path.open("xb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            _add_python(archive, python)
            for name, place in entries:
                archive.add(place, f"{folder}/{name}", recursive=False, filter=_without_owner)
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror or error}",
            hint="choose another file, or remove it",
            code="SM-5802",
        ) from None
    return tuple(f"{name}=={metadata.version(name)}" for name in (NAME, *names))


def _requirements(name: str) -> Sequence[str] | None:
    try:
        return metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return None


def _of_this_project() -> Iterator[_Entry]:
    """The files of this project's packages, also where it is installed from a checkout."""
    for room in ROOMS:
        (folder,) = import_module(f"{NAME}.{room}").__path__
        root = Path(folder)
        for place in root.rglob("*"):
            if place.is_file() and "__pycache__" not in place.parts:
                yield f"{NAME}/{room}/{place.relative_to(root).as_posix()}", place


def _of_packages(names: Iterable[str]) -> Iterator[_Entry]:
    for name in names:
        for file in metadata.files(name) or ():
            parts = PurePosixPath(file).parts
            # Programs and manual pages lie outside; compiled files are made again where needed.
            if ".." in parts or "__pycache__" in parts:
                continue
            yield PurePosixPath(file).as_posix(), Path(str(file.locate()))


def _add_python(archive: tarfile.TarFile, python: str) -> None:
    for name, to in (("bin/python", python), ("bin/python3", "python")):
        link = tarfile.TarInfo(name)
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, to, 0o777
        archive.addfile(link)
    home = PurePosixPath(python).parent
    text = f"home = {home}\ninclude-system-site-packages = false\n".encode()
    settings = tarfile.TarInfo("pyvenv.cfg")
    settings.size = len(text)
    archive.addfile(settings, io.BytesIO(text))


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry
