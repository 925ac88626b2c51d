"""The agents' worker on a real broker: every decision once, whatever kills it."""

from __future__ import annotations

import random
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.breadth import with_further

from .line import Line, wait_for
from .sharing import wait_shared

HERE = Path(__file__).parent
CREATE = "CREATE TABLE {} (ID INT PRIMARY KEY, NAME VARCHAR(20))"


def describe(line: Line) -> None:
    """The sources' snapshots: three shards of one target, one of another."""
    one, two = line.sources
    line.execute(one, *(CREATE.format(t) for t in ("tbl00", "tbl01", "log00")), snapshot=True)
    line.execute(two, CREATE.format("tbl02"), "USE `shop`", snapshot=True)


def statements(seed: int, count: int) -> list[tuple[int, str]]:
    """A random history: (source number, statement)."""
    chosen = random.Random(seed)
    shards = [(0, "tbl00"), (0, "tbl01"), (0, "log00"), (1, "tbl02")]
    columns: dict[str, list[str]] = {table: [] for _, table in shards}
    history = []
    for number in range(count):
        source, table = chosen.choice(shards)
        known = columns[table]
        kind = chosen.random()
        if kind < 0.1:
            ddl = f"CREATE TABLE other{number} (x INT)"
        elif known and kind < 0.4:
            ddl = f"ALTER TABLE {table} DROP COLUMN {known.pop(chosen.randrange(len(known)))}"
        else:
            known.append(f"c{number}")
            ddl = f"ALTER TABLE {table} ADD COLUMN c{number} {chosen.choice(['INT', 'TEXT'])}"
        history.append((source, ddl))
    return history


def feed(line: Line, history: list[tuple[int, str]]) -> None:
    for source, ddl in history:
        line.execute(line.sources[source], ddl)


def test_every_event_is_answered_once_and_in_order(line: Line):
    line.session_timeout_s = 30
    describe(line)
    line.start()
    feed(line, statements(1, 30))
    line.wait_decided(line.events())
    line.check_outputs()
    versions: dict[str, list[int]] = {}
    for decision in line.decisions():
        if decision.target is not None:
            versions.setdefault(str(decision.target), []).append(decision.version)
    assert versions.keys() == {"merged.tbl", "merged.log"}
    for found in versions.values():
        assert found == list(range(1, len(found) + 1))
    wait_for(lambda: counted(line) == (line.events(), sum(map(len, versions.values()))), "count")


def counted(line: Line) -> tuple[float, float]:
    """What the worker's metrics say: records that the tracker completed, and decisions."""
    request = Request(
        f"http://127.0.0.1:{line.web_port}/metrics",
        headers={"Accept": "application/openmetrics-text; version=1.0.0"},
    )
    with urlopen(request) as answer:
        samples = [
            sample
            for family in text_string_to_metric_families(answer.read().decode())
            for sample in family.samples
        ]
    assert next(s.value for s in samples if s.name == "shardmerge_agents_ready") == 1
    tracked = sum(
        s.value
        for s in samples
        if (s.name, s.labels) == ("shardmerge_agents_records_total", {"agent": "tracker"})
    )
    return tracked, sum(s.value for s in samples if s.name == "shardmerge_agents_decisions_total")


def test_a_killed_worker_goes_on_with_the_same_decisions_with_its_disk_and_without(line: Line):
    describe(line)
    history = statements(2, 48)
    chosen = random.Random(3)
    fed = 0
    for lose_data in (False, True, False, True):
        part = history[fed : fed + 12]
        fed += len(part)
        line.start(wait=False)
        feed(line, part)
        # Somewhere in the middle of the part's records.
        line.wait_decided(line.events() - chosen.randrange(1, 12))
        line.kill(lose_data=lose_data)
    line.start()
    line.wait_decided(line.events())
    line.check_outputs()


