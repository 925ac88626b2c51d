"""What is found wrong with sources and target before anything runs."""

from __future__ import annotations

from dataclasses import replace

import pymysql
import pytest

from shardmerge.cli.checks.findings import SourceTable, TargetFacts
from shardmerge.cli.checks.server_rules import (
    database_findings,
    shard_findings,
    source_findings,
    table_findings,
    target_findings,
)
from shardmerge.cli.checks.value_rules import year_findings
from shardmerge.cli.servers import server_findings
from shardmerge.connectors.access import mysql
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.policies import Keyless, RoutePolicies
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog

SOURCE = Source("s1", "h", 3306, "u", "p", 54101)
TARGET = Target("h", 3306, "u", "p", version="8.0.15")
GOOD = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_value_options": "",
    "gtid_mode": "ON",
    "server_id": "1",
    "version": "8.0.15",
    "sql_mode": "STRICT_TRANS_TABLES",
    "character_set_server": "utf8mb4",
    "binlog_expire_logs_seconds": "2592000",
    "local_infile": "ON",
    "max_allowed_packet": str(64 << 20),
    "read_only": "OFF",
}


def test_good_servers_have_no_findings() -> None:
    assert source_findings(SOURCE, GOOD) == []
    assert target_findings(TARGET, GOOD) == []


def test_a_mariadb_whose_replica_could_not_take_over_is_told_of() -> None:
    source = replace(SOURCE, flavour="mariadb", version="10.11")
    maria = {**GOOD, "version": "10.11.6-MariaDB", "gtid_domain_id": "0"}
    (finding,) = source_findings(source, maria)
    assert finding.text.startswith("gtid_domain_id is 0, the default")
    assert not finding.fault
    assert source_findings(source, {**maria, "gtid_domain_id": "7"}) == []


def test_a_mariadb_that_compresses_its_binlog_is_a_fault() -> None:
    source = replace(SOURCE, flavour="mariadb", version="10.11")
    maria = {**GOOD, "version": "10.11.6-MariaDB", "log_bin_compress": "OFF"}
    assert source_findings(source, maria) == []
    (finding,) = source_findings(source, {**maria, "log_bin_compress": "ON"})
    assert finding.text.startswith("log_bin_compress is ON")
    assert finding.fault and finding.code == "SM-6114"


@pytest.mark.parametrize(
    ("name", "value", "text", "fault"),
    [
        ("log_bin", "OFF", "log_bin is OFF, it must be ON", True),
        ("binlog_format", "MIXED", "binlog_format is MIXED, it must be ROW", True),
        ("binlog_row_image", "MINIMAL", "it must be FULL", True),
        ("binlog_row_value_options", "PARTIAL_JSON", "PARTIAL_JSON", True),
        ("gtid_mode", "OFF_PERMISSIVE", "gtid_mode is OFF_PERMISSIVE", False),
        ("server_id", "54101", "server_id 54101 is the server's own", True),
        (
            "show_gipk_in_create_table_and_information_schema",
            "OFF",
            "do not see the invisible primary keys",
            False,
        ),
        ("version", "10.11.6-MariaDB", "it is mariadb 10.11.6-MariaDB", True),
        ("version", "5.7.40-log", "the pipeline file says 8.0", True),
        ("sql_mode", "ANSI_QUOTES", "ANSI_QUOTES is on on the server", True),
        ("character_set_server", "latin1", "character_set_server is latin1", True),
        ("binlog_expire_logs_seconds", "3600", "kept for 1.0 hours", False),
        (
            "default_collation_for_utf8mb4",
            "utf8mb4_general_ci",
            "is utf8mb4_general_ci here, and is taken for utf8mb4_0900_ai_ci",
            False,
        ),
    ],
)
def test_a_source_that_cannot_be_followed_is_found(
    name: str, value: str, text: str, fault: bool
) -> None:
    (finding,) = source_findings(SOURCE, {**GOOD, name: value})
    assert text in str(finding)
    assert finding.fault == fault


