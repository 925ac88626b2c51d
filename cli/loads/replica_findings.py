"""What ``shardmerge check`` finds about replicas that first loads read in their sources' place."""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.cli.checks.findings import Finding
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.sources.replica_reader import ReplicaReader

_WAIT_S = 3
_BEHIND, _NO_TRANSACTIONS = "SM-1652", "SM-1651"


def replica_findings(source: Source, shards: Sequence[ShardId]) -> list[Finding]:
    """Everything that would keep a load from reading a source's replica, as the load would say it.

    A replica that is behind is a warning: a load waits for it.

    Args:
        source: With ``load_host``.
        shards: The source's tables that are routed.
    """
    reader, found = ReplicaReader(source), list[Finding]()
    try:
        reader.begin()
        reader.end()
        for shard in shards:
            found += _of_table(reader, source, shard)
            if found and found[-1].code != _NO_TRANSACTIONS:
                return found
        reader.wait(_WAIT_S)
    except ShardMergeError as error:
        found.append(_finding(source, error, fault=error.code != _BEHIND))
    finally:
        reader.close()
    return found


def _of_table(reader: ReplicaReader, source: Source, shard: ShardId) -> list[Finding]:
    """What is wrong with a table; it is read as the transaction of a chunk begins."""
    try:
        reader.begin()
        reader.table(shard)
    except ShardMergeError as error:
        return [_finding(source, error)]
    finally:
        reader.end()
    return []


def _finding(source: Source, error: ShardMergeError, *, fault: bool = True) -> Finding:
    hint = f" ({error.hint})" if error.hint else ""
    return Finding(f"source {source.name}", f"{error.message}{hint}", fault, error.code)
