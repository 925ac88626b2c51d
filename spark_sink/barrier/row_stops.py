"""At which gates the rows of shards wait for statements of their target. Pure.

These are the statements that change a shard's own rows, and those that make the columns which a
fix-up is about. For every other statement rows wait by its version (``statements.frontier``).
"""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import StatementKind

from .decisions import TargetDecisions
from .statement_limits import WAITED_FOR, rows_gate
from .statements import OpenStatement


def rows_stops(
    target: TargetDecisions, open_now: Iterable[OpenStatement]
) -> dict[ShardId, tuple[int, str]]:
    """Per shard the first gate at which its rows wait for a change of its rows, and for what.

    Args:
        target: What is decided.
        open_now: The statements that are not executed (``open_statements``).
    """
    found: dict[ShardId, tuple[int, str]] = {}
    for key, statement in ((s.key, s.statement) for s in open_now):
        if statement.kind is not StatementKind.ROWS or statement.shard is None:
            continue  # no row waits for it
        shard = target.shards[statement.shard]
        index = rows_gate(shard, key.version)
        if index is not None and index < found.get(shard.shard, (len(shard.gates), ""))[0]:
            what = f"waits for statement {key.version}.{key.ordinal}, which changes its rows"
            found[shard.shard] = index, what
    return found


def fixup_stops(
    target: TargetDecisions, open_now: Iterable[OpenStatement]
) -> dict[ShardId, tuple[int, str]]:
    """Per shard the gate at which its rows wait for the statements of a decision with a fix-up.

    The fix-up is about rows of before: of what comes later nothing may be lost, so it must be
    written into the columns that these statements make. What is read again comes when it likes;
    rows that the binlog has newer come by themselves, and rows that are new come only so. So all
    rows wait that are not applied when the decision is seen; whatever was applied before is older
    than the request, and is read again. The decision need not have a gate in the shard's stream.
    The place is the last gate before it, and not beyond: rows before that gate can be what the
    statements wait for.

    Args:
        target: What is decided.
        open_now: The statements that are not executed (``open_statements``).
    """
    found: dict[ShardId, tuple[int, str]] = {}
    for key, statement in ((s.key, s.statement) for s in open_now):
        if statement.kind not in WAITED_FOR:
            continue
        for name in target.fixups.get(key.version, ()):
            last = target.shards[name].upto(key.version) - 1
            what = f"waits for statement {key.version}.{key.ordinal}, which makes its columns"
            found.setdefault(name, (last, what))
    return found
