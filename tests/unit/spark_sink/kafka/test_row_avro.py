"""Rows in Avro: what the compiled decoder reads, what it leaves to the general one, and errors."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import DecodeError
from msgspec.structs import astuple

from shardmerge.connectors.formats import avro_wire
from shardmerge.connectors.formats.avro_wire import RegistryUnreachable, UnknownSchema
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, Default, DefaultKind
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.kafka.row_avro import AvroRows
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import UndecodableRow
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from tests.unit.spark_sink.row_events import texts_of

SHARD = ShardId("s-1", "app-1", "t")
UNSIGNED = {"type": "bytes", "scale": 0, "precision": 64, "logicalType": "decimal"}
GEOMETRY = {
    "type": "record", "name": "Geometry", "namespace": "io.debezium.data.geometry",
    "fields": [{"name": "wkb", "type": "bytes"},
               {"name": "srid", "type": ["null", "int"], "default": None}],
}  # fmt: skip
TYPES: dict[str, tuple[Any, Any]] = {
    "integer": ("int", st.integers(-(2**31), 2**31 - 1)),
    "long": ({"type": "long", "connect.name": "io.debezium.time.Timestamp"},
             st.integers(-(2**63), 2**63 - 1)),
    "unsigned": (UNSIGNED, st.integers(0, 2**64 - 1)),
    "float": ("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "flag": ("boolean", st.booleans()),
    "text": ("string", st.text(max_size=200)),
    "data": ("bytes", st.binary(max_size=200)),
    "place": (GEOMETRY, st.fixed_dictionaries(
        {"wkb": st.binary(max_size=20), "srid": st.none() | st.integers(0, 5000)})),
}  # fmt: skip


def schema(columns: dict[str, Any]) -> dict[str, Any]:
    """An envelope's schema as Debezium and Connect's Avro converters make it."""
    value = {"type": "record", "name": "Value", "namespace": "s_1.app.t",
             "fields": [{"name": n, "type": t} for n, t in columns.items()]}  # fmt: skip
    source = {
        "type": "record", "name": "Source", "namespace": "io.debezium.connector.mysql",
        "fields": [{"name": n, "type": t} for n, t in (
            ("version", "string"), ("name", "string"), ("ts_ms", "long"),
            ("snapshot", [{"type": "string", "connect.default": "false"}, "null"]),
            ("db", "string"), ("table", ["null", "string"]), ("gtid", ["null", "string"]),
            ("file", "string"), ("pos", "long"), ("row", "int"), ("thread", ["null", "long"]))],
    }  # fmt: skip
    block = {"type": "record", "name": "block", "fields": [{"name": "id", "type": "string"},
             {"name": "total_order", "type": "long"}]}  # fmt: skip
    return {
        "type": "record", "name": "Envelope", "namespace": "s_1.app.t",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": source},
            {"name": "transaction", "type": ["null", block], "default": None},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"]},
        ],
    }  # fmt: skip


class Registry:
    """Schemas by number, and how often each was asked for."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.asked: list[int] = []
        self.away = False

    def add(self, schema: dict[str, Any]) -> int:
        self.schemas.append(schema)
        return len(self.schemas) - 1

    def __call__(self, number: int) -> str:
        self.asked.append(number)
        if self.away:
            raise RegistryUnreachable("the registry is away", hint="see whether it runs")
        if number >= len(self.schemas):
            raise UnknownSchema(f"no schema {number}", hint="another registry?")
        return json.dumps(self.schemas[number])

    def record(
        self, number: int, op: str, image: dict[str, Any] | None, pos: int = 100, **changed: Any
    ) -> bytes:
        source = {
            "version": "3", "name": SHARD.source, "ts_ms": 2**41, "snapshot": "false",
            "db": SHARD.database, "table": SHARD.table, "gtid": None, "file": "binlog.000001",
            "pos": pos, "row": 0, "thread": 7, **changed.pop("source", {}),
        }  # fmt: skip
        envelope = {
            "before": image if op in "du" else None, "after": None if op in "dt" else image,
            "source": source, "transaction": {"id": "a:1", "total_order": 1}, "op": op,
            "ts_ms": 2**41, **changed,
        }  # fmt: skip
        return b"\0" + number.to_bytes(4, "big") + written(self.schemas[number], envelope)


def written(schema: dict[str, Any], value: Any) -> bytes:
    def plain(value: Any, schema: Any) -> Any:
        # What Connect's Decimal is in bytes.
        if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
            return value.to_bytes(9, "big", signed=True)
        return value

    body = io.BytesIO()
    for image in (value["before"], value["after"]):
        for name, kind in {f["name"]: f["type"] for f in value_fields(schema)}.items():
            branches = kind if isinstance(kind, list) else [kind]
            part = next(branch for branch in branches if branch != "null")
            if image is not None and isinstance(image[name], int):
                image[name] = plain(image[name], part)
    fastavro.schemaless_writer(body, fastavro.parse_schema(without_logic(schema)), value)
    return body.getvalue()


