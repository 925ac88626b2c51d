"""How a scenario ended: what of the target and of the line is not as it must be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shardmerge.connectors.kafka.observer import Facts
from shardmerge.local.union import Table, read_table
from shardmerge.local.union import compare as compare_union
from shardmerge.schemas.model.names import ShardId

from . import compare, read
from .stage import Stage


def end_faults(stage: Stage) -> list[str]:
    """What is not as the scenario's end tells."""
    facts = stage.facts
    held = facts.held(stage.target)
    final = stage.scenario.final
    if final.state:
        return _state_faults(stage, final.state, held)
    if held and stage.scenario.ends_in_conflict():
        # The original ends in the conflict, and so does this: it must be told, and the other
        # shards must be whole.
        return union_faults(stage, without=frozenset(map(str, held)))
    if held:
        return [f"{shard} is held: {decision.reason}" for shard, decision in held.items()]
    faults = _progress_faults(stage, facts)
    database, table = stage.target.database, stage.target.table
    target = stage.connection("target")
    content = read_table(target, database, table)
    if content is None:
        return [*faults, f"there is no target {stage.target}"]
    shards = stage.shards()
    of_shards = frozenset(column for _, shard in shards for column in shard.columns)
    columns = read.columns(target, database, table)
    indexes = read.indexes(target, database, table)
    faults += compare.column_faults(final, columns, of_shards)
    faults += compare.index_faults(final, indexes)
    if final.as_shards:
        faults += _shard_faults(stage, columns, indexes)
    faults += compare.row_faults(final, content.rows)
    if final.rows is None:
        faults += _compared(stage, content, shards)
    return faults


def _state_faults(stage: Stage, state: str, held: Mapping[ShardId, object]) -> list[str]:
    if state == "locks pending" and held:
        return union_faults(stage, without=frozenset(map(str, held)))
    found = re.fullmatch(r"blocked on shard (\d+)", state)
    if found is None:
        return [] if held else [f"no shard is held; expected: {state}"]
    shard = stage.scenario.shards[int(found.group(1)) - 1]
    database, _, table = shard.table.partition(".")
    wanted = ShardId(shard.source, f"{stage.case}_{database}", table)
    return [] if wanted in held else [f"{wanted} is not held"]


def _progress_faults(stage: Stage, facts: Facts) -> list[str]:
    """Statements that the sink still has to execute, rows that it has not applied."""
    progress = facts.progress.get(stage.target)
    last = max((d.version for d in facts.of_target(stage.target)), default=0)
    if progress is None:
        return [f"the sink has said nothing about {stage.target}"]
    faults = [f"{s.state}: {s.sql}: {s.detail}" for s in progress.open]
    faults += [f"{shard} is not read again yet" for shard in facts.unread(stage.target)]
    faults += [f"{s.shard} waits: {s.waiting}" for s in progress.shards if s.waiting]
    ends = read.row_ends(stage.line.pipeline, [s.shard for s in progress.shards])
    faults += [
        f"rows of {s.shard} are applied up to {s.offset} of {ends[s.shard]}"
        for s in progress.shards
        if not s.waiting and s.offset < ends.get(s.shard, 0)
    ]
    if progress.executed_version < last:
        faults.append(f"executed up to version {progress.executed_version} of {last}")
    return faults


def _shard_faults(
    stage: Stage, columns: Sequence[compare.FoundColumn], indexes: Sequence[compare.FoundIndex]
) -> list[str]:
    """What of the target's schema is not as each shard has it."""
    faults = []
    for name, _ in stage.shards():
        source, database, table = re.split(r"[/.]", name)
        server = stage.connection(source)
        its_columns = read.columns(server, database, table)
        its_indexes = read.indexes(server, database, table)
        if stage.line.pipeline.target.kind != "mysql":
            its_columns = compare.without_spelling(its_columns)
            columns = compare.without_spelling(columns)
        faults += compare.schema_faults(name, its_columns, its_indexes, columns, indexes)
    return faults


def union_faults(stage: Stage, without: frozenset[str] = frozenset()) -> list[str]:
    """What of the target's rows is not the union of the shards', ``without`` some, by name."""
    content = read_table(stage.connection("target"), stage.target.database, stage.target.table)
    if content is None:
        return [f"there is no target {stage.target}"]
    shards = stage.shards()
    rest = [(name, shard) for name, shard in shards if name not in without]
    differences = _compared(stage, content, rest)
    if len(rest) < len(shards):
        # Rows of the held shards are in the target as far as they got.
        return [d for d in differences if not d.startswith(("no shard has", "…"))]
    return list(differences)


def _compared(stage: Stage, content: Table, shards: Sequence[tuple[str, Table]]) -> tuple[str, ...]:
    if stage.scenario.leave_out:
        shards = [(name, _wanted(shard)) for name, shard in shards]
    column = "_shard" if stage.scenario.shard_column else ""
    return compare_union(content, shards, shard_column=column).differences


def count_fault(stage: Stage, wanted: int) -> list[str]:
    """Whether the target has another number of rows."""
    content = read_table(stage.connection("target"), stage.target.database, stage.target.table)
    count = len(content.rows) if content else None
    return [] if count == wanted else [f"{count} rows in the target, not {wanted}"]


def _wanted(shard: Table) -> Table:
    kept = tuple(column for column in shard.columns if not column.startswith("secret"))
    rows = (row for row in shard.rows if row["a"] not in (None, "other"))
    return Table(kept, shard.key, tuple({c: row[c] for c in kept} for row in rows))
