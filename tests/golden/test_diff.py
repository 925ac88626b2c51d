"""Shards' schemas step by step in, the target's statements out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.lattice.join import join_all
from shardmerge.schemas.lattice.joined import Conflict, ShardSchema
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.diff import CannotRender, diff
from shardmerge.schemas.target.target_table import changed_comments, target_schema
from tests.strategies import SERVER, table

FILES = sorted((Path(__file__).parent / "diff").glob("*.yaml"))
TARGET = TargetTable("merged", "t")


class Rollout:
    """Shards with identities by name; a rename keeps the identity and renames the target.

    ``target`` is kind and version, such as ``mariadb 10.4``.
    """

    def __init__(self, create: str, count: int, target: str = "mysql 8.0.36") -> None:
        kind, _, version = target.partition(" ")
        self.dialect = dialect_of(kind, version)
        self.created: list[str] = []
        self.last: tuple[TargetStatement, ...] = ()
        self.shards = [table(create)] * count
        self.ids: list[list[str]] = [[c.name for c in s.columns] for s in self.shards]
        self.names = {name: name for name in self.ids[0]}
        self.schema: TableSchema | None = None
        self.columns: tuple[ShardColumn, ...] = ()
        self.created = self.move()

    def alter(self, shard: int, sql: str) -> list[str]:
        statement = parse(f"alter table t {sql}", SERVER)
        assert isinstance(statement, AlterTable)
        before = self.shards[shard]
        result = apply_alter(before, statement, "t", SERVER)
        old = dict(zip((c.name for c in before.columns), self.ids[shard], strict=True))
        ids = []
        for lineage in result.lineage:
            column_id = old.get(lineage.before, lineage.name)
            if lineage.before and lineage.before != lineage.name:
                self.names[column_id] = lineage.name
            self.names.setdefault(column_id, lineage.name)
            ids.append(column_id)
        comments = changed_comments(
            tuple(map(ShardColumn, self.ids[shard], before.columns)),
            tuple(map(ShardColumn, ids, result.schema.columns)),
        )
        self.shards[shard], self.ids[shard] = result.schema, ids
        return self.move(comments)

    def move(self, comments: Mapping[str, str] | None = None) -> list[str]:
        shards = [
            ShardSchema(schema, tuple(ids))
            for ids, schema in zip(self.ids, self.shards, strict=True)
        ]
        self.last = ()
        joined = join_all(shards, self.names)
        if isinstance(joined, Conflict):
            return [f"conflict: {joined}"]
        to = target_schema(
            joined, self.columns, TARGET.table, dialect=self.dialect, comments=comments
        )
        statements = diff(self.schema, self.columns, to, TARGET, self.dialect)
        if isinstance(statements, CannotRender):
            return [f"cannot: {statements.reason}. {statements.hint}"]
        self.schema, self.columns, self.last = to.schema, to.columns, statements
        prefix = f"ALTER TABLE {TARGET.sql} "
        return [f"{s.kind}: {s.sql.removeprefix(prefix)}  -- {s.reason}" for s in statements]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_step_emits_the_reviewed_statements(file: Path, update_golden: bool) -> None:
    cases: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    found = []
    for case in cases:
        rollout = Rollout(case["create"], case["shards"], case.get("target", "mysql 8.0.36"))
        steps = [
            {"shard": step["shard"], "sql": step["sql"],
             "emits": rollout.alter(step["shard"], step["sql"])}
            for step in case["steps"]
        ]  # fmt: skip
        # Where another target is meant, its CREATE TABLE is part of the answer.
        created = {"creates": rollout.created} if "target" in case else {}
        found.append({**case, **created, "steps": steps})
    if update_golden:
        text = yaml.safe_dump(found, sort_keys=False, width=1000, allow_unicode=True)
        file.write_text(text, encoding="utf-8")
    assert found == cases or update_golden


def test_there_are_cases() -> None:
    assert len(FILES) >= 2