def value_fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = schema["fields"][0]["type"][1]["fields"]
    return fields


def without_logic(part: Any) -> Any:
    if isinstance(part, dict):
        return {k: without_logic(v) for k, v in part.items() if k != "logicalType"}
    return [without_logic(v) for v in part] if isinstance(part, list) else part


def shape(columns: dict[str, Any]) -> tuple[tuple[str, None], ...]:
    return tuple((name, None) for name in columns)


@given(st.data())
def test_the_compiled_decoder_gives_what_the_general_one_gives(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, unique=True))
    columns, values = {}, {}
    for name in names:
        kind, values_of = TYPES[name]
        form = data.draw(st.sampled_from(("plain", "null first", "null last")))
        columns[name] = {"plain": kind, "null first": ["null", kind]}.get(form, [kind, "null"])
        values[name] = data.draw(values_of if form == "plain" else st.none() | values_of)
    registry = Registry()
    number = registry.add(schema(columns))
    rows = AvroRows(registry)
    decoder = rows.decoder(SHARD, shape(columns), (names[0],), 0)
    assert decoder.decode is not None
    assert decoder.decode_image is not None
    for op in "crud":
        # The compiled one expects blocks like the first one, and must not rely on it.
        block = {
            "gtid": data.draw(st.sampled_from((None, "a" * 40, "b"))),
            "snapshot": data.draw(st.sampled_from(("false", "true", None))),
            "thread": data.draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
            "ts_ms": data.draw(st.integers(-(2**63), 2**63 - 1)),
            "version": data.draw(st.sampled_from(("3.6.1.Final", "4", "v" * 300))),
        }
        value = registry.record(number, op, dict(values), source=block)
        general, compiled = rows.decode(value), decoder.decode(value)
        assert (compiled.op, compiled.source.file, compiled.source.pos) == (
            op,
            "binlog.000001",
            100,
        )
        image = decoder.decode_image(compiled.before) if op == "d" else compiled.after
        assert general.image is not None
        assert astuple(image) == tuple(general.image[name] for name in names)
        assert general.image == values
        if op == "u":
            assert astuple(decoder.decode_image(compiled.before)) == astuple(image)


def fold(registry: Registry, **columns: ColumnType) -> RowFold:
    shard_columns = tuple(ShardColumn(f"{n}#1", Column(n, t)) for n, t in columns.items())
    segment = Segment(BEGINNING, shard_columns, ("id",))
    return RowFold(
        ShardStream(SHARD, TargetTable("m", "t"), (segment,), None),
        {c.id: Binding(c.id, c.column.name) for c in shard_columns},
        rows=AvroRows(registry),
    )  # fmt: skip


def cells(f: RowFold) -> list[dict[str, str | None]]:
    (batch,) = f.batches()
    assert isinstance(batch, Batch)
    return [
        dict(zip(block.names, row, strict=True))
        for block in batch.upserts
        for row in zip(*texts_of(block), strict=True)
    ]


def test_names_that_avro_does_not_allow_find_their_columns() -> None:
    registry = Registry()
    number = registry.add(schema({"id": "int", "_u0031st": "int", "a_u002db": ["null", "string"]}))
    f = fold(registry, **{"id": ColumnType("int"), "1st": ColumnType("int"),
                          "a-b": ColumnType("varchar", 9)})  # fmt: skip
    for key in range(3):
        value = registry.record(number, "c", {"id": key, "_u0031st": key * 2, "a_u002db": "x"})
        assert f.add(key, value)

    assert cells(f) == [{"id": str(n), "1st": str(2 * n), "a-b": "x"} for n in range(3)]
    assert registry.asked == [number]


def test_a_schema_that_came_later_is_compiled_too_and_bytes_are_bytes() -> None:
    registry = Registry()
    first = registry.add(schema({"id": UNSIGNED, "b": "bytes"}))
    second = registry.add(schema({"id": UNSIGNED, "b": ["null", "bytes"]}))
    f = fold(registry, id=ColumnType("bigint", unsigned=True), b=ColumnType("blob"))
    records = [(first, 2**64 - 1, b"\0\xff"), (second, 1, None), (first, 2, b""), (second, 3, b"a")]
    for offset, (number, key, data) in enumerate(records):
        assert f.add(offset, registry.record(number, "c", {"id": key, "b": data}))

    assert cells(f) == [
        {"id": "1", "b": None}, {"id": "2", "b": ""}, {"id": "3", "b": "61"},
        {"id": str(2**64 - 1), "b": "00ff"},
    ]  # fmt: skip
    assert sorted(registry.asked) == [first, second]


