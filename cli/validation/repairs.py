"""Shows rows that differ, and corrects them: by SQL for an operator, or by reading them again."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException

from shardmerge.connectors.access.kafka import client_error
from shardmerge.connectors.access.kafka import producer as producer_of
from shardmerge.connectors.debezium.signals import can_be_asked_for, snapshot_signal
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.validation.compared_table import ComparedTable, Side
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind, Key
from shardmerge.spark_sink.validation.repair_statements import (
    delete_statement,
    lake_statement,
    literals_query,
    write_statement,
)
from shardmerge.spark_sink.validation.row_keys import keys_condition
from shardmerge.spark_sink.validation.sampled_rows import (
    MOST_SHOWN,
    SampledRow,
    count_statement,
    sample_query,
    sampled_row,
)

from .inputs.server_rows import ServerRows

_SEND_S = 30.0
_ROWS_A_READING = 500


def samples(
    table: ComparedTable, found: Sequence[Difference], servers: ServerRows
) -> dict[Key, SampledRow]:
    """Digest → one of its rows, for differences of rows without a key.

    The row is that of the first shard that has it; if none has it, the target's. Only the first
    ``MOST_SHOWN`` differences have a row, and only if it is still there.

    Raises:
        StackError: A server does not answer.
    """
    counted = [each for each in found if each.kind is DifferenceKind.COUNT][:MOST_SHOWN]
    sides = {side.shard: side for side in (table.side, *table.shards)}
    wanted: dict[ShardId | None, list[Key]] = {}
    for each in counted:
        owner = each.owners[0][0] if each.owners else None
        wanted.setdefault(owner, []).append(each.key)
    told: dict[Key, SampledRow] = {}
    for owner, keys in wanted.items():
        side = sides[owner]
        for digest, *values in servers.ask(side, sample_query(table, side, keys)):
            texts = [None if value is None else _text(value) for value in values]
            told[_text(digest),] = sampled_row(table, side, texts)
    return told


def statements(
    table: ComparedTable,
    found: Sequence[Difference],
    servers: ServerRows,
    rows: Mapping[Key, SampledRow] | None = None,
) -> dict[Difference, str]:
    """Difference → the statement that makes the target's row equal to the shard's row.

    A difference has no statement if its shard does not have the row any more. For rows without a
    key see ``count_statement``.

    Args:
        table: What was compared.
        found: The differences.
        servers: Asks for the rows.
        rows: What ``samples`` has found; needed for rows without a key.

    Raises:
        StackError: A source does not answer.
    """
    told, known = {}, rows or {}
    for difference in found:
        side = _side_of(table, difference)
        if difference.kind is DifferenceKind.COUNT:
            if statement := count_statement(table, difference, known.get(difference.key)):
                told[difference] = statement
        elif difference.kind is DifferenceKind.EXTRA:
            told[difference] = delete_statement(table, difference)
        elif side is not None and table.side.lake:
            for key, row in servers.rows([side], [difference.key])[0]:
                if key == difference.key:
                    told[difference] = lake_statement(table, side, difference, row)
        elif side is not None:
            answer = servers.ask(side, literals_query(table, side, difference))
            if len(answer) == 1:
                literals = [_text(value) for value in answer[0]]
                told[difference] = write_statement(table, side, difference, literals)
    return told


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def requests(
    table: ComparedTable, found: Sequence[Difference]
) -> tuple[dict[ShardId, list[str]], list[str]]:
    """What connectors are asked to read again.

    Returns:
        Shard → SQL conditions of the rows to read; and why other differences are not repaired.
    """
    conditions: dict[ShardId, list[str]] = {}
    notes = counted_notes(found, {})
    extra = sum(d.kind is DifferenceKind.EXTRA for d in found)
    if extra:
        notes.append(
            f"{extra} extra rows stay: reading a shard again removes no rows (--repair sql does)"
        )
    for side in table.shards:
        keys = [d.key for d in found if d.shard == side.shard]
        if not keys or side.shard is None:
            continue
        if not can_be_asked_for(side.shard):
            notes.append(
                f"Debezium cannot read {side.shard} again: its name has special characters"
            )
            continue
        conditions[side.shard] = [
            keys_condition(side.key, keys[at : at + _ROWS_A_READING])
            for at in range(0, len(keys), _ROWS_A_READING)
        ]
    return conditions, notes


def counted_notes(found: Sequence[Difference], told: Mapping[Difference, str]) -> list[str]:
    """Why differences of rows without a key are not repaired; empty if all are.

    Args:
        found: The differences.
        told: Those that have a statement.
    """
    counted = sum(d.kind is DifferenceKind.COUNT and d not in told for d in found)
    if not counted:
        return []
    return [
        f"{counted} differences of rows without a key have no statement: `shardmerge command"
        " reread` reads their shards as a whole"
    ]


def ask(pipeline: Pipeline, conditions: dict[ShardId, list[str]]) -> int:
    """Ask connectors to read rows again. The rows come as those of an incremental snapshot.

    Returns:
        How many requests were made.

    Raises:
        StackError: Kafka does not take them.
    """
    topic = topics.signals(pipeline).name
    producer = producer_of(pipeline.kafka, {"enable.idempotence": True, "log_level": 0})
    run, sent = f"validate-{uuid.uuid4().hex[:12]}", 0
    try:
        for shard, all_of_it in conditions.items():
            for number, condition in enumerate(all_of_it):
                key, value = snapshot_signal(f"{run}-{number}", shard, rows=condition)
                producer.produce(topic, value, key)
                sent += 1
        left = producer.flush(_SEND_S)
    except KafkaException as error:
        raise client_error(pipeline.kafka, error, f"topic {topic}") from error
    if left:
        raise StackError(
            f"Kafka did not take {left} requests within {_SEND_S:.0f} s",
            hint="check that the broker runs, and run the command again",
            code="SM-4107",
        )
    return sent


def _side_of(table: ComparedTable, found: Difference) -> Side | None:
    return next(
        (side for side in table.shards if found.shard is not None and side.shard == found.shard),
        None,
    )
