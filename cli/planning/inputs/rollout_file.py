"""Reads a rollout file, and the files that it names. The file has tables, and steps in order.

.. code-block:: yaml

    tables:
      - shards: s{1..2}/app.t_1
        file: tables/t.sql
    steps:
      - shards: "*"
        sql: ALTER TABLE {table} ADD COLUMN n INT
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shardmerge.agents.preview.rollout import RolloutStep, TableFile
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Pipeline

from .folders import migration_files, text_of
from .migrations import migrations
from .names import named_shards
from .table_files import table_like

_TABLE_NAME = "{table}"
ORDERS = ("by-shard", "by-statement")
_USE = re.compile(r"USE\s+`?([^`]+?)`?\s*", re.IGNORECASE)
_TOP = ("tables", "steps")
_TABLE = ("shards", "shard", "file", "sql")
_STEP = ("shards", "shard", "file", "sql", "after", "order")


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One entry of ``steps``: statements, and the shards that execute them.

    Attributes:
        shards: As the file names them; see ``names.named_shards``.
        path: A file or folder of migrations; None when ``sql`` is given.
        sql: One statement; ``{table}`` stands for each shard's table.
        after: See ``migrations.migrations``.
        order: ``by-shard``: a shard executes all statements before the next shard begins.
            ``by-statement``: all shards execute a statement before the next statement comes.
        where: How messages name the entry.
    """

    shards: tuple[str, ...]
    path: Path | None
    sql: str = ""
    after: str = ""
    order: str = ORDERS[0]
    where: str = "steps"


@dataclass(frozen=True, slots=True)
class RolloutFile:
    """What a rollout file says.

    Attributes:
        tables: The present tables; none when they are not in the file.
        steps: Its entries.
    """

    tables: tuple[TableFile, ...]
    steps: tuple[StepEntry, ...]


@dataclass(frozen=True, slots=True)
class _Written:
    """A statement, its file and line, and what decides whether it is executed."""

    sql: str
    place: str = ""
    condition: str = ""


def read_rollout(path: Path, pipeline: Pipeline) -> RolloutFile:
    """Read a rollout file, and the table files that it names.

    Raises:
        ConfigError: It is no rollout file; the message says where.
    """
    try:
        # Every value is a text. Read as a number, the version 000010 would be the version 8.
        document = yaml.load(text_of(path), Loader=yaml.BaseLoader)  # noqa: S506 - makes only texts
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", code="SM-5604") from error
    top = _mapping(document, str(path), _TOP)
    tables = [
        table
        for number, entry in enumerate(_list(top, "tables", str(path)), 1)
        for table in _tables(entry, f"{path}: tables {number}", path.parent, pipeline)
    ]
    steps = [
        _step(entry, f"{path}: steps {number}", path.parent)
        for number, entry in enumerate(_list(top, "steps", str(path)), 1)
    ]
    if not steps:
        raise ConfigError(f"{path}: steps is missing, or empty", code="SM-5604")
    return RolloutFile(tuple(tables), tuple(steps))


def steps_of(
    entries: Sequence[StepEntry], live: Sequence[ShardId], pipeline: Pipeline
) -> list[RolloutStep]:
    """The steps of entries, in their order.

    Args:
        entries: The entries; the files that they name are read.
        live: The live shards before the rollout, sorted.
        pipeline: Has the shards.

    Raises:
        ConfigError: A shard or a migration does not exist.
    """
    found: list[RolloutStep] = []
    for entry in entries:
        shards = named_shards(entry.shards, live, pipeline, entry.where)
        written = _written(entry, {shard.source for shard in shards}, pipeline)
        of_shard = [
            _of_shard(entry, shard, written[shard.source], is_first=is_first)
            for shard, is_first in _firsts(shards)
        ]
        # Every shard has the same statements.
        rows = of_shard if entry.order == ORDERS[0] else zip(*of_shard, strict=True)
        found += [step for steps in rows for step in steps if step is not None]
    return found


def _firsts(shards: Iterable[ShardId]) -> Iterator[tuple[ShardId, bool]]:
    """The shards, each with whether it is the first one of its database."""
    seen: set[tuple[str, str]] = set()
    for shard in shards:
        database = (shard.source, shard.database)
        yield shard, database not in seen
        seen.add(database)