def test_a_delete_a_tombstone_and_a_truncate_are_what_they_are_in_json() -> None:
    registry = Registry()
    number = registry.add(schema({"id": "int"}))
    f = fold(registry, id=ColumnType("int"))
    place = SourcePosition(0, "binlog.000001", 300, 0)

    for offset, key in enumerate((1, 2)):
        assert f.add(offset, registry.record(number, "c", {"id": key}))
    assert f.add(2, registry.record(number, "d", {"id": 1}, pos=200))
    assert f.add(3, None)
    assert not f.add(4, registry.record(number, "t", None, pos=300))
    assert f.counts() == (1, 1)
    assert f.end is not None
    assert (f.end.truncated, f.end.position) == (True, place)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda v: b'{"op": "c"}', "Confluent's framing"),
        (lambda v: v[:3], "Confluent's framing"),
        (lambda v: b"\0\0\0\0\x09" + v[5:], "no schema 9"),
        (lambda v: v[:20], "not of the schema"),
        (lambda v: v + b"\0", "bytes are left"),
    ],
)
def test_what_cannot_be_read_holds_the_shard_there(spoil: Any, reason: str) -> None:
    registry = Registry()
    number = registry.add(schema({"id": "int"}))
    f = fold(registry, id=ColumnType("int"))
    good = registry.record(number, "c", {"id": 1})

    assert f.add_all([0, 1], [good, good])
    # The compiled decoder reads no further than it must; the general one sees what is left.
    bad = spoil(registry.record(number, "c", {"id": 2}, pos=10 if "left" in reason else 200))
    if "left" in reason:
        with pytest.raises(UndecodableRow, match=reason):
            AvroRows(registry).decode(bad)
        return
    assert not f.add(2, bad)
    assert f.end is not None
    assert f.end.hold is not None
    assert f.end.offset == f.end.hold.offset == 2
    assert reason in f.end.hold.reason
    assert f.end.hold.hint


def test_a_registry_that_is_away_holds_what_needs_it_until_it_is_back() -> None:
    registry = Registry()
    known = registry.add(schema({"id": "int"}))
    new = registry.add(schema({"id": ["null", "int"]}))
    f = fold(registry, id=ColumnType("int"))
    assert f.add(0, registry.record(known, "c", {"id": 1}))
    registry.away = True

    assert f.add(1, registry.record(known, "c", {"id": 2}))
    assert not f.add(2, registry.record(new, "c", {"id": 3}))
    assert f.end is not None
    assert f.end.hold is not None
    assert f.end.hold.reason == "the registry is away"
    registry.away = False
    again = fold(registry, id=ColumnType("int"))
    assert again.add(2, registry.record(new, "c", {"id": 3}))
    assert cells(again) == [{"id": "3"}]


def test_a_row_of_another_table_is_refused_by_the_compiled_decoder_and_held() -> None:
    registry = Registry()
    number = registry.add(schema({"id": "int"}))
    f = fold(registry, id=ColumnType("int"))
    assert f.add(0, registry.record(number, "c", {"id": 1}))

    assert not f.add(1, registry.record(number, "c", {"id": 2}, source={"table": "other"}))
    assert f.end is not None
    assert f.end.hold is not None
    assert "belongs to" in f.end.hold.reason


def test_the_shard_of_a_record_is_found_without_reading_its_rows() -> None:
    registry = Registry()
    rows = AvroRows(registry)
    number = registry.add(schema({"id": "int", "v": ["null", "string"]}))
    names = (SHARD.source, SHARD.database, SHARD.table)
    for op in "cudt":
        assert rows.names_of(registry.record(number, op, {"id": 1, "v": "x"})) == names
    other = registry.record(number, "c", {"id": 1, "v": None}, source={"table": "tä" * 99})
    assert rows.names_of(other) == (*names[:2], "tä" * 99)
    whole = registry.record(number, "c", {"id": 1, "v": "x"})
    place = whole.index(SHARD.table.encode(), whole.index(SHARD.database.encode()))
    for end in range(place + 1):
        assert rows.names_of(whole[:end]) is None, "what is cut off names nobody"


