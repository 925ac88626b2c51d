"""Target statements from their texts, as tests write them."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.schemas.records.earlier_statements import actions_of

NO_REASON = CodedText("", "")


def written(
    sql: str,
    kind: StatementKind = StatementKind.EXPANDING,
    subjects: tuple[str, ...] = (),
    binds: tuple[Binding, ...] = (),
    shard: ShardId | None = None,
) -> TargetStatement:
    """A statement with that text, and the actions that the text stands for."""
    return TargetStatement(sql, kind, "", subjects, binds, shard, actions_of(sql))


def rewritten(statement: TargetStatement, sql: str) -> TargetStatement:
    """The statement with another text, and the actions that it stands for."""
    return replace(statement, sql=sql, actions=actions_of(sql))
