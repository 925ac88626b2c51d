"""The reader of the status pages on the agents' event loop."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from shardmerge.agents.status.view import StatusView
from shardmerge.agents.web.consumer import ViewReader
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import JoinedSchema
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.schemas.records.validations import TargetValidation

TARGETS = [TargetTable("merged", f"t{number}") for number in range(5)]


def joined(target: TargetTable, version: int) -> bytes:
    column = Column("c", ColumnType("int"))
    return codec.encode(
        JoinedSchema(target, version, (ShardColumn("c", column),), TableSchema((column,)), 1, 0)
    )


def record(offset: int, key: str, value: bytes | None) -> SimpleNamespace:
    return SimpleNamespace(topic="p.joined-schemas", offset=offset, key=key.encode(), value=value)


def test_the_agents_get_their_turn_after_every_record_of_a_long_history():
    view = StatusView()
    reader = ViewReader(Kafka("kafka:9092"), ["p.joined-schemas"], view)
    seen: list[int] = []

    async def agent() -> None:
        while len(seen) < len(TARGETS):
            seen.append(len(view.targets()))
            await asyncio.sleep(0)

    async def read() -> None:
        other = asyncio.create_task(agent())
        await asyncio.sleep(0)
        await reader.take(record(n, str(t), joined(t, 1)) for n, t in enumerate(TARGETS))
        await other

    asyncio.run(read())
    assert seen == [0, 1, 2, 3, 4]


def test_of_each_key_only_the_last_record_is_read():
    view = StatusView()
    reader = ViewReader(Kafka("kafka:9092"), ["p.joined-schemas"], view)
    target = TARGETS[0]
    older = record(0, str(target), b"\xc3\x01 of no contract")
    gone = record(1, "merged.gone", None)
    asyncio.run(reader.take([older, gone, record(2, str(target), joined(target, 7))]))
    assert [(t.target, t.version) for t in view.targets()] == [(target, 7)]


def test_a_tombstone_takes_a_comparison_away():
    view = StatusView()
    topics = ["p.joined-schemas", "p.validations"]
    reader = ViewReader(Kafka("kafka:9092"), topics, view, validations="p.validations")
    target = TARGETS[0]
    found = TargetValidation(target, 3, 1_000, 2_000, True, 30, 2, missing=1)
    key = found.record_key
    compared = SimpleNamespace(
        topic="p.validations", offset=0, key=key.encode(), value=codec.encode(found)
    )
    gone = SimpleNamespace(topic="p.validations", offset=1, key=key.encode(), value=None)

    def state() -> list[str]:
        return [each.validation.state for each in view.targets()]

    asyncio.run(reader.take([record(0, str(target), joined(target, 1))]))
    asyncio.run(reader.take([compared]))
    assert state() == ["differs"]
    asyncio.run(reader.take([record(1, key, None)]))  # of another topic
    assert state() == ["differs"]
    asyncio.run(reader.take([gone]))
    assert state() == ["never"]


def test_every_command_counts_with_the_offset_of_its_record():
    view = StatusView()
    reader = ViewReader(Kafka("kafka:9092"), ["p.commands"], view, commands="p.commands")
    target = TARGETS[0]
    value = codec.encode(
        OperatorCommand(ChangeId("p.commands", 0), target, CommandKind.DISABLE, by="olga")
    )
    records = [
        SimpleNamespace(topic="p.commands", offset=n, key=str(target).encode(), value=value)
        for n in (4, 7)
    ]
    asyncio.run(reader.take(records))
    assert [str(each.command.id) for each in view.commands(target)] == [
        "p.commands@7.0", "p.commands@4.0",
    ]  # fmt: skip
