"""What ``check`` says of values that do not arrive as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.checks.findings import SourceColumn, SourceTable
from shardmerge.cli.checks.value_rules import unread_findings, value_findings
from shardmerge.connectors.debezium.unread_types import Unread
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Source

SOURCE = Source("s1", "h", 3306, "u", "p", 54101)
RULES = [RoutingRule(".*", "app", r"t.*", "m", "t")]
STRICT = "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE"


def table(name: str, *types: ColumnType, nullable: bool = True) -> SourceTable:
    columns = (SourceColumn(f"c{n}", kind, nullable) for n, kind in enumerate(types))
    return SourceTable("app", name, True, tuple(columns))


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("STRICT_TRANS_TABLES,NO_ZERO_IN_DATE", "sql_mode lacks NO_ZERO_DATE"),
        ("STRICT_ALL_TABLES,no_zero_date", "sql_mode lacks NO_ZERO_IN_DATE"),
        ("", "sql_mode lacks NO_ZERO_DATE, NO_ZERO_IN_DATE, STRICT_TRANS_TABLES"),
        ("NO_ZERO_IN_DATE,NO_ZERO_DATE", "sql_mode lacks STRICT_TRANS_TABLES"),
    ],
)
def test_a_source_that_takes_zero_dates_is_told_where_a_shard_has_dates(
    mode: str, text: str
) -> None:
    date = ColumnType("date")
    tables = [table("t_0"), table("t_1", date), table("t_2", date), table("other", date)]
    found = value_findings(SOURCE, mode, tables, RULES)
    assert [f.fault for f in found] == [False] * 3
    assert {f.where for f in found} == {"source s1"}
    assert all(f.text.startswith(f"{text}: ") for f in found)
    assert "is NULL (shards s1/app.t_1 and 1 more)" in found[0].text
    assert value_findings(SOURCE, STRICT, tables, RULES) == []
    assert value_findings(SOURCE, mode, [tables[0], tables[3]], RULES) == []


def test_a_zero_date_that_is_not_null_is_no_limit() -> None:
    found = value_findings(SOURCE, "", [table("t", ColumnType("date"), nullable=False)], RULES)
    assert not any("0000-00-00)" in f.text for f in found)
    assert any("2026-00-10" in f.text for f in found)


def test_what_only_a_mariadb_source_has_is_said_of_no_other() -> None:
    tables = [table("t", ColumnType("varchar", 9, charset="cp932"))]
    maria = replace(SOURCE, flavour="mariadb")
    told = [f.text for f in value_findings(maria, STRICT, tables, RULES)]
    others = [f.text for f in value_findings(SOURCE, STRICT, tables, RULES)]
    assert [text for text in told if text not in others] == [
        "text of cp932 on a MariaDB source: any value that is not ASCII is read as GB2312; its "
        "shard is held there (shards s1/app.t)"
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ColumnType("float"), "FLOAT: read by a snapshot, first or again, a value with more"),
        (ColumnType("varchar", 9, charset="hp8"), "its shard is held there (shards s1/app.t)"),
        (ColumnType("text", charset="latin1"), "0x81"),
        (ColumnType("json"), "a decimal"),
    ],
)
def test_each_limit_of_a_column_is_told(kind: ColumnType, text: str) -> None:
    found = value_findings(SOURCE, STRICT, [table("t", kind)], RULES)
    assert any(text in f.text for f in found)
    assert not any(f.fault for f in found)


def test_a_column_that_is_left_out_has_no_limit() -> None:
    rules = [RoutingRule(".*", "app", r"t.*", "m", "t", leave_out="c0")]
    assert value_findings(SOURCE, STRICT, [table("t", ColumnType("float"))], rules) == []


def test_values_that_stop_the_connector_are_told() -> None:
    padded = table("t", ColumnType("decimal", 9, 3, unsigned=True, zerofill=True))
    [found] = value_findings(SOURCE, STRICT, [padded], RULES)
    assert found.fault and "DECIMAL ZEROFILL" in found.text
    mode = f"{STRICT},ALLOW_INVALID_DATES"
    [found] = value_findings(SOURCE, mode, [table("t", ColumnType("date"))], RULES)
    assert not found.fault and "ALLOW_INVALID_DATES" in found.text


def test_a_column_that_is_left_out_is_no_finding_whatever_its_case() -> None:
    rules = [RoutingRule(".*", "app", "t.*", "m", "t", leave_out="C0")]
    found = value_findings(SOURCE, "", [table("t_0", ColumnType("date"))], rules)
    assert found == value_findings(SOURCE, "", [table("t_0")], rules)


def test_tables_that_debezium_cannot_read_are_a_fault() -> None:
    assert unread_findings(SOURCE, Unread()) == []
    unread = Unread(("app.t.ip (INET6)", "app.u.ip (INET4)"), ("app.v",), ("other.w.text",))
    columns, versioned, compressed = unread_findings(SOURCE, unread)
    assert columns.fault and versioned.fault and compressed.fault
    assert compressed.text.startswith("other.w.text ends the connector: it is COMPRESSED")
    assert columns.text.startswith("app.t.ip (INET6) and 1 more: Debezium 3.5.0 cannot read")
    assert versioned.text.startswith("app.v is system-versioned: ")