def test_a_binlog_that_is_kept_for_days_or_for_ever_is_no_finding() -> None:
    kept = {**GOOD, "binlog_expire_logs_seconds": "0"}
    assert source_findings(SOURCE, kept) == []
    assert source_findings(SOURCE, {**kept, "expire_logs_days": "7"}) == []


def test_a_server_without_the_setting_has_gtids_of_its_own_kind() -> None:
    assert source_findings(SOURCE, {k: v for k, v in GOOD.items() if k != "gtid_mode"}) == []


def test_modes_that_the_pipeline_file_tells_are_no_finding() -> None:
    source = replace(SOURCE, sql_mode="ANSI")
    mode = "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI"
    assert source_findings(source, {**GOOD, "sql_mode": mode}) == []
    assert len(source_findings(source, GOOD)) == 4


@pytest.mark.parametrize(
    ("name", "value", "text", "fault"),
    [
        ("version", "8.0.36", "the pipeline file says 8.0.15", False),
        ("version", "8.0.12", "the pipeline file says 8.0.15", True),
        ("version", "9.7.0", "the pipeline file says 8.0.15", True),
        ("version", "8.0.11-TiDB-v8.5.0", "it is tidb", True),
        ("local_infile", "OFF", "local_infile is OFF", False),
        ("max_allowed_packet", "1048576", "max_allowed_packet is 1048576", False),
        ("read_only", "ON", "it is read-only", True),
        ("sql_generate_invisible_primary_key", "ON", "gets a column my_row_id", False),
    ],
)
def test_a_target_that_cannot_be_written_is_found(
    name: str, value: str, text: str, fault: bool
) -> None:
    (finding,) = target_findings(TARGET, {**GOOD, name: value})
    assert text in str(finding)
    assert finding.fault == fault


@pytest.mark.parametrize(
    ("kind", "version", "real"),
    [("mariadb", "10.11.6", "5.5.5-10.11.6-MariaDB-1"), ("tidb", "8.5.0", "8.0.11-TiDB-v8.5.0")],
)
def test_versions_are_read_as_each_kind_of_server_tells_them(
    kind: str, version: str, real: str
) -> None:
    target = replace(TARGET, kind=kind, version=version)
    assert target_findings(target, {**GOOD, "version": real}) == []


@pytest.mark.parametrize(
    ("name", "value", "text", "fault"),
    [
        ("tidb_super_read_only", "ON", "tidb_super_read_only is ON", True),
        ("tidb_mem_quota_query", "1048576", "smaller transactions", False),
    ],
)
def test_a_tidb_that_cannot_be_written_or_only_slowly_is_found(
    name: str, value: str, text: str, fault: bool
) -> None:
    target = replace(TARGET, kind="tidb", version="8.5.0")
    facts = {**GOOD, "version": "8.0.11-TiDB-v8.5.0", "tidb_mem_quota_query": "1073741824"}
    # Its sessions lock rows whatever the cluster's default is.
    assert target_findings(target, {**facts, "tidb_txn_mode": "optimistic"}) == []
    (finding,) = target_findings(target, {**facts, name: value})
    assert text in str(finding) and finding.fault == fault
    assert target_findings(TARGET, {**GOOD, name: value}) == []


def test_shards_that_cannot_be_merged_are_found() -> None:
    rules = [RoutingRule(".*", "app", r"t.*", "m", "t"), RoutingRule(".*", "app", "t_9", "m", "u")]
    names = ("t_1", "t é", "t_é", "t_9", "other")
    tables = [SourceTable("app", name, has_key=name != "t_1") for name in names]
    two = [SOURCE, replace(SOURCE, name="s2"), replace(SOURCE, name="away")]
    found = shard_findings(two, {"s1": tables, "s2": []}, rules)
    assert [str(f).partition(":")[0] for f in found] == [
        "shard s1/app.t_é", "shard s1/app.t_9", "source s2",
    ]  # fmt: skip
    texts = [f.text for f in found]
    assert "that of s1/app.t é too" in texts[0]
    assert texts[1] == "routing rules send it to m.t, m.u"
    assert [f.fault for f in found] == [True, True, False]
    assert shard_findings([SOURCE], {"s1": tables[:1]}, rules) == []
    (keyless,) = shard_findings([SOURCE], {"s1": tables[:1]}, rules, needs_keys=True)
    assert keyless.fault and "by which this kind of target finds a row" in keyless.text
    refusing = [replace(rules[0], policies=RoutePolicies(keyless=Keyless.REFUSE))]
    (refused,) = shard_findings([SOURCE], {"s1": tables[:1]}, refusing)
    assert refused.fault and "keyless = 'refuse'" in refused.text


