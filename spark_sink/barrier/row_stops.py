"""At which gates the rows of shards wait for statements of their target. Pure.

Two kinds of statements are handled here: those that change one shard's rows, and those that make
the columns of a fix-up. For every other statement, rows wait by version (``statements.frontier``).
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
    """Per shard the first gate at which its rows wait for a statement that changes its rows.

    The value is the index of the gate, and the reason for people.

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

    A fix-up repairs rows that are older than its request. Rows that come later must lose nothing,
    so their values must be written into the columns that these statements make. The rows that are
    read again can come at any time. A row that changed since comes by the binlog, too, and a new
    row comes only by the binlog. So every row waits that is not applied when the decision is seen.
    Rows applied before are older than the request, and are read again.

    The decision need not have a gate in the shard's stream. The rows wait at the last gate up to
    its version, and not later. The statements may wait for rows before that gate, so those pass.

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
