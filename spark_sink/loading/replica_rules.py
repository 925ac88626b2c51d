"""Which server may be read in a source's place, and when it has got far enough. Pure.

A chunk may be read from a replica if the replica shows the source's rows as they were at some
position R of the source's binlog, and R is at or behind the place of the load. So the server must

* replicate directly from the source, without filters, and not be the source itself;
* have executed everything that the source had committed when it was asked.

Source: MySQL Reference Manual, "SHOW REPLICA STATUS Statement", "Functions Used with Global
Transaction Identifiers", "Position-Based Synchronization Functions"; MariaDB documentation, "SHOW
REPLICA STATUS", "MASTER_GTID_WAIT".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.mysql_text import string_literal
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.server_differences import version_numbers

Row = Mapping[str, str | None]
"""Name of a column in lower case → its text; None for NULL."""
_REPLICA_SINCE = (8, 0, 22)
"""MySQL knows the word REPLICA from here on, and SOURCE_POS_WAIT a few versions later."""
_POS_WAIT_SINCE = (8, 0, 26)
_FILTERS = (
    "replicate_do_db",
    "replicate_ignore_db",
    "replicate_do_table",
    "replicate_ignore_table",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
    "replicate_rewrite_db",
)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a source had committed when it was asked.

    Attributes:
        gtids: Its executed GTIDs (MySQL), or its GTID position (MariaDB); "" without GTIDs.
        end: Its binlog's end.
    """

    gtids: str
    end: SourcePosition


def show_identity(*, mariadb: bool) -> str:
    """Asks who a server is: an identity, and its version."""
    return f"SELECT {'@@server_id' if mariadb else '@@server_uuid'}, VERSION()"


def show_replication(version: str, *, mariadb: bool) -> str:
    """Asks what a server replicates, a row for each channel.

    Args:
        version: Of the server.
        mariadb: Its kind.
    """
    if mariadb:
        return "SHOW ALL SLAVES STATUS"
    return f"SHOW {'REPLICA' if version_numbers(version) >= _REPLICA_SINCE else 'SLAVE'} STATUS"


def show_gtids(*, mariadb: bool) -> str:
    """Asks a source for its GTIDs; a server of MySQL that makes none answers with ""."""
    if mariadb:
        return "SELECT @@GLOBAL.gtid_binlog_pos"
    return "SELECT IF(@@GLOBAL.gtid_mode = 'ON', @@GLOBAL.gtid_executed, '')"


def why_not_a_replica(source: str, server: str, channels: Sequence[Row]) -> str:
    """Why a server cannot be read in a source's place, for people; "" when it can.

    Args:
        source: The identity of the source.
        server: The identity of the server.
        channels: What the server replicates.
    """
    if source == server:
        return "it is the source itself"
    own = next((row for row in channels if source in _identities(row)), None)
    if own is None:
        return "it does not replicate from the source"
    for name in _FILTERS:
        if text := own.get(name):
            return f"it does not replicate everything: {name} is {text}"
    return ""


def wait_for(committed: Committed, version: str, seconds: int, *, mariadb: bool) -> str:
    """Waits on a replica until it has executed what its source had committed.

    Args:
        committed: Of the source.
        version: Of the replica.
        seconds: The longest wait.
        mariadb: Whether both are servers of MariaDB.
    """
    gtids, end = committed.gtids, committed.end
    if mariadb:
        return f"SELECT MASTER_GTID_WAIT({string_literal(gtids)}, {seconds})"
    if gtids:
        return f"SELECT WAIT_FOR_EXECUTED_GTID_SET({string_literal(gtids)}, {seconds})"
    word = "SOURCE" if version_numbers(version) >= _POS_WAIT_SINCE else "MASTER"
    return f"SELECT {word}_POS_WAIT({string_literal(end.file)}, {end.pos}, {seconds})"


def has_come(committed: Committed, answer: object) -> bool:
    """Whether the answer to ``wait_for`` says that the replica has executed it."""
    if answer is None:
        return False  # it does not replicate now
    # Of a position the answer is a number of events, or negative.
    return int(str(answer)) == 0 if committed.gtids else int(str(answer)) >= 0


def _identities(row: Row) -> set[str | None]:
    return {row.get("source_uuid"), row.get("master_uuid"), row.get("master_server_id")}