def test_shards_may_share_a_topic_that_their_route_gives_them() -> None:
    rules = [
        RoutingRule(".*", "app", r"t.*", "m", "t", row_topic="m.t"),
        RoutingRule(".*", "app", "u é", "m", "u", row_topic="m.u"),
    ]
    tables = [SourceTable("app", name, has_key=True) for name in ("t_1", "t é", "t_é", "u é")]
    (missed,) = shard_findings([SOURCE], {"s1": tables}, rules)
    assert missed.where == "shard s1/app.u é" and missed.fault
    assert "m.u" in missed.text and "s1.app.u__" in missed.text


def test_the_catalog_of_an_iceberg_target_is_told_and_no_server_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def connect(**address: object) -> None:
        asked.append(address["host"])
        raise pymysql.OperationalError(2003, "away")

    monkeypatch.setattr(mysql, "ServerConnection", connect)
    catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", "/w")))
    pipeline = Pipeline(
        "p", Kafka("127.0.0.1:9092"), Connect("http://127.0.0.1:8083"), (SOURCE,),
        (RoutingRule(".*", "app", "t", "m", "t"),),
        Target("", 0, "", "", "control", "iceberg", "1.12.0", catalog),
    )  # fmt: skip

    source, target = server_findings(pipeline)

    assert asked == ["h"]
    assert (str(source), source.fault) == ("source s1: away", True)
    assert not target.fault and "catalog lake (hadoop) was not checked" in target.text


def test_a_target_table_that_is_there_is_looked_at() -> None:
    table = TargetTable("m", "t")
    assert table_findings(TargetFacts(table)) == []
    assert table_findings(TargetFacts(table, "InnoDB")) == []
    found = table_findings(TargetFacts(table, "MyISAM", ("tr",), ("m.o.fk",)))
    assert [(f.fault, f.text.partition(":")[0]) for f in found] == [
        (True, "its engine MyISAM has no transactions"),
        (False, "trigger tr runs for every row that is merged"),
        (True, "foreign key m.o.fk"),
    ]
    [strange] = table_findings(TargetFacts(table, "InnoDB", of_others=True))
    assert (strange.fault, strange.code) == (False, "SM-6305")
    assert "this pipeline's sink has not made it" in strange.text


def test_an_empty_database_of_another_charset_than_its_server_is_a_fault():
    tables = [SourceTable("full", "t", has_key=True)]
    charsets = {"full": "latin1", "same": "utf8mb4", "empty": "latin1"}
    [found] = database_findings(SOURCE, charsets, tables, "utf8mb4")
    assert found.fault
    assert "database empty has no table, and its charset is latin1" in found.text
    assert database_findings(SOURCE, {"a": "utf8"}, [], "utf8mb3") == []


TABLES_WITH_YEARS = {
    ("app", "films"): ["int"] * 8 + ["year"],
    ("app", "cars"): ["int"] * 7 + ["year", "varchar"],
    ("elsewhere", "books"): ["year", *["decimal"] * 16],
}


def test_tables_whose_rows_stop_a_connector_are_told_wherever_they_are() -> None:
    [found] = year_findings(SOURCE, "8.0.15", TABLES_WITH_YEARS)

    assert not found.fault and found.where == "source s1"
    assert "app.films and 1 more" in found.text and "the jar of exact values" in found.text


@pytest.mark.parametrize("version", ["8.0.29", "8.4.3", "9.7.4-2", "5.7.22-log", ""])
def test_no_such_table_is_told_of_on_servers_that_debezium_reads(version: str) -> None:
    assert year_findings(SOURCE, version, TABLES_WITH_YEARS) == []
    assert year_findings(SOURCE, "8.0.15", {("app", "t"): ["int", "year"]}) == []


