"""Alerts and dashboard on a real Prometheus that reads a real driver and a real watchdog."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.metrics.catalog import PROCESSES
from shardmerge.connectors.metrics.endpoint import exposition, serve
from shardmerge.connectors.metrics.family import Durations, Family, FamilyKind, Sample
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.kafka.retention_watch import RetentionWatch
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from tests.integration import prometheus
from tests.integration.spark.played_line import Line

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".local" / "cache"
RULES = yaml.safe_load(prometheus.ALERTS.read_text())["groups"][0]["rules"]
NAMES = [rule["alert"] for rule in RULES]
DASHBOARD = json.loads((ROOT / "docker" / "grafana" / "shardmerge.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]

PAUSED = 'shardmerge_sink_waiting_shards{kind="paused"} > 0'
CONTRACTING = StatementKind.CONTRACTING
T = 'target="m.t"'
ST = f'source="s1", {T}'
CASES: dict[str, tuple[tuple[str, str, str], ...]] = {
    # Alert → its series, each with the value that is a reason and the one that is none.
    "ShardmergeProcessDown": (('up{job="shardmerge-sink"}', "0", "1"),),
    "ShardmergeAgentsNotReady": (("shardmerge_agents_ready", "0", "1"),),
    "ShardmergeAgentsBehind": (
        ('shardmerge_agents_lag_records{agent="tracker", topic="s1"}', "3", "0"),
    ),
    "ShardmergeSinkStalled": (("shardmerge_sink_round_timestamp_seconds", "0", "9999999"),),
    "ShardmergeNoSinkWrites": (
        ('shardmerge_sink_active{job="shardmerge-sink", pod="a"}', "0", "0"),
        ('shardmerge_sink_active{job="shardmerge-sink", pod="b"}', "0", "1"),
    ),
    "ShardmergeConnectorFailed": (
        ('shardmerge_connector_tasks{connector="c", state="FAILED"}', "1", "0"),
    ),
    "ShardmergeConnectorGivenUp": (('shardmerge_connector_given_up{connector="c"}', "1", "0"),),
    "ShardmergeApplyFails": ((f"shardmerge_sink_failed_tries{{{T}}}", "4", "3"),),
    "ShardmergeLag": (
        (f"shardmerge_sink_lag_seconds{{{ST}}}", "601", "601"),
        (f"shardmerge_sink_parked_rows{{{ST}}}", "0", "1"),
    ),
    "ShardmergeShardHeld": (
        (f'shardmerge_sink_waiting_shards{{{T}, kind="row", code="SM-1501"}}', "1", "0"),
        (f'shardmerge_sink_waiting_shards{{{T}, kind="barrier", code="SM-1605"}}', "5", "5"),
    ),
    "ShardmergeShardPaused": (
        (f'shardmerge_sink_waiting_seconds{{{T}, kind="paused"}}', "86401", "86400"),
    ),
    "ShardmergeConflictOld": ((f"shardmerge_agents_conflict_seconds{{{T}}}", "3601", "0"),),
    "ShardmergeStatementRefused": (
        (f'shardmerge_sink_open_statements{{{T}, state="refused"}}', "1", "0"),
    ),
    "ShardmergeTargetDrift": (
        (f'shardmerge_sink_drift{{{T}, kind="refuses"}}', "1", "0"),
        (f'shardmerge_sink_drift{{{T}, kind="harmless"}}', "5", "5"),
    ),
    "ShardmergeRowsDiffer": ((f'shardmerge_validate_differences{{{T}, kind="extra"}}', "1", "0"),),
    "ShardmergeComparisonFails": (
        (f'shardmerge_validate_failing{{{T}, code="SM-4411"}}', "1", "0"),
    ),
    "ShardmergeStatementLong": (
        (f'shardmerge_sink_oldest_statement_seconds{{{T}, state="executing"}}', "3601", "9"),
    ),
    "ShardmergeDebtOld": (
        (f'shardmerge_sink_oldest_statement_seconds{{{T}, state="debt"}}', "604801", "9"),
    ),
    "ShardmergeRetentionLeft": (
        (f"shardmerge_sink_retention_left_seconds{{{ST}}}", "3600", "86401"),
    ),
    "ShardmergeRowsOverwritten": ((f"shardmerge_sink_overwritten_rows_total{{{ST}}}", "", ""),),
}


def promtool(*arguments: str, given: str = "") -> str:
    command = [*prometheus.program("promtool", CACHE), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_valid_and_each_has_a_summary_a_description_and_a_place_in_the_docs() -> None:
    assert f"{len(NAMES)} rules found" in promtool("check", "rules", str(prometheus.ALERTS))
    page = (ROOT / "docs/how-to/monitor.md").read_text()
    places = {f"docs/how-to/monitor.md#{name.lower()}" for name in re.findall("### (.+)", page)}
    assert {rule["annotations"]["runbook_url"] for rule in RULES} == places
    for rule in RULES:
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


def value_of(family: Family) -> float | Durations:
    return Durations().plus(0.2) if family.kind is FamilyKind.HISTOGRAM else 1.0


@pytest.mark.parametrize("process", PROCESSES)
def test_promtool_finds_nothing_wrong_with_a_page_of_every_metric(process: str) -> None:
    samples = [Sample(f, tuple("x" for _ in f.labels), value_of(f)) for f in PROCESSES[process]]
    text = exposition(lambda: samples, "text/plain").body.decode()
    assert text.count("# HELP") == len(samples)
    assert promtool("check", "metrics", given=text) == ""


def unit(name: str, series: tuple[tuple[str, str, str], ...]) -> dict[str, Any]:
    """An alert that has a reason for 40 minutes, then none."""

    def values(bad: str, good: str) -> str:
        return f"{bad}x39 {good}x40" if bad else "0+1x39 39x40"

    return {
        "interval": "1m",
        "input_series": [{"series": s, "values": values(b, g)} for s, b, g in series],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}})',
                "eval_time": at,
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
            for at, fires in (("30m", True), ("70m", False))
        ],
    }


def test_every_alert_fires_for_its_reason_and_stops_without(tmp_path: Path) -> None:
    assert list(CASES) == NAMES
    units = [unit(name, series) for name, series in CASES.items()]
    file = tmp_path / "units.yml"
    file.write_text(json.dumps({"rule_files": [str(prometheus.ALERTS)], "tests": units}))
    promtool("test", "rules", str(file))


def test_rules_and_dashboard_ask_for_metrics_that_there_are(tmp_path: Path) -> None:
    known = {family.name for families in PROCESSES.values() for family in families}
    expressions = [*QUERIES, *(rule["expr"] for rule in RULES)]
    for expression in expressions:
        for name in re.findall(r"shardmerge_\w+", expression):
            assert re.sub("_(bucket|sum|count)$", "", name) in known, expression
    # promtool reads each of them as the expression of a rule.
    file = tmp_path / "rules.yml"
    records = [{"record": "a:b", "expr": shown(each)} for each in QUERIES]
    groups = [{"name": f"g{n}", "rules": [record]} for n, record in enumerate(records)]
    file.write_text(json.dumps({"groups": groups}))
    promtool("check", "rules", "--lint=none", str(file))
    file.write_text(prometheus.hurried())
    promtool("check", "rules", str(file))


def shown(query: str) -> str:
    """A query of the dashboard with the ranges that Grafana would choose."""
    return query.replace("$__rate_interval", "10s").replace("$__range", "1m")


@contextmanager
def turning(driver: Driver, wait: threading.Event) -> Iterator[None]:
    """The driver's loop in a thread; it stands still while ``wait`` is set."""
    ended = threading.Event()

    def turn() -> None:
        while not ended.is_set():
            if wait.is_set():
                ended.wait(0.1)
            else:
                try:
                    driver.step(0.05)
                except TargetError as error:
                    # As the sink's own loop does.
                    if not error.retryable:
                        raise
                    ended.wait(0.5)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def keep(stack: LocalStack, topic: str, *, ms: int = -1, size: int = -1) -> None:
    entries = [
        ConfigEntry(f"retention.{of}", str(value), incremental_operation=AlterConfigOpType.SET)
        for of, value in (("ms", ms), ("bytes", size))
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    [answer] = admin.incremental_alter_configs([resource]).values()
    answer.result(30)


class Rest:
    """Decisions about a shard whose rows may go on."""

    def __init__(self, line: Line, shard: ShardId) -> None:
        self._line, self._shard = line, shard

    def decide(
        self, columns: str, *statements: TargetStatement, releases: tuple[ShardId, ...] = ()
    ) -> None:
        """A schema change of the shard, and its decision."""
        line = self._line
        line.begin()
        offset, place = line.change(), line.here()
        line.commit()
        line.decide(self._shard, offset, place, columns, *statements, releases=releases)

    def answer(self, **of_decision: tuple[ShardId, ...]) -> None:
        """The decision of a command."""
        self._line._send(replace(self._line._answered(), **of_decision))  # type: ignore[arg-type]


def tables(line: Line) -> list[tuple[Any, ...]]:
    asked = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s"
    return line.session.query(asked, (line.target.database,))


@pytest.fixture
def line(stack: LocalStack) -> Iterator[Line]:
    line = Line(stack)
    yield line
    line.close()


@pytest.mark.timeout(500)
def test_alerts_fire_while_their_cause_lasts_and_the_dashboard_shows_it(
    line: Line, stack: LocalStack, tmp_path: Path
) -> None:
    held, odd, late = line.make("a", "b", "c")
    driver = line.start()
    watchdog = Watchdog(ConnectRest(stack.connect_url), ["never-made"])
    watchdog.look(0.0)
    metrics, away = driver.metrics, prometheus.free_port()
    jobs = {
        "shardmerge-sink": prometheus.free_port(), "shardmerge-watchdog": prometheus.free_port(),
        "shardmerge-other": away,
    }  # fmt: skip
    stands = threading.Event()
    with ExitStack() as end:
        end.callback(serve(metrics.samples, "127.0.0.1", jobs["shardmerge-sink"]))
        end.callback(serve(watchdog.states.samples, "127.0.0.1", jobs["shardmerge-watchdog"]))
        watch = RetentionWatch(stack.kafka, metrics.held_rows, metrics.retention_read)
        watch.start()
        end.callback(watch.stop)
        end.enter_context(turning(driver, stands))
        server = end.enter_context(
            prometheus.running(tmp_path, prometheus.free_port(), jobs, prometheus.hurried(), CACHE)
        )

        def fires(*names: str) -> None:
            wanted = {f"Shardmerge{name}" for name in names}
            server.until(f"{wanted} fire", lambda: wanted <= server.firing())

        def stops(*names: str) -> None:
            wanted = {f"Shardmerge{name}" for name in names}
            server.until(f"{wanted} end", lambda: not wanted & server.firing())

        # What the dashboard asks of the sink and the watchdog: each has an answer at some time.
        unanswered = [q for q in QUERIES if "shardmerge_agents" not in q]
        rest = Rest(line, odd)
        server.until("the target is made", lambda: bool(tables(line)))
        line.session.execute(f"ALTER TABLE {line.target.sql} ADD COLUMN `c` date")
        # A shard that a decision holds, in a topic that keeps rows for an hour; a statement that
        # the target refuses; a debt, which waits for rows of a shard that is paused.
        line.begin()
        line.rows(held, {"id": 1, "a": 1})
        offset, place = line.change(), line.here()
        line.rows(held, {"id": 2, "a": 2})
        line.commit()
        keep(stack, line.topic_of(held), ms=3_600_000)
        why = "their defaults differ"
        line.decide(held, offset, place, "id a", hold=True, reason=why, code="SM-1203")
        rest.decide("id a c", line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c"))
        rest.answer(pauses=(late,))
        server.until("the pause", lambda: bool(server.query(PAUSED)))
        line.begin()
        line.rows(late, {"id": 9, "a": 9})
        line.commit()
        drop = line.statement("ALTER TABLE TARGET DROP COLUMN `a`", CONTRACTING, a="")
        Rest(line, late).decide("id", replace(drop, subjects=("column:a",)))
        fires(
            "ProcessDown", "ConnectorFailed", "ShardHeld", "StatementRefused", "RetentionLeft",
            "DebtOld", "ShardPaused",
        )  # fmt: skip
        assert server.query('shardmerge_sink_waiting_shards{kind="decision", code="SM-1203"} == 1')

        unanswered = [q for q in unanswered if not server.query(shown(q))]
        keep(stack, line.topic_of(held))
        stops("RetentionLeft")
        keep(stack, line.topic_of(held), size=10)
        fires("RetentionLeft")
        unanswered = [q for q in unanswered if not server.query(shown(q))]

        # Every cause ends but the missing connector's; another shard's row is replaced.
        end.callback(serve(tuple, "127.0.0.1", away))
        line.session.execute(f"ALTER TABLE {line.target.sql} DROP COLUMN `c`")
        stops("ProcessDown", "StatementRefused")
        rest.decide("id c", releases=(held,))
        rest.answer(resumes=(late,))
        stops("RetentionLeft", "ShardHeld", "DebtOld", "ShardPaused")
        line.begin()
        line.rows(odd, {"id": 1, "c": 5})
        line.commit()
        fires("RowsOverwritten")

        # The target is read-only: what comes cannot be applied, and no shard waits.
        end.callback(line.session.execute, "SET GLOBAL super_read_only = 0, read_only = 0")
        line.session.execute("SET GLOBAL super_read_only = 1")
        line.begin()
        line.rows(odd, {"id": 3, "c": 5})
        line.commit()
        fires("ApplyFails", "Lag")
        line.session.execute("SET GLOBAL super_read_only = 0, read_only = 0")
        stops("ApplyFails", "Lag")

        # A statement that waits for a reader's metadata lock.
        reader = MySqlSession(line.address)
        end.callback(reader.close)
        reader.execute("BEGIN")
        reader.query(f"SELECT * FROM {line.target.sql}")
        rest.decide("id c e", line.statement("ALTER TABLE TARGET ADD COLUMN `e` int", e="e"))
        fires("StatementLong")
        reader.execute("COMMIT")
        stops("StatementLong", "RowsOverwritten")

        stands.set()
        fires("SinkStalled")
        stands.clear()
        stops("SinkStalled")

        unanswered = [q for q in unanswered if not server.query(shown(q))]
        assert unanswered == []