def _written(
    entry: StepEntry, sources: Collection[str], pipeline: Pipeline
) -> dict[str, list[_Written]]:
    """Source → the entry's statements as its server reads them."""
    if entry.path is None:
        return {name: [_Written(entry.sql)] for name in sources}
    files = migration_files(entry.path)
    contexts = {name: server_context(pipeline.source(name)) for name in sources}
    return {
        name: [
            _Written(piece.sql, f"{each.file}:{piece.line}", each.condition)
            for each in migrations(files, context, str(entry.path), entry.after)
            for piece in each.pieces
        ]
        for name, context in contexts.items()
    }


def _of_shard(
    entry: StepEntry, shard: ShardId, written: Sequence[_Written], *, is_first: bool
) -> list[RolloutStep | None]:
    """A shard's steps; None for a statement of a file that its database has executed already.

    A tool executes a migration once in each database. Only ``{table}`` stands for each shard.
    """
    for each in written:
        used = _USE.fullmatch(each.sql)
        if used is not None and used[1] != shard.database:
            raise ConfigError(
                f"{each.place or entry.where}: USE {used[1]}, but {shard} is in {shard.database}",
                hint="write the database before the tables' names",
                code="SM-5604",
            )
    return [
        RolloutStep(shard, _for_table(each.sql, shard), each.place, each.condition)
        if is_first or entry.path is None or _TABLE_NAME in each.sql
        else None
        for each in written
    ]


def _for_table(sql: str, shard: ShardId) -> str:
    return sql.replace(_TABLE_NAME, quote_identifier(shard.table))


def _tables(entry: Any, where: str, folder: Path, pipeline: Pipeline) -> list[TableFile]:
    told = _mapping(entry, where, _TABLE)
    name, text = _sql_or_file(told, where, folder)
    return [
        table_like(text, name, shard, server_context(pipeline.source(shard.source)))
        for shard in named_shards(_shards(told, where), (), pipeline, where)
    ]


def _sql_or_file(told: dict[str, Any], where: str, folder: Path) -> tuple[str, str]:
    if "file" in told:
        path = folder / _text(told, "file", where)
        return str(path), text_of(path)
    return where, _text(told, "sql", where)


def _step(entry: Any, where: str, folder: Path) -> StepEntry:
    told = _mapping(entry, where, _STEP)
    if ("file" in told) == ("sql" in told):
        raise ConfigError(f"{where}: give either file or sql", code="SM-5604")
    order = _text(told, "order", where, ORDERS[0])
    if order not in ORDERS:
        raise ConfigError(
            f"{where}: order {order!r} is not known",
            hint=f"known: {', '.join(ORDERS)}",
            code="SM-5604",
        )
    return StepEntry(
        shards=_shards(told, where),
        path=folder / _text(told, "file", where) if "file" in told else None,
        sql=_text(told, "sql", where, "").strip().rstrip(";"),
        after=_text(told, "after", where, ""),
        order=order,
        where=where,
    )


def _shards(told: dict[str, Any], where: str) -> tuple[str, ...]:
    named = told.get("shards", told.get("shard"))
    names = [named] if isinstance(named, str) else named
    if not names or not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise ConfigError(
            f"{where}: shards must be a shard, or a list of them, not {named!r}",
            hint="such as s1/app.t_1, or '*' for all live shards",
            code="SM-5604",
        )
    return tuple(names)


def _mapping(value: Any, where: str, known: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a mapping, not {value!r}", code="SM-5604")
    if unknown := sorted(str(key) for key in value if key not in known):
        raise ConfigError(
            f"{where}: unknown key {unknown[0]!r}",
            hint=f"known: {', '.join(known)}",
            code="SM-5604",
        )
    return value


def _list(top: dict[str, Any], key: str, where: str) -> list[Any]:
    value = top.get(key) or []
    if not isinstance(value, list):
        raise ConfigError(f"{where}: {key} must be a list, not {value!r}", code="SM-5604")
    return value


def _text(told: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = told.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {key} must be a text, not {value!r}", code="SM-5604")
    return value