class _Server:
    """A source, and the target too: answers by what a query asks for."""

    def __init__(self) -> None:
        self.looked_at: list[tuple[object, ...]] = []
        self.open, self.locked = True, ""
        self.rows: list[tuple[object, ...]] = []

    def execute(self, sql: str, arguments: tuple[object, ...] = ()) -> None:
        self.rows = []
        if "SHOW GLOBAL VARIABLES" in sql:
            self.rows = list(GOOD.items())
        elif "VERSION()" in sql:
            self.rows = [(GOOD["version"],)]
        elif sql == "SHOW BINARY LOGS":
            self.rows = [("binlog.000001", 4)]
        elif "engine <> 'InnoDB'" in sql:
            self.rows = []
        elif "table_constraints" in sql:
            self.rows = [("app", f"{kind}_{n}", 1) for kind in ("a", "b") for n in (1, 2)]
        elif "information_schema.statistics" in sql:
            self.rows = [("app", "a_1", "id"), ("app", "a_2", "id"), ("app", "away", "id")]
        elif self.locked and self.locked in sql:
            raise pymysql.err.OperationalError(1205, "Lock wait timeout exceeded")
        elif sql.startswith("SHOW CREATE TABLE"):
            name = sql.rpartition(".")[2]
            self.rows = [(name, f"CREATE TABLE {name} (id INT PRIMARY KEY, f FLOAT)")]
        elif sql.startswith("SELECT MIN"):
            assert sql in [f"SELECT MIN(`id`), MAX(`id`) FROM `app`.`a_{n}`" for n in (1, 2)]
            self.rows = [(1, 9)]
        elif "data_type = 'year'" in sql:
            self.rows = [("app", "a_1", kind) for kind in ["int"] * 8 + ["year"]]
        elif "information_schema.columns" in sql:
            self.rows = [("app", "a_1", "f", "float", "float", None, "YES")]
        elif "information_schema.triggers" in sql:
            self.looked_at.append(arguments)
            self.rows = [("tr",)] if arguments[1] == "b" else []

    def fetchall(self) -> list[tuple[object, ...]]:
        return self.rows

    def cursor(self) -> _Server:
        return self

    def close(self) -> None: ...

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_what_the_servers_say_of_columns_and_of_targets_named_by_groups_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = _Server()
    monkeypatch.setattr(mysql, "ServerConnection", lambda **_: server)
    pipeline = Pipeline(
        "p", Kafka("127.0.0.1:9092"), Connect("http://127.0.0.1:8083", row_partitions=2), (SOURCE,),
        (
            RoutingRule(".*", "app", r"(?P<kind>[a-z])_\d+", "m", r"\g<kind>"),
            RoutingRule(".*", "app", "none", "m", "z"),
        ),
        TARGET,
    )  # fmt: skip

    found = [str(f) for f in server_findings(pipeline)]

    assert not any("YEAR" in text for text in found), "with its jar Debezium reads such tables"
    assert server.looked_at == [("m", "a"), ("m", "b"), ("m", "z")]
    assert "target m.b: trigger tr runs for every row that is merged" in found
    assert len(found) == 3
    assert "s1/app.a_1 (id 1 to 9) and s1/app.a_2 (id 1 to 9)" in found[1]
    assert "s1/app.a_1" in found[0] and "FLOAT" in found[0]

    server.locked = "`a_2`"
    assert [str(f) for f in server_findings(pipeline)] == [found[0], found[2]]

    bare = replace(pipeline.connect, exact_values=False)
    years = [str(f) for f in server_findings(replace(pipeline, connect=bare)) if "YEAR" in str(f)]
    assert [text.partition(" would")[0] for text in years] == ["source s1: a row of app.a_1"]

    catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", "/w")))
    lake = Target("", 0, "", "", "control", "iceberg", "1.12.0", catalog)
    in_lake = [str(f) for f in server_findings(replace(pipeline, target=lake))]
    assert in_lake[0] == found[0]
