"""Rows in the server's packets become lines for LOAD DATA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.forms import Form, form_of
from shardmerge.spark_sink.targets.mysql.lines.encoders import (
    can_be_packed,
    has_other_dates,
    load_lines,
    packed_lines,
)
from shardmerge.spark_sink.targets.mysql.tasks.bulk import TableShape
from shardmerge.spark_sink.targets.mysql.tasks.chunk_load import Lines
from shardmerge.spark_sink.targets.mysql.tasks.chunk_writer import ChunkWriter
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from tests.strategies import table
from tests.unit.spark_sink.loading.loads import at
from tests.unit.spark_sink.sources.packets import packed
from tests.unit.spark_sink.targets.mysql.tasks.test_chunk_load import TASK

ROWS = st.lists(
    st.tuples(*[st.none() | st.text(st.characters(codec="utf-8"), max_size=300)] * 3), min_size=1
)


@given(ROWS, st.sampled_from([(), ("s1", "ä\t")]))
def test_the_lines_are_those_of_the_single_values(
    rows: list[tuple[str | None, ...]], head: tuple[str, ...]
) -> None:
    sent = packed([[None if v is None else v.encode() for v in row] for row in rows], 3)
    sent.check()
    wanted = [[*head, *row] for row in rows]
    columns = [list(column) for column in zip(*wanted, strict=True)]
    forms = [Form.TEXT] * len(columns)
    lines = load_lines(forms, columns, [None in column for column in columns])
    start = load_lines(forms[:2], columns[:2], (False,) * 2)[0].decode() + "\t" if head else ""
    found = packed_lines(sent, start)
    assert found == b"\n".join(lines) + b"\n"


CHANGED = "0.8446372040128354e-21"


@pytest.mark.parametrize("columns", [1, 2])
def test_numbers_in_json_at_the_end_of_a_row_are_made_exact(columns: int) -> None:
    values: list[list[str | None]] = [
        ["1", f'{{"a": [{CHANGED}, "{CHANGED} \\t\t"]}}', f"[{CHANGED}]"],
        [None, None, "[]"],
        [f"{CHANGED}", f'["{"x" * 300}", {CHANGED}]', None],
        ["2", f"[{CHANGED}]", f'["{"x" * 300}", {CHANGED}]'],
    ]
    rows = packed([[None if v is None else v.encode() for v in row] for row in values], 3)
    forms = [Form.TEXT] * (3 - columns) + [Form.JSON] * columns
    lines = load_lines(forms, [*zip(*values, strict=True)], (True, True, True))
    found = packed_lines(rows, "", json_columns=columns)
    assert found == b"\n".join(lines) + b"\n"
    assert lines[0].count(CHANGED.encode()) < 3, "the server would read another number"


DATES = table("CREATE TABLE t (a date, b datetime NOT NULL, c varchar(40))").columns
NOT_NULL = tuple(replace(column, nullable=False) for column in DATES)
NO_DATES = DATES[2:]


@pytest.mark.parametrize("text", [b"0000-00-00", b"0000-00-00 00:00:00.000", b"0000-01-01"])
def test_a_date_of_the_year_0_is_another_one_for_the_stream(text: bytes) -> None:
    rows = packed([(b"1", text)], 2)
    assert has_other_dates(rows, DATES)
    # Where there is no NULL for it, a zero date stays one.
    assert has_other_dates(rows, NOT_NULL) == (text == b"0000-01-01")
    assert not has_other_dates(rows, NO_DATES)


@pytest.mark.parametrize("text", [b"2024-00-10", b"2024-10-00 00:00:00", b"2024-00-00"])
def test_a_date_without_month_or_day_is_another_one(text: bytes) -> None:
    for columns in (DATES, NOT_NULL):
        assert has_other_dates(packed([(text, b"2024-01-01")], 2), columns)


@pytest.mark.parametrize("text", [b"2024-01-01 00:00:00", b"x 2024-00-01", b"-00:00:01", None])
def test_other_texts_are_none_of_these_dates(text: bytes | None) -> None:
    assert not has_other_dates(packed([(b"1", text)], 2), DATES)


@pytest.mark.parametrize(
    ("kind", "may"),
    [
        ("int zerofill", True),
        ("binary(3)", True),
        ("blob", True),
        ("mediumblob", False),
        ("point", False),
        ("json", True),
        ("enum('0', 'a')", False),
        ("enum('a')", True),
    ],
)
def test_a_target_reads_most_types_as_they_are_sent(kind: str, may: bool) -> None:
    (column,) = table(f"CREATE TABLE t (a {kind})").columns
    form = form_of(column.type)
    assert form is not None
    assert can_be_packed(column, form) == may


class Session:
    can_load, is_mariadb = True, False


class Connection:
    """Of a target whose table has these keys."""

    def __init__(self, shape: TableShape) -> None:
        self._shape, self.session = shape, Session()
        self.config = type("Config", (), {"control_database": "c", "pipeline": "p"})

    control: Any = None

    def shape(self, _: object) -> TableShape:
        return self._shape


SHAPE = TableShape(("id", "a"), ("id",), other_unique=False)


def writer(shape: TableShape = SHAPE) -> ChunkWriter:
    return ChunkWriter(cast("TaskConnection", Connection(shape)))


def test_lines_begin_with_what_all_rows_have_in_common() -> None:
    shard = ("_shard", ConstantValue(Form.TEXT, "s\t1")), ("_none", ConstantValue(Form.DATE, None))
    task = replace(TASK, rows=replace(TASK.rows, constants=shard))
    pack = writer().pack(task)
    assert pack is not None
    lines = pack(packed([(b"%d" % n, b"x") for n in range(LINES_FROM_ROWS)], 2))
    assert lines is not None
    assert lines.names == ("_shard", "_none", "id", "a")
    assert lines.forms == (Form.TEXT, Form.DATE, Form.INTEGER, Form.TEXT)
    assert lines.data.splitlines()[:2] == [b"s\\t1\t\\N\t0\tx", b"s\\t1\t\\N\t1\tx"]


def test_few_rows_and_rows_with_warnings_are_read_value_by_value() -> None:
    pack = writer().pack(TASK)
    assert pack is not None
    assert pack(packed([], 2)) is None
    rows = packed([(b"1", b"x")] * LINES_FROM_ROWS, 2)
    rows.warnings = 1
    assert pack(rows) is None
    with pytest.raises(UnfitValue):
        pack(packed([(b"1", b"\xff")], 2))


def test_what_needs_single_values_is_not_packed() -> None:
    rows = TASK.rows
    assert writer().pack(replace(TASK, rows=replace(rows, where="id = 1"))) is None
    unwritten = (*rows.columns[:1], replace(rows.columns[1], target=""))
    assert writer().pack(replace(TASK, rows=replace(rows, columns=unwritten))) is None
    assert writer(replace(SHAPE, other_unique=True)).pack(TASK) is None


def test_no_lines_are_made_for_a_table_that_is_not_loaded() -> None:
    assert writer().maker_for(TASK) is not None
    not_loaded = writer(replace(SHAPE, takes_loads=False))
    assert not_loaded.maker_for(TASK) is None
    assert not_loaded.pack(TASK) is None, "a generated column of the target may be spatial"


def test_lines_are_not_written_after_the_targets_keys_have_changed() -> None:
    connection = MagicMock()
    connection.shape.return_value, connection.session.execute.return_value = SHAPE, 1
    found = ChunkWriter(connection)
    lines = Lines(("id", "a"), (Form.INTEGER, Form.TEXT), bytearray(b"1\tx\n"))
    result = ChunkResult(TASK.load.shard, 1, ChunkEnd.DONE, 1, 2, at(77))
    assert found.write(TASK, result, lines)
    connection.session.load.assert_called_once()
    connection.shape.return_value = replace(SHAPE, other_unique=True)
    assert not found.write(TASK, result, lines)
    connection.session.load.assert_called_once()
