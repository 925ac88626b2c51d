"""Reads files and folders of SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shardmerge.schemas.model.errors import ConfigError

from .migrations import is_flyway


def sql_files(path: Path) -> dict[str, str]:
    """Name → text: of one file, or of a folder's files whose names end with ``.sql``.

    Raises:
        ConfigError: There is no such file or folder, or a file is not UTF-8. Also when a subfolder
            has such files: they would be missed.
    """
    if path.is_dir():
        below = next((each for each in sorted(path.rglob("*.sql")) if each.parent != path), None)
        if below is not None:
            raise ConfigError(
                f"{path} has SQL files in subfolders, such as {below}",
                hint="name a folder that has all of its SQL files directly in it",
                code="SM-5604",
            )
        return {each.name: text_of(each) for each in sorted(path.glob("*.sql")) if each.is_file()}
    return {path.name: text_of(path)}


def migration_files(path: Path) -> dict[str, str]:
    """Path below the folder → text: as ``sql_files``, and Flyway's files in subfolders, too.

    Flyway searches its locations recursively; the version alone makes the order. The other tools
    read one folder.

    Raises:
        ConfigError: As ``sql_files``; a subfolder may have files that are named as Flyway's.
    """
    found = sorted(each for each in path.rglob("*.sql") if each.is_file())
    below = [each for each in found if each.parent != path]
    other = next((each for each in below if not is_flyway(each.name)), None)
    if not below or other == below[0]:
        return sql_files(path)
    if other is not None:
        raise ConfigError(
            f"{path} has migrations of Flyway in subfolders, but {other} is not one",
            hint="move other SQL files to another folder",
            code="SM-5604",
        )
    return {each.relative_to(path).as_posix(): text_of(each) for each in found}


def text_of(path: Path) -> str:
    """A file's text.

    Raises:
        ConfigError: There is no such file, or it is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 (byte {error.start + 1})",
            hint="convert the file to UTF-8",
            code="SM-5604",
        ) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", code="SM-5604") from error


def databases_below(path: Path) -> Iterator[tuple[str, str, Path]]:
    """The folders ``SOURCE/DATABASE`` below a folder, as skeema lays them out, sorted."""
    for source in sorted(each for each in path.iterdir() if each.is_dir()):
        if source.name.startswith("."):
            continue
        for database in sorted(each for each in source.iterdir() if each.is_dir()):
            if not database.name.startswith("."):
                yield source.name, database.name, database
