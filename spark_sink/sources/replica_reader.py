"""Reads chunks from a replica of a source, and waits until the replica has got far enough.

Everything is read from the replica but the binlog's end. That is the source's: what a replica has
executed is in its source's binlog, so a chunk that was read on the replica has nothing from behind
an end that was noted on the source afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.replica_rules import (
    Committed,
    has_come,
    show_gtids,
    show_identity,
    show_replication,
    wait_for,
    why_not_a_replica,
)
from shardmerge.spark_sink.loading.snapshot_queries import has_snapshots, show_engine

from .table_reader import TableReader

WAIT_S = 30
"""The longest wait of one try; it is tried again with growing pauses."""


class ReplicaReader(TableReader):
    """Reads a source's tables from the replica that the pipeline file names; see ``TableReader``.

    Args:
        source: With ``load_host``.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(_replica_of(source))
        self._of, self._mariadb = source, source.flavour == "mariadb"
        self._primary = TableReader(source)
        self._version: str | None = None

    def begin(self) -> None:
        """See ``TableReader``; a server that is no replica of the source is not read."""
        self._checked()
        super().begin()

    def table(self, shard: ShardId) -> TableSchema | None:
        """See ``TableReader``.

        Raises:
            StackError: Also if the table's engine on the replica has no transactions.
        """
        found = super().table(shard)
        rows = self.query(show_engine(shard))
        if found is not None and not has_snapshots(engine := str(rows[0][0] if rows else "")):
            raise StackError(
                f"{self._source.name}: the engine of {shard} is {engine or 'not known'} there, "
                "which has no transactions",
                hint="make it a table of InnoDB on the replica, or leave load_host out",
                code="SM-1651",
            )
        return found

    def binlog_end(self) -> SourcePosition:
        """The end of the source's binlog; see the module."""
        return self._primary.binlog_end()

    def wait(self, seconds: int = 0) -> None:
        """Wait until the replica has executed everything that the source has committed by now.

        Args:
            seconds: The longest wait; 0 for ``WAIT_S``.

        Raises:
            StackError: It has not within that time, or it is no replica of the source.
        """
        seconds = seconds or WAIT_S
        version = self._checked()
        ((gtids,),) = self._primary.query(show_gtids(mariadb=self._mariadb))
        committed = Committed(str(gtids or ""), self._primary.binlog_end())
        sql = wait_for(committed, version, seconds, mariadb=self._mariadb)
        ((answer,),) = self.query(sql)
        if not has_come(committed, answer):
            raise StackError(
                f"{self._source.name}: it has not executed within {seconds} s what the source had "
                "committed"
                if answer is not None
                else f"{self._source.name}: it does not replicate now",
                hint="see its replication status; it is tried again. Without load_host the source "
                "itself is read",
                code="SM-1652",
            )

    def close(self) -> None:
        """See ``TableReader``."""
        super().close()
        self._version = None
        self._primary.close()

    def _checked(self) -> str:
        """The replica's version. The server is checked once for each connection."""
        if self._version is not None and self.is_open:
            return self._version
        asks = show_identity(mariadb=self._mariadb)
        ((source, _),) = self._primary.query(asks)
        ((server, version),) = self.query(asks)
        channels = self.named_rows(show_replication(str(version), mariadb=self._mariadb))
        if why := why_not_a_replica(str(source), str(server), channels):
            raise StackError(
                f"{self._source.name}: it cannot be read in the source's place: {why}",
                hint="name a server in load_host that replicates directly from the source, without "
                "filters, or leave load_host out",
                code="SM-1650",
            )
        self._version = str(version)
        return self._version


def chunk_reader(source: Source) -> TableReader:
    """A reader of the server from which chunks of a source's tables are read."""
    return ReplicaReader(source) if source.load_host else TableReader(source)


def _replica_of(source: Source) -> Source:
    port = source.load_port or source.port
    return replace(
        source,
        # The name stands in messages only.
        name=f"{source.name}, replica {source.load_host}:{port}",
        host=source.load_host,
        port=port,
        user=source.load_user or source.user,
        password=source.load_password or source.password,
    )
