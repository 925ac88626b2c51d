"""Files and folders of migrations → their statements in the order in which they are executed. Pure.

Known folders: Flyway (``V1_2__name.sql``, then ``R__name.sql``, also in subfolders), golang-migrate
(``1_name.up.sql``), Liquibase's formatted SQL, and plain SQL files by number or name. Of plain
files those parts are left out that dbmate or goose marks as the way back.

Sources: Flyway documentation, "Versioned migrations", "Repeatable migrations", "Callbacks";
golang-migrate, MIGRATIONS.md; dbmate, README; goose, "SQL migrations".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.server_context import ServerContext

from .liquibase import changesets, is_formatted
from .sql_text import Piece, pieces

_FLYWAY = re.compile(r"(?:([VUB])(\d+(?:[._]\d+)*)|(R))__(.+)\.sql")
"""Its version ends at the first two underscores; what follows is the description."""
_CALLBACK = re.compile(r"(?:(?:before|after)[A-Z]\w*|createSchema)\.sql")
"""Such as ``afterMigrate__grants.sql``: Flyway executes it around its migrations."""
_UP = re.compile(r"(\d+)_.*\.up\.sql")
_DOWN = re.compile(r"(\d+)_.*\.down\.sql")
_NUMBERED = re.compile(r"(\d+)")
_PLACEHOLDER = re.compile(r"\$\{[\w.:-]+\}")
"""A placeholder of Flyway, Liquibase or goose."""
_WAY = re.compile(r"\s*--\s*(?:migrate:|\+goose\s+)(up|down)\b", re.IGNORECASE)
_WHOLE = "$goose$"
"""Delimiter of what goose executes as one statement."""
_STATEMENT = re.compile(r"\s*--\s*\+goose\s+Statement(Begin|End)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration.

    Attributes:
        version: Such as ``1.2``, ``20260101``, ``anna:3``; a file's name where it has no number.
        file: Its name, for people.
        pieces: Its statements.
        condition: See ``RolloutStep``; "" for a migration that runs in any case.
    """

    version: str
    file: str
    pieces: tuple[Piece, ...]
    condition: str = ""


def is_flyway(name: str) -> bool:
    """Whether a file's name, without folders, is that of a migration or callback of Flyway."""
    return bool(_FLYWAY.fullmatch(name) or _CALLBACK.fullmatch(name))


def migrations(
    files: Mapping[str, str], context: ServerContext, where: str, after: str = ""
) -> list[Migration]:
    """The migrations of a folder in the order in which their tool executes them.

    Args:
        files: Path below the folder → text, of all files whose names end with ``.sql``.
        context: How the server that executes them reads a statement.
        where: How messages name the folder.
        after: Migrations up to this version are executed already; "" for none.

    Raises:
        ConfigError: The folder has no migration, has those of several tools, or has no such
            version.
    """
    found = list(_migrations(files, context, where))
    for each in found:
        _check_no_placeholder(each)
    if not found:
        raise ConfigError(f"{where} has no migration (*.sql)", code="SM-5604")
    if not after:
        return found
    known = [n for n, each in enumerate(found, 1) if _plain(each.version) == _plain(after)]
    if not known:
        raise ConfigError(
            f"{where} has no migration {after!r}",
            hint=f"its versions: {', '.join(each.version for each in found)}",
            code="SM-5604",
        )
    return found[known[-1] :]


def _check_no_placeholder(migration: Migration) -> None:
    """Raise ``ConfigError`` for a statement with a placeholder: only the tool knows its value."""
    for piece in migration.pieces:
        if (found := _PLACEHOLDER.search(piece.sql)) is not None:
            raise ConfigError(
                f"{migration.file}:{piece.line}: the statement has the placeholder {found[0]}",
                hint="put its value there, for example with envsubst, before you plan",
                code="SM-5604",
            )


