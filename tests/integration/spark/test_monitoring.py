"""The alert rules and the dashboard's queries, by Prometheus' own tool."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from shardmerge.connectors.metrics.catalog import PROCESSES
from shardmerge.schemas.records.decisions import StatementKind
from tests.integration import prometheus

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".local" / "cache"
ALERTS = ROOT / "docker" / "prometheus" / "alerts.yml"
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
NAMES = [rule["alert"] for rule in RULES]
DASHBOARD = json.loads((ROOT / "docker" / "grafana" / "shardmerge.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]

CONTRACTING = StatementKind.CONTRACTING
T = 'target="m.t"'
ST = f'source="s1", {T}'
CASES: dict[str, tuple[tuple[str, str, str], ...]] = {
    # Alert → its series, each with the value that is a reason and the one that is none.
    "ShardmergeProcessDown": (('up{job="shardmerge-sink"}', "0", "1"),),
    "ShardmergeAgentsNotReady": (("shardmerge_agents_ready", "0", "1"),),
    "ShardmergeSinkStalled": (("shardmerge_sink_round_timestamp_seconds", "0", "9999999"),),
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
        (f'shardmerge_sink_waiting_shards{{{T}, kind="row"}}', "1", "0"),
        (f'shardmerge_sink_waiting_shards{{{T}, kind="barrier"}}', "5", "5"),
    ),
    "ShardmergeShardPaused": (
        (f'shardmerge_sink_waiting_seconds{{{T}, kind="paused"}}', "86401", "86400"),
    ),
    "ShardmergeConflictOld": ((f"shardmerge_agents_conflict_seconds{{{T}}}", "3601", "0"),),
    "ShardmergeStatementRefused": (
        (f'shardmerge_sink_open_statements{{{T}, state="refused"}}', "1", "0"),
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


def promtool(*arguments: str) -> str:
    command = [*prometheus.program("promtool", CACHE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_valid_and_each_has_a_summary_a_description_and_a_place_in_the_docs() -> None:
    assert f"{len(NAMES)} rules found" in promtool("check", "rules", str(ALERTS))
    page = (ROOT / "docs/how-to/monitor.md").read_text()
    places = {f"docs/how-to/monitor.md#{name.lower()}" for name in re.findall("### (.+)", page)}
    assert {rule["annotations"]["runbook_url"] for rule in RULES} == places
    for rule in RULES:
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


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
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": units}))
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
    file.write_text(hurried())
    promtool("check", "rules", str(file))


def shown(query: str) -> str:
    """A query of the dashboard with the ranges that Grafana would choose."""
    return query.replace("$__rate_interval", "10s").replace("$__range", "1m")


def hurried() -> str:
    """The rules with bounds of seconds instead of minutes and days; retention's stays."""
    text = re.sub(r"for: \d+m", "for: 1s", ALERTS.read_text())
    text = re.sub(r"(time\(\) - \S+|_seconds(?:\{[^}]*\})?) > \d+", r"\1 > 2", text)
    return text.replace("[15m]", "[15s]")