def test_a_worker_killed_while_it_recovers_loses_nothing(line: Line):
    describe(line)
    feed(line, statements(5, 20))
    line.start()
    line.wait_decided(line.events() - 10)
    line.kill()
    for moment in ("partitions_assigned", "tables_restored", "offsets_restored"):
        seen = line.log().count(moment)
        line.start(wait=False)
        wait_for(lambda m=moment, s=seen: line.log().count(m) > s, moment)  # type: ignore[misc]
        line.kill()
    line.start()
    line.wait_decided(line.events())
    line.check_outputs()


def test_records_that_arrive_while_the_recovery_seeks_are_not_skipped(line: Line):
    describe(line)
    feed(line, statements(6, 15))
    line.start(script=HERE / "slow_seek_worker.py", wait=False)
    feed(line, statements(7, 10))
    line.wait_decided(line.events() - 8)
    line.kill()
    seen = line.log().count("tables_restored")
    line.start(script=HERE / "slow_seek_worker.py", wait=False)
    wait_for(lambda: line.log().count("tables_restored") > seen, "restored tables")
    feed(line, [(s, f"/* 2 */ {d}") for s, d in statements(8, 20)])
    line.wait_decided(line.events())
    assert "records_skipped" not in line.log()
    line.check_outputs()


def test_a_worker_that_skips_records_stops_and_its_restart_reads_them(line: Line):
    describe(line)
    feed(line, statements(9, 12))
    line.start(script=HERE / "skipping_worker.py", wait=False)
    wait_for(lambda: not line.runs(), "end of the skipping worker")
    assert "records_skipped" in line.log()
    line.start()
    line.wait_decided(line.events())
    line.check_outputs()


@pytest.mark.parametrize(
    "place", with_further("coordinator.after-settle:9", "tracker.after-send:5")
)
def test_a_worker_that_stood_still_writes_nothing_when_it_wakes(line: Line, place: str):
    describe(line)
    history = statements(12, 40)
    line.start("a", failpoint=f"{place}:stop", wait=False)
    fed = 0
    while not line.stands_still("a"):
        if line.decided() >= line.events() and fed < 20:
            feed(line, history[fed : fed + 1])
            fed += 1
    line.start("b", wait=False)
    feed(line, history[fed:30])
    line.wait_decided(line.events())  # by b, once the session of a is over

    line.wake("a")

    line.wait_ended("a")
    assert "process_stalled" in line.log("a")
    # What a worker without a disk goes on with is what the topics hold.
    line.kill("b", lose_data=True)
    line.start("b")
    feed(line, history[30:])
    line.wait_decided(line.events())
    line.check_outputs()


def test_a_worker_that_ends_waits_for_no_group_to_send_its_records(line: Line):
    describe(line)
    history = statements(12, 80)
    line.start(script=HERE / "unsure_worker.py")
    fed = 0
    # Few at a time: a busy worker sends what comes together in few requests, and counts those.
    while fed < 60 and line.runs():
        if line.decided() >= line.events():
            feed(line, history[fed : fed + 3])
            fed += 3
    line.wait_ended("worker")
    line.start()
    feed(line, history[fed:])
    line.wait_decided(line.events())
    line.check_outputs()


def test_a_worker_whose_end_does_not_come_ends_all_the_same(line: Line):
    describe(line)
    line.start(script=HERE / "stuck_worker.py")
    line.wait_decided(line.events())
    line.terminate("worker")
    line.wait_ended("worker")
    assert "end_overdue" in line.log()
    line.start()
    feed(line, statements(13, 5))
    line.wait_decided(line.events())
    line.check_outputs()


def test_three_workers_share_the_work_and_take_over_from_each_other(line: Line):
    describe(line)
    history = statements(10, 45)
    for name in "abc":
        line.start(name)
    wait_shared(line, "abc")
    chosen = random.Random(11)
    for round_ in range(3):
        feed(line, history[round_ * 15 : round_ * 15 + 15])
        line.wait_decided(line.events() - chosen.randrange(1, 10))
        victim = "abc"[round_]
        if line.runs(victim):  # one that stood still for too long has ended by itself
            line.kill(victim)
        line.start(victim, wait=False)
    for name in "abc":
        if not line.runs(name):
            line.start(name, wait=False)
    line.wait_decided(line.events())
    wait_shared(line, "abc")
    line.check_outputs()
