"""Records that the compiled code takes, and those that it leaves to Python.

That both make the same of a record is held by ``tests/properties/test_record_lines.py``.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import msgspec.json
import pytest
from msgspec import Raw

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.folding.line_maker import RecordLines
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.mysql.lines import record_lines
from shardmerge.spark_sink.targets.mysql.lines.load_lines import LoadLines
from tests.unit.spark_sink.row_events import INT, TEXT

from .test_layouts import plan

FILE = "binlog.000001"


def lines_for(key: str = "id", **columns: Any) -> RecordLines:
    found = LoadLines(is_mariadb=False).of_records(plan(key, **columns))
    assert found is not None
    return found


def record(op: str = "c", pos: int = 100, **image: Any) -> bytes:
    source = {"name": "s1", "db": "app", "table": "t", "file": FILE, "pos": pos, "row": 0}
    before, after = (image, None) if op == "d" else (None, image)
    envelope = {"before": before, "after": after, "source": source, "op": op}
    return msgspec.json.encode(envelope)


def take(lines: RecordLines, *values: bytes, wrapped: bool = False) -> list[tuple[Any, bytes]]:
    found = lines.take(values, FILE, 0, 1_000, wrapped=wrapped)
    assert len(found.keys) == len(found.lines) == len(found.operations)
    return list(zip(found.keys, found.lines, strict=True))


ALL: tuple[tuple[ColumnType, Any, bytes], ...] = (
    (ColumnType("tinyint", 1), True, b"1"),
    (ColumnType("bigint", unsigned=True), 2**64 - 1, b"18446744073709551615"),
    (ColumnType("year"), 1900, b"0000"),
    (ColumnType("decimal", 9, 2), "-0.50", b"-0.50"),
    (ColumnType("float"), 0.1, b"0.10000000149011612"),
    (ColumnType("double"), 0.25, b"0.25"),
    (ColumnType("bit", 1), False, b"0"),
    (ColumnType("bit", 20), base64.b64encode(b"\x01\x02").decode(), b"513"),
    (ColumnType("date"), -719_528, b"0000-01-01"),
    (ColumnType("date"), 2_932_896, b"9999-12-31"),
    (ColumnType("date"), -100_000_000, b"0000-00-00"),
    (ColumnType("time"), -3_723_000_001, b"-01:02:03.000001"),
    (ColumnType("datetime", fsp=3), -1, b"1969-12-31 23:59:59.999"),
    (ColumnType("datetime", fsp=6), 1_582_934_400_000_001, b"2020-02-29 00:00:00.000001"),
    (ColumnType("timestamp"), "2020-02-29T01:02:03.5+00:00", b"2020-02-29 01:02:03.5"),
    (ColumnType("timestamp"), "1970-01-01T00:00:00Z", b"0000-00-00 00:00:00"),
    (TEXT, 'a\t"\\\n\0é\U0001f600', 'a\\t"\\\\\\n\\0é\U0001f600'.encode()),
    (ColumnType("varchar", 9, charset="latin1"), "é", "é".encode()),
    (ColumnType("enum", elements=("a",)), "", b"0"),
    (ColumnType("json"), '{"a": "1.5e3\\"1e5"}', b'{"a": "1.5e3\\\\"1e5"}'),
    (ColumnType("json"), '[-1234567.890123, "\\\\"]', b'[-1234567.890123, "\\\\\\\\"]'),
    (ColumnType("binary", 4), base64.b64encode(b"\xff\x00").decode(), b"ff000000"),
    (ColumnType("blob"), "", b""),
    (TEXT, None, rb"\N"),
)


@pytest.mark.parametrize(("kind", "value", "cell"), ALL)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_value_becomes_its_text(
    kind: ColumnType, value: Any, cell: bytes, ascii_only: bool
) -> None:
    one = record(id=1, v=value)
    if ascii_only:
        one = json.dumps(json.loads(one), separators=(",", ":")).encode()
    assert take(lines_for(id=INT, v=kind), one) == [(1, b"1\t" + cell)]


LEFT: tuple[tuple[ColumnType, Any], ...] = (
    (INT, 1.5), (INT, "1"), (INT, 10**20), (ColumnType("year"), -1), (ColumnType("year"), 10_000),
    (ColumnType("decimal", 9, 2), "1e5"), (ColumnType("decimal", 9, 2), "1."),
    (ColumnType("float"), 3.5e38), (ColumnType("date"), 2_932_897), (ColumnType("date"), "x"),
    (ColumnType("datetime"), 10**18), (ColumnType("timestamp"), "2020-02-29 01:02:03Z"),
    (ColumnType("timestamp"), "2020-02-29T01:02:03+01:00"),
    (ColumnType("timestamp"), "2020-02-29T01:02:03.1234567Z"), (TEXT, 1), (TEXT, []),
    (ColumnType("varchar", 9, charset="latin1"), "\ufffd"), (ColumnType("json"), "[1e5]"),
    (ColumnType("json"), '["\\\\", 1234567.8901234567]'),
    (ColumnType("double"), Raw(b"-0")), (ColumnType("float"), Raw(b"-0")),
    (ColumnType("blob"), "YQ="), (ColumnType("blob"), "YR=="), (ColumnType("blob"), "Y Q="),
    (ColumnType("bit", 1), 1),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), LEFT)
def test_a_value_that_is_not_certain_is_left_to_python(kind: ColumnType, value: Any) -> None:
    assert take(lines_for(id=INT, v=kind), record(id=1, v=value)) == []


def test_records_are_taken_up_to_the_first_that_is_left() -> None:
    lines = lines_for(id=INT, v=TEXT)
    values = [record(id=n, v=[] if n == 2 else "x") for n in range(4)]
    assert take(lines, *values) == [(0, b"0\tx"), (1, b"1\tx")]
    assert take(lines, *values[2:]) == []
    assert take(lines, *values[3:]) == [(3, b"3\tx")]


GOOD = record(id=1, v="x")


@pytest.mark.parametrize(
    "value",
    [
        b"", b"{", b"null", b"[]", GOOD[:-1], GOOD + b" ", b" " + GOOD, GOOD + GOOD,
        GOOD.replace(b'"s1"', b'"s2"'), GOOD.replace(b'"app"', b'"b"'),
        GOOD.replace(b'"table":"t"', b'"table":"u"'), GOOD.replace(b"binlog.000001", b"binlog.2"),
        GOOD.replace(b'"pos":100', b'"pos":0'), GOOD.replace(b'"pos":100', b'"pos":1000'),
        GOOD.replace(b'"op":"c"', b'"op":"t"'), GOOD.replace(b'"op":"c"', b'"op":"cc"'),
        GOOD.replace(b',"op":"c"', b""), GOOD.replace(b'"op":"c"', b'"op":"c","op":"c"'),
        GOOD.replace(b'"id":1', b'"id":01'), GOOD.replace(b'"id":1', b'"id":-0'),
        GOOD.replace(b'"id":1', b'"id":1,"w":2'), GOOD.replace(b'"v":"x"', b'"w":"x"'),
        GOOD.replace(b'"v":"x"', b'"v":"x\n"'), GOOD.replace(b'"v":"x"', rb'"v":"\x"'),
        GOOD.replace(b'"v":"x"', rb'"v":"\ud800"'), GOOD.replace(b'"v":"x"', b'"v":"\xff"'),
        GOOD.replace(b'"op"', b'"shardmerge_epoch":"1","op"'), record("d", id=1, v="x")[:-20],
    ],
)  # fmt: skip
def test_a_record_that_is_another_than_expected_is_left_to_python(value: bytes) -> None:
    assert take(lines_for(id=INT, v=TEXT), value) == []


def test_a_deleted_row_has_its_key_and_no_line() -> None:
    assert take(lines_for(id=INT, v=TEXT), record("d", id=7, v="x")) == [(7, b"")]


def test_rows_that_were_read_at_another_place_are_left_for_the_next_call() -> None:
    values = [record("r", pos, id=pos, v="x") for pos in (5, 5, 6)]
    assert [key for key, _ in take(lines_for(id=INT, v=TEXT), *values)] == [5, 5]


@pytest.mark.parametrize(
    ("key", "expected"), [("a b", (1, "é")), ("b a", ("é", 1)), ("b", "é"), ("b c", ("é", "z"))]
)
def test_a_key_has_its_parts_in_order(key: str, expected: Any) -> None:
    [(found, _)] = take(lines_for(key, a=INT, b=TEXT, c=TEXT), record(a=1, b="é", c="z"))
    assert found == expected


BIG = ColumnType("bigint", unsigned=True)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(ColumnType("bigint"), 2**63 - 1), (ColumnType("bigint"), 1 - 2**63), (BIG, 2**64 - 1)],
)
def test_a_large_integer_is_a_key(kind: ColumnType, value: int) -> None:
    lines = lines_for("b a", a=kind, b=kind)
    values = [record(a=value, b=n) for n in (7, 8)]
    assert [key for key, _ in take(lines, *values)] == [(7, value), (8, value)]


@pytest.mark.parametrize(
    ("kind", "value"), [(ColumnType("bigint"), 2**63), (ColumnType("bigint"), -(2**63)), (BIG, -1)]
)
def test_an_integer_that_has_no_place_is_left_to_python(kind: ColumnType, value: int) -> None:
    assert take(lines_for("a", a=kind), record(a=value)) == []


def test_rows_before_bytes_that_are_no_text_are_taken() -> None:
    values = [record(id=n, v="x", w="é") for n in range(4)]
    values[2] = values[2].replace(b'"x"', b'"\xff"')
    lines = lines_for("w id", id=INT, v=TEXT, w=TEXT)
    found = lines.take(values, FILE, 0, 1_000, wrapped=False)
    assert [*found.keys] == [("é", 0), ("é", 1)]
    assert (len(found.lines), found.operations, found.refused) == (2, b"cc", True)


@pytest.mark.parametrize("value", [None, 5, "a\nb"])
def test_a_key_that_cannot_be_given_back_is_left_to_python(value: Any) -> None:
    assert take(lines_for("b", b=TEXT), record(b=value)) == []


def test_columns_are_written_in_the_order_of_the_plan_with_constants_behind() -> None:
    one = plan(id=INT, v=TEXT)
    origin = (("_from", ConstantValue(Form.TEXT, "s1/a\tp")),)
    added = (("n", ConstantValue(Form.DATE, None)),)
    turned = replace(one, columns=one.columns[::-1], origin=origin, added=added)
    lines = LoadLines(is_mariadb=False).of_records(turned)
    assert lines is not None
    assert take(lines, record(id=1, v="x")) == [(1, b"x\t1\ts1/a\\tp\t\\N")]


def test_an_embedded_schema_is_skipped_as_long_as_it_stays_the_same() -> None:
    lines = lines_for(id=INT, v=TEXT)
    first, second = (b'{"schema":{"n":%d},"payload":' % n for n in (1, 2))
    values = [first + GOOD + b"}", first + record(id=2, v="y") + b"}", second + GOOD + b"}"]
    assert [key for key, _ in take(lines, *values, wrapped=True)] == [1, 2]
    assert [key for key, _ in take(lines, *values[2:], wrapped=True)] == [1]
    assert take(lines, GOOD, wrapped=True) == []
    assert take(lines, first + GOOD, wrapped=True) == []


def test_long_rows_find_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_lines, "_MOST_BYTES", 2_000)
    monkeypatch.setattr(record_lines, "_places", record_lines._Places())
    lines = lines_for("id v", id=INT, v=TEXT)
    values = [record(id=n, v="x" * 10**n) for n in range(5)]
    taken: list[tuple[Any, bytes]] = []
    while len(taken) < len(values):
        some = take(lines, *values[len(taken) :])
        assert some
        taken += some
    assert [key for key, _ in taken] == [(n, "x" * 10**n) for n in range(5)]