def test_a_record_in_avro_that_does_not_say_whose_it_is_names_nobody() -> None:
    registry = Registry()
    rows = AvroRows(registry)
    number = registry.add(schema({"id": "int"}))
    good = registry.record(number, "c", {"id": 1})
    assert rows.names_of(b"{}") is None
    assert rows.names_of(b"\0" + (9).to_bytes(4, "big") + good[5:]) is None
    unnamed = registry.add({"type": "record", "name": "x", "fields": []})
    assert rows.names_of(b"\0" + unnamed.to_bytes(4, "big")) is None
    registry.schemas.append("no schema")  # type: ignore[arg-type]
    broken = b"\0" + (unnamed + 1).to_bytes(4, "big")
    registry.asked.clear()
    for _ in range(9):
        assert rows.names_of(b"\0" + unnamed.to_bytes(4, "big")) is None
        assert rows.names_of(broken) is None
    assert len(registry.asked) <= 1, "a schema does not change"
    registry.away = True
    later = registry.add(schema({"id": "long"}))
    assert rows.names_of(registry.record(later, "c", {"id": 1})) is None
    registry.away = False
    assert rows.names_of(registry.record(later, "c", {"id": 1})) is not None


def test_a_value_of_another_type_than_the_column_has_is_refused() -> None:
    registry = Registry()
    number = registry.add(schema({"id": "int", "b": "string"}))
    rows = AvroRows(registry)
    columns = (("id", frozenset({int})), ("b", frozenset({bytes})))
    decode = rows.decoder(SHARD, columns, ("id",), 0).decode
    assert decode is not None

    with pytest.raises(DecodeError, match="column b"):
        decode(registry.record(number, "c", {"id": 1, "b": "text"}))


def test_json_of_avro_is_what_the_json_converter_writes() -> None:
    registry = Registry()
    number = registry.add(schema({"id": UNSIGNED, "b": "bytes"}))
    translate = avro_wire.JsonOfAvro(registry)

    text = translate(registry.record(number, "c", {"id": 2**64 - 1, "b": b"\0\xff"}))

    assert text is not None
    assert json.loads(text)["after"] == {"id": 2**64 - 1, "b": "AP8="}
    assert translate(None) is None
    translate(registry.record(number, "c", {"id": 1, "b": b""}))
    assert registry.asked == [number]


@pytest.mark.parametrize(
    ("nullable", "default", "lost"),
    [
        (True, Default(DefaultKind.LITERAL, "7"), True),
        (True, Default(DefaultKind.NULL, ""), False),
        (True, None, False),
        (False, Default(DefaultKind.LITERAL, "7"), False),
    ],
)
def test_rows_whose_nulls_the_converter_loses_are_held(
    nullable: bool, default: Default | None, lost: bool
) -> None:
    registry = Registry()
    number = registry.add(schema({"id": "int", "b": ["int", "null"]}))
    column = Column("b", ColumnType("int"), nullable=nullable, default=default)
    columns = (ShardColumn("id#1", Column("id", ColumnType("int"))), ShardColumn("b#1", column))
    stream = ShardStream(
        SHARD, TargetTable("m", "t"), (Segment(BEGINNING, columns, ("id",)),), None
    )
    bindings = {c.id: Binding(c.id, c.column.name) for c in columns}
    for nulls_are_lost in (True, False):
        rows = AvroRows(registry, nulls_are_lost=nulls_are_lost)
        f = RowFold(stream, bindings, rows=rows)
        assert f.add(0, registry.record(number, "c", {"id": 1, "b": 7})) is not (
            lost and nulls_are_lost
        )
        assert (f.end is None) is not (lost and nulls_are_lost)


def test_rows_of_another_epoch_are_looked_at_as_a_whole() -> None:
    registry = Registry()
    rows = AvroRows(registry)
    plain = schema({"id": "int"})
    field = {"name": "shardmerge_epoch", "type": ["null", "string"], "default": None}
    numbered = {**plain, "fields": [*plain["fields"], field]}
    without, with_it = registry.add(plain), registry.add(numbered)
    records = {
        None: registry.record(with_it, "c", {"id": 1}, shardmerge_epoch=None),
        "1": registry.record(with_it, "c", {"id": 1}, shardmerge_epoch="1"),
        "2": registry.record(with_it, "c", {"id": 1}, shardmerge_epoch="2"),
    }
    columns = (("id", frozenset({int})),)
    for epoch, own in ((0, None), (1, "1"), (2, "2")):
        decode = rows.decoder(SHARD, columns, ("id",), epoch).decode
        assert decode is not None
        for named, record in records.items():
            assert rows.decode(record).epoch == int(named or 0)
            if named == own:
                assert decode(record).op == "c"
            else:
                with pytest.raises(DecodeError):
                    decode(record)
    plain_record = registry.record(without, "c", {"id": 1})
    decode = rows.decoder(SHARD, columns, ("id",), 1).decode
    assert decode is not None
    with pytest.raises(DecodeError):
        decode(plain_record)
