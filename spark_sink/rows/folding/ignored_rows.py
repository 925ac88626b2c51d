"""Which records a route's ``ignore`` passes over. Pure.

A record is passed over only when its segment is known: like every row it stops at a gate that may
not be passed, so ``ignore`` does not let a shard go on past its gates. Its image is not looked at.

* The two records of an UPDATE that changed a primary key are one update: both go, or both stay.
* A row that was read, by a snapshot or again, is no operation, and is never passed over.
* A TRUNCATE is no row. ``RoutingRule.keeps_truncated`` decides about it.
* When rows are taken back, the same records are passed over: what they name was never written.
"""

from __future__ import annotations

from collections.abc import Callable

from shardmerge.schemas.model.policies import RowOperation
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import CREATE, DELETE, UPDATE, MovedRow

_OPERATIONS = {
    RowOperation.INSERT: CREATE,
    RowOperation.UPDATE: UPDATE,
    RowOperation.DELETE: DELETE,
}


def is_ignored_by(stream: ShardStream) -> Callable[[str, bytes], bool] | None:
    """A function: a record's operation and value → whether the stream ignores it.

    None when the stream applies every row.
    """
    ops = frozenset(_OPERATIONS[o] for o in stream.ignored if o in _OPERATIONS)
    if not ops:
        return None
    changes_of_keys = UPDATE in ops

    def is_ignored(op: str, value: bytes) -> bool:
        if type(value) is MovedRow and op in (CREATE, DELETE):
            return changes_of_keys
        return op in ops

    return is_ignored
