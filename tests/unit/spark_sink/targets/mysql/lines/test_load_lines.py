"""Which way lines are made."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.mysql.lines.load_lines import LoadLines
from tests.unit.spark_sink.row_events import INT

from .test_layouts import plan

NUMBER = "0.8446372040128354e-21"


def test_json_is_made_exact_unless_the_server_keeps_its_text() -> None:
    mysql, mariadb = (
        LoadLines(is_mariadb=is_mariadb).of_values([Form.JSON], [[NUMBER]], [False])
        for is_mariadb in (False, True)
    )
    assert mysql != mariadb == [NUMBER.encode()]


def test_compiled_code_can_be_left_out() -> None:
    one = plan(id=INT)
    assert LoadLines(is_mariadb=False).of_records(one) is not None
    assert LoadLines(is_mariadb=False, is_compiled=False).of_records(one) is None


def test_rows_that_are_not_in_json_are_left_to_python() -> None:
    one = plan(id=INT)
    avro = replace(one, decoder=replace(one.decoder, decode_wrapped=None))
    assert LoadLines(is_mariadb=False).of_records(avro) is None


def test_a_segment_that_only_python_reads_has_no_lines_of_records() -> None:
    assert LoadLines(is_mariadb=False).of_records(plan(id=INT, v=ColumnType("point"))) is None
