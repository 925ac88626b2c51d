"""Every type's boundary values through every way: what no limit names is exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shardmerge.connectors.debezium.value_limits import (
    BINLOG,
    LIMITS,
    SNAPSHOT,
    UNREADABLE_CHARSETS,
    ValueLimit,
)
from shardmerge.local.servers.stack import LocalStack
from shardmerge.spark_sink.rows.folding import row_batches, row_fold
from shardmerge.spark_sink.rows.folding.line_maker import TakenRecords
from shardmerge.spark_sink.targets.mysql.lines.record_lines import CompiledRecordLines

from . import ways
from .exactness import (
    FAMILIES,
    HALF_ZEROS,
    JSON_DECIMALS,
    LOST_BYTES,
    LOST_DAYS,
    UNMAPPED,
    ZERO,
    Item,
    definitions,
    rows,
)
from .ways import KEYLESS, REREAD, Difference, Line

pytestmark = pytest.mark.timeout(900)
YEAR_ZERO = "0000-05-05"


@pytest.fixture(scope="module")
def line(stack: LocalStack) -> Iterator[Line]:
    """All families, read by one connector that writes JSON."""
    line = Line(stack, "json")
    ways.before_start(line)
    line.make("unmapped", UNMAPPED)
    line.fill("unmapped", UNMAPPED)
    line.start()
    ways.after_start(line)
    yield line
    line.close()


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_not_exact_is_in_the_table(line: Line, family: str) -> None:
    found = ways.played(line, family)
    print(ways.matrix(line.families[family], found))
    assert [d for d in found if not limits_of_difference(d)] == []
    # And what the table names is seen: an entry that is no longer true must go.
    assert {limit.id for d in found for limit in limits_of_difference(d)} == _SEEN.get(
        family, set()
    )


_SEEN = {
    "numbers": {"float_digits"},
    "dates": {"zero_date", "half_zero_date", "year_zero", "year_zero_read", "lost_days"},
    "times": {"zero_date"},
    "json": {"json_decimal"},
}
"""One double in 200, and characters of vendors, are not among the values."""


@pytest.mark.parametrize("family", ["integers", "numbers", "times", "texts", "bytes"])
def test_primary_keys_of_every_type_are_exact(line: Line, family: str) -> None:
    assert ways.played_as_keys(line, family) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_as_exact_when_compiled_code_makes_their_lines(
    line: Line, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_batches, "LINES_FROM_ROWS", 1)
    monkeypatch.setattr(row_batches, "SETTLED_ROWS", 1)
    monkeypatch.setattr(row_fold, "SETTLED_ROWS", 1)
    monkeypatch.setattr(row_fold, "_AFTER_REFUSAL", 1)
    taken, take = [0, 0], CompiledRecordLines.take

    def counting(self: Any, values: Any, *args: Any, **options: Any) -> TakenRecords:
        found = take(self, values, *args, **options)
        taken[0] += len(found.keys)
        taken[1] += not found.keys
        return found

    monkeypatch.setattr(CompiledRecordLines, "take", counting)
    found = ways.updated(line, family)
    print(ways.matrix(line.families[family], found), taken)
    assert [d for d in found if not limits_of_difference(d)] == []
    assert (taken[0] > 0) is (family in _COMPILED)


_COMPILED = {"integers", "numbers", "dates", "times", "json"}
"""Each of the others has a column that Python has to read."""


_IN_AVRO = ("integers", "numbers", "dates", "json")
"""Of the others JSON and Avro have the same bytes."""


@pytest.fixture(scope="module")
def avro_line(stack: LocalStack) -> Iterator[Line]:
    """What has a form of its own in Avro, read by one connector that writes it."""
    line = Line(stack, "avro", _IN_AVRO)
    ways.before_start(line)
    line.start()
    ways.after_start(line)
    yield line
    line.close()


@pytest.mark.parametrize("family", _IN_AVRO)
def test_avro_brings_the_same_values_as_json(avro_line: Line, family: str) -> None:
    found = ways.played(avro_line, family)
    print(ways.matrix(avro_line.families[family], found))
    assert [d for d in found if not limits_of_difference(d)] == []


def test_text_that_cannot_be_read_holds_its_shard(line: Line) -> None:
    for charset in sorted(UNREADABLE_CHARSETS):
        item = Item(f"u_{charset}", f"VARCHAR(9) CHARACTER SET {charset}", ("'a'",))
        assert "by another one, wrongly" in _hold(line, f"u_{charset}", item)
    for charset, lost in LOST_BYTES.items():
        literals = tuple(f"_{charset} X'{byte}'" for byte in lost.split())
        item = Item(f"l_{charset}", f"VARCHAR(9) CHARACTER SET {charset}", literals)
        assert "found no character" in _hold(line, f"l_{charset}", item)


def test_bytes_that_have_no_character_are_question_marks_or_hold_their_shard(line: Line) -> None:
    rig, schema = line.rig("unmapped", definitions(UNMAPPED))
    line.apply(rig, schema, ways.count_is(len(rows(UNMAPPED))))
    found = line.differences(ways.SNAPSHOT, "unmapped", rig, UNMAPPED)
    rig.close()
    assert {d.got for d in found} == {"3F"}
    assert {d.column for d in found} == {item.column for item in UNMAPPED}
    for item in UNMAPPED:
        assert "Incorrect string value" in _hold(line, item.column, item)


def _hold(line: Line, table: str, item: Item) -> str:
    """Why the first row of a table is held, which the binlog brings."""
    line.make(table, (item,))
    line.fill(table, (item,))
    line.records(table, len(item.literals))
    rig, schema = line.rig(table, definitions((item,)))
    try:
        result = rig.apply(rig.segment(schema))
        assert result.hold is not None, table
        assert (rig.rows(), result.next_offset) == ([], 0)
        return result.hold.reason
    finally:
        rig.close()


def limits_of_difference(difference: Difference) -> list[ValueLimit]:
    """The entries of the table that name a difference."""
    read = difference.way in (ways.SNAPSHOT, REREAD)
    where = {SNAPSHOT, BINLOG} if difference.way == KEYLESS else {SNAPSHOT if read else BINLOG}
    return [
        limit
        for limit in LIMITS
        if where & set(limit.ways) and _is_of(limit.id, difference.column, difference.literal)
    ]


def _is_of(limit: str, column: str, literal: str) -> bool:
    day = literal.strip("'")[:10]
    return {
        "zero_date": day == ZERO,
        "half_zero_date": day in HALF_ZEROS and day != YEAR_ZERO,
        "year_zero": day == YEAR_ZERO,
        "year_zero_read": day == YEAR_ZERO and column.startswith("dt"),
        "lost_days": day in LOST_DAYS and column.startswith("dt"),
        "float_digits": column.startswith("f_") and "float" in column.lower(),
        "json_decimal": literal in JSON_DECIMALS,
    }.get(limit, False)
