"""Rows as LOAD DATA reads them."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.mysql.tasks.bulk import load_data


def lines(*rows: tuple[int | None, str | None]) -> bytes:
    cells = [list(column) for column in zip(*rows, strict=True)]
    nulls = tuple(None in column for column in cells)
    block = Block(("n", "t"), (Form.INTEGER, Form.TEXT), tuple(cells), nulls, len(rows))
    return load_data(TargetTable("d", "t"), block, replace=True)[1]


def test_plain_rows_are_written_as_they_are() -> None:
    assert lines((1, "ä"), (2, ""), (None, None)) == "1\tä\n2\t\n\\N\t\\N\n".encode()


@pytest.mark.parametrize(
    ("text", "field"),
    [("a\tb", r"a\tb"), ("\n", r"\n"), ("\\", "\\\\"), ("\\N", "\\\\N"), ("\0", r"\0")],
)
def test_what_has_a_meaning_is_escaped(text: str, field: str) -> None:
    escaped = field.encode() if text != "\0" else b"\\0"
    assert lines((1, text), (2, "x"), (3, None)) == b"1\t%s\n2\tx\n3\t\\N\n" % escaped


def test_json_is_loaded_so_that_mysql_reads_its_numbers_and_mariadb_keeps_its_text() -> None:
    number = "5.066837196502553e99"
    block = Block(("j",), (Form.JSON,), ([number],), (False,), 1)
    (line,) = load_data(TargetTable("d", "t"), block, replace=True)[1].decode().splitlines()
    assert line != number and float(line) == float(number)
    kept = load_data(TargetTable("d", "t"), block, replace=True, is_mariadb=True)[1]
    assert kept.decode() == f"{number}\n"
