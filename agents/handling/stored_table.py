"""The agents' tables as their changelogs tell them, for those who are no worker. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.pipeline.settings import Pipeline

from .effects import Effects, at_hand_key, from_bytes

COORDINATOR_TABLE = "target-states"
TRACKER_TABLE = "tracked-tables"
"""Faust's names of the tables."""


def changelog(pipeline: Pipeline, table: str = COORDINATOR_TABLE) -> str:
    """The topic with what was put into a table.

    Source: Faust names it after the app, which is ``<pipeline>-agents``, and the table.
    """
    return f"{pipeline.name}-agents-{table}-changelog"


def table_of(records: Iterable[StoredRecord]) -> Effects:
    """The puts that make the table, complete even while its worker is performing records.

    Of the rows of records at hand, only a part may be there. The row of the records at hand
    contains all of them, so the others are added.

    Args:
        records: Of the changelog, each partition's in order of their offsets.

    Raises:
        ContractError: The records at hand have another format.
    """
    rows: dict[bytes, bytes] = {}
    partitions = set()
    for record in records:
        if record.key is None:
            continue
        partitions.add(record.partition)
        if record.value is None:
            rows.pop(record.key, None)
        else:
            rows[record.key] = record.value
    puts: dict[bytes, bytes | None] = dict(rows)
    for partition in sorted(partitions):
        stored = puts.pop(at_hand_key(partition), None)
        if stored is not None:
            puts |= from_bytes(stored).effects.puts
    return Effects(puts)