def _migrations(
    files: Mapping[str, str], context: ServerContext, where: str
) -> Iterator[Migration]:
    kinds = {
        "Flyway": [name for name in files if is_flyway(PurePosixPath(name).name)],
        "golang-migrate": [name for name in files if _UP.fullmatch(name) or _DOWN.fullmatch(name)],
        "Liquibase": [name for name, text in files.items() if is_formatted(text)],
    }
    there = [kind for kind, names in kinds.items() if names]
    if len(there) > 1:
        raise ConfigError(
            f"{where} has migrations of {' and of '.join(there)}",
            hint="name a folder with the migrations of one tool",
            code="SM-5604",
        )
    if not there:
        yield from _of_plain_files(files, context)
        return
    [kind] = there
    if others := sorted(set(files) - set(kinds[kind])):
        raise ConfigError(
            f"{where} has migrations of {kind}, but {others[0]} is not one",
            hint="move other SQL files to another folder",
            code="SM-5604",
        )
    if kind == "Flyway":
        yield from _of_flyway(files, context, where)
    elif kind == "golang-migrate":
        ups = {name: found[1] for name in files if (found := _UP.fullmatch(name))}
        for name in sorted(ups, key=lambda name: (int(ups[name]), name)):
            yield Migration(ups[name], name, _pieces(files[name], context))
    else:
        for name in sorted(files):
            for each in changesets(files[name], context, f"{where}/{name}"):
                told = f"changeset {each.name}: {each.condition}" if each.condition else ""
                yield Migration(each.name, name, each.pieces, told)


def _of_flyway(files: Mapping[str, str], context: ServerContext, where: str) -> Iterator[Migration]:
    """Versioned migrations by version, then repeatable ones by description.

    Undo and baseline migrations and callbacks are left out.

    Raises:
        ConfigError: Two files have the same version, or the same description. Flyway refuses them.
    """
    versioned: dict[tuple[int, ...], tuple[str, str]] = {}
    repeatable: dict[str, str] = {}
    for name in sorted(files):
        found = _FLYWAY.fullmatch(PurePosixPath(name).name)
        if found is None:
            continue
        kind, version, words = found[1] or found[3], (found[2] or "").replace("_", "."), found[4]
        if kind == "V":
            numbers = _trimmed(tuple(map(int, version.split("."))))
            _, other = versioned.setdefault(numbers, (version, name))
        elif kind == "R":
            other = repeatable.setdefault(words, name)
        else:
            continue
        if other != name:
            same = "version" if kind == "V" else "description"
            raise ConfigError(
                f"{where}: {other} and {name} have the same {same}",
                hint="name a folder that Flyway accepts as one location",
                code="SM-5604",
            )
    for _, (version, name) in sorted(versioned.items()):
        yield Migration(version, name, _pieces(files[name], context))
    for words, name in sorted(repeatable.items()):
        yield Migration(words, name, _pieces(files[name], context))


def _of_plain_files(files: Mapping[str, str], context: ServerContext) -> Iterator[Migration]:
    numbers = {name: found[1] for name in files if (found := _NUMBERED.match(name))}
    by_number = len(numbers) == len(files)
    for name in sorted(files, key=lambda name: (int(numbers[name]) if by_number else 0, name)):
        version = numbers[name] if by_number else name
        yield Migration(version, name, _pieces(_forward(files[name]), context))


def _forward(text: str) -> str:
    """The text without the parts that are marked as the way back; lines keep their numbers."""
    kept, back = [], False
    for line in text.splitlines():
        if (way := _WAY.match(line)) is not None:
            back = way[1].lower() == "down"
        mark = _STATEMENT.match(line)
        if mark is not None:
            # goose executes what stands between the marks as one statement.
            begins = mark[1].lower() == "begin"
            kept.append(f"DELIMITER {_WHOLE}" if begins else f"{_WHOLE}\rDELIMITER ;")
        else:
            kept.append("" if back else line)
    return "\n".join(kept)


def _pieces(text: str, context: ServerContext) -> tuple[Piece, ...]:
    return tuple(pieces(text, backslash_escapes=context.backslash_escapes))


def _plain(version: str) -> str:
    """A version for comparison: ``V1_2``, ``1.2`` and ``01.2.0`` are equal."""
    text = version.strip().removeprefix("V").removeprefix("v").replace("_", ".")
    parts = text.split(".")
    if not all(part.isdecimal() for part in parts):
        return version
    return ".".join(map(str, _trimmed(tuple(map(int, parts)))))


def _trimmed(numbers: tuple[int, ...]) -> tuple[int, ...]:
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers
