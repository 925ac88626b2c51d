"""A step as plain values, for machines; and what the text of a step is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from shardmerge.agents.coordination.state.shard_state import Hold, ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.connectors.formats.stored_record import iso_time
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.mysql_text import check_clause, column_definition, index_clause
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.plain import to_plain

from .comparing import COUNTED
from .steps import ReplayStep
from .verify import Verification

_TARGET_TOLD = frozenset(
    ("target", "version", "shards", "columns", "schema", "names", "generations", "seen", "held",
     "policies")
)  # fmt: skip
_HOLD_TOLD = frozenset(("version", "position", "reason", "hint", "code", "post", "queue"))
_SHARD_TOLD = frozenset(("shard", "effective", "position", "version", "hold"))


def step_facts(step: ReplayStep) -> dict[str, Any]:
    """Everything about a step, as JSON takes it."""
    record = step.record
    return {
        "step": step.number,
        "record": {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
        },
        "time": iso_time(step.ts_ms),
        "kind": None if step.came is None else type(step.came).__name__,
        "came": to_plain(step.came),
        "answers": [{"kind": type(a).__name__, **to_plain(a)} for a in step.answers],
        "before": None if step.before is None else state_facts(step.before),
        "after": None if step.after is None else state_facts(step.after),
    }


def state_facts(state: TargetState) -> dict[str, Any]:
    """A target's state."""
    held = [state.shards[shard] for shard in sorted(state.held)]
    return {
        "target": str(state.target),
        "version": state.version,
        "create_table": create_table(state),
        "columns": [{"id": c.id, "name": c.column.name} for c in state.columns],
        "live": [str(shard) for shard in sorted(state.shards)],
        "held": [_held_facts(shard.shard, shard.hold) for shard in held if shard.hold],
        "names": dict(sorted(state.names.items())),
        "more": target_extras(state),
        "more_of_shards": {
            str(shard): more
            for shard in sorted(state.shards)
            if (more := shard_extras(state.shards[shard]))
        },
    }


def verification_facts(verification: Verification) -> Iterable[dict[str, Any]]:
    """Each difference, then the counts."""
    for difference in verification.differences:
        yield {"difference": to_plain(difference)}
    yield {
        "differences": len(verification.differences),
        "folded": verification.folded,
        "events": verification.events,
        "topics": {c.topic: {k: c.counts[k] for k in COUNTED} for c in verification.comparisons},
        "not_compared": dict(verification.others),
    }


def schema_lines(schema: TableSchema | None, columns: Iterable[ShardColumn] = ()) -> list[str]:
    """A schema's parts as SQL: columns, indexes, checks, options.

    A column's identity stands behind it where it is not the first one of the column's own name.
    """
    if schema is None:
        return []
    ids = {item.column.name: item.id for item in columns}
    lines = []
    for column in schema.columns:
        identity = ids.get(column.name, "")
        told = identity in ("", f"{column.name}#1")
        lines.append(column_definition(column) + ("" if told else f"  -- {identity}"))
    lines += [index_clause(index) for index in schema.indexes]
    lines += [check_clause(check) for check in schema.checks]
    return [*lines, *_options(schema)]


def create_table(state: TargetState) -> str | None:
    """The target's schema as CREATE TABLE, a part a line; None while there is no table."""
    return None if state.schema is None else schema_text(state.target.sql, state.schema)


def schema_text(name: str, schema: TableSchema) -> str:
    """A schema as CREATE TABLE, a part a line.

    Args:
        name: Of the table, quoted.
        schema: Any.
    """
    options = _options(schema)
    lines = schema_lines(schema)
    parts = ",\n".join(f"  {line}" for line in lines[: len(lines) - len(options)])
    return f"CREATE TABLE {name} (\n{parts}\n)" + "".join(f" {o}" for o in options)


def target_extras(state: TargetState) -> dict[str, Any]:
    """The rest of a target's state: compared fields without a place of their own in the facts."""
    return {**_extras(state, _TARGET_TOLD), **_extras(state.policies, frozenset())}


def shard_extras(shard: ShardState) -> dict[str, Any]:
    """The compared fields of a shard and its hold that have no place of their own in the facts."""
    found = _extras(shard, _SHARD_TOLD)
    return {**found, **(_extras(shard.hold, _HOLD_TOLD) if shard.hold else {})}


def _options(schema: TableSchema) -> list[str]:
    charset = [f"DEFAULT CHARACTER SET {schema.charset}"] if schema.charset else []
    return charset + ([f"COLLATE {schema.collation}"] if schema.collation else [])


def _held_facts(shard: ShardId, hold: Hold) -> dict[str, Any]:
    return {
        "shard": str(shard),
        "version": hold.version,
        "position": str(hold.position),
        "reason": hold.reason,
        "hint": hold.hint,
        "code": hold.code,
        "schema": schema_lines(hold.post.schema) if hold.post else None,
        "queue": [list(pending.made.actions) for pending in hold.queue],
    }


def _extras(value: Any, told: frozenset[str]) -> dict[str, Any]:
    """Fields that neither stand in ``told`` nor have their usual value."""
    return {
        item.name: _plain(content)
        for item in fields(value)
        if item.compare and item.name not in told
        if (content := getattr(value, item.name)) != _usual(item)
    }


def _usual(item: Field[Any]) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def _plain(content: Any) -> Any:
    """Like ``to_plain``, with texts for names and SQL for schemas."""
    if isinstance(content, (ShardId, TargetTable)):
        return str(content)
    if isinstance(content, ShardSchema):
        return schema_lines(content.schema, content.columns)
    if isinstance(content, TableSchema):
        return schema_lines(content)
    if isinstance(content, Mapping):
        return {str(key): _plain(item) for key, item in content.items()}
    if isinstance(content, (tuple, list)):
        return [_plain(item) for item in content]
    if is_dataclass(content):
        compared = (item.name for item in fields(content) if item.compare)
        return {name: _plain(getattr(content, name)) for name in compared}
    return to_plain(content)
