"""The watchdog against a scripted worker, and with somebody who brings a connector on."""

from __future__ import annotations

import itertools
import logging
import threading
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.formats.connector_status import ConnectorStatus
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.repair.statement_repair import Attended
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import ConfigError, ContractError, StackError
from shardmerge.schemas.model.position import SourcePosition
from tests.unit.connectors.connect.test_connect_rest import status
from tests.unit.connectors.worker import Worker

RESTART = "/connectors/c/restart?includeTasks=true&onlyFailed=true"
FAILED, RUNNING = (200, status("RUNNING", "FAILED")), (200, status("RUNNING", "RUNNING"))


@dataclass
class Repair:
    """Says what it was asked.

    Attributes:
        outcome: Of ``attend``.
        is_away: Whether the source does not answer.
        is_begun: Whether another process has begun a repair.
        is_unfit: Whether the offset does not fit the source's gtid_mode.
    """

    outcome: Attended | ContractError | StackError = Attended.RESTARTED
    is_away: bool = False
    is_begun: bool = False
    is_unfit: bool = False
    asked: list[str] = field(default_factory=list)

    def see_gtid_mode(self) -> None:
        if self.is_away:
            raise StackError("source s1: its binlog cannot be read")

    def look_at_gtids(self) -> bool:
        self.asked.append("look")
        return self.is_unfit

    def source_end(self) -> SourcePosition:
        if self.is_away:
            raise StackError("source s1: its binlog cannot be read")
        return SourcePosition(0, "binlog.000001", 4, 0)

    def attend(self, told: ConnectorStatus) -> Attended:
        self.asked.append(f"attend {told.name}")
        if isinstance(self.outcome, ContractError | StackError):
            raise self.outcome
        return self.outcome

    def begin_anew(self) -> None:
        self.asked.append("begin anew")

    def take_in(self) -> tuple[TableName, ...]:
        self.asked.append("take in")
        return ()

    def finish(self, told: ConnectorStatus) -> bool:
        self.asked.append(f"finish {told.state}")
        begun, self.is_begun = self.is_begun, False
        return begun


def watchdog_of(rest: ConnectRest, repair: Repair) -> Watchdog:
    return Watchdog(rest, ["c"], 1.0, {"c": cast(SourceRepair, repair)})


def offset(pos: int) -> tuple[int, Any]:
    entry = {"partition": {"server": "s1"}, "offset": {"file": "binlog.000001", "pos": pos}}
    return 200, {"offsets": [entry]}


def test_the_watchdog_restarts_only_what_failed(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    worker.on("GET", "/connectors/up/status", (200, status("RUNNING", "RUNNING")))
    worker.on("GET", "/connectors/down/status", (200, status("RUNNING", "FAILED")))
    worker.on("POST", "/connectors/down/restart?includeTasks=true&onlyFailed=true", (202, {}))

    with caplog.at_level(logging.WARNING):
        assert Watchdog(rest, ["up", "down", "absent"]).look(0.0) == ("down",)

    assert len(worker.asked("POST")) == 1
    assert "connector_restarted connector=down remedy=restarted" in caplog.text
    assert "no such binlog file" in caplog.text


def test_the_pauses_grow_while_a_task_keeps_failing(worker: Worker, rest: ConnectRest) -> None:
    worker.on("GET", "/connectors/c/status", (200, status("RUNNING", "FAILED")))
    worker.on("POST", "/connectors/c/restart?includeTasks=true&onlyFailed=true", (202, {}))
    watchdog = Watchdog(rest, ["c"], interval_s=1.0)

    restarts = [t for t in range(16) if watchdog.look(float(t))]

    assert restarts == [0, 1, 3, 7, 15]


def test_a_task_that_ran_again_is_restarted_without_a_pause(
    worker: Worker, rest: ConnectRest
) -> None:
    failed, running = (200, status("RUNNING", "FAILED")), (200, status("RUNNING", "RUNNING"))
    worker.on("GET", "/connectors/c/status", failed, failed, failed, running, failed, failed)
    worker.on("POST", "/connectors/c/restart?includeTasks=true&onlyFailed=true", (202, {}))
    watchdog = Watchdog(rest, ["c"], interval_s=1.0)

    restarts = [t for t in (0, 1, 3, 20, 30, 31) if watchdog.look(float(t))]

    assert restarts == [0, 1, 3, 30, 31]


def test_a_failed_connector_is_brought_on_by_its_repair(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    repair = Repair(Attended.REPAIRED)

    assert watchdog_of(rest, repair).look(0.0) == ("c",)

    assert repair.asked == ["attend c"] and worker.asked("POST") == []
    assert f'connector_restarted connector=c remedy="{Attended.REPAIRED}"' in caplog.text


def test_a_source_that_is_away_is_awaited_and_not_counted(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    repair = Repair(is_away=True)
    watchdog = watchdog_of(rest, repair)
    for now_s in range(30):
        with pytest.raises(StackError, match="its binlog cannot be read"):
            watchdog.look(float(now_s))
    assert repair.asked == []

    repair.is_away = False

    assert watchdog.look(30.0) == ("c",)


def test_ten_fruitless_restarts_are_told_once_until_the_offset_moves(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    watchdog = watchdog_of(rest, Repair())

    for now_s in range(0, 20_000, 600):
        assert watchdog.look(float(now_s)) == ("c",)
    assert caplog.text.count("connector_given_up connector=c restarts=10") == 1
    assert "no such binlog file" in caplog.text

    worker.on("GET", "/connectors/c/offsets", offset(5))
    for now_s in range(30_000, 50_000, 600):
        watchdog.look(float(now_s))
    assert caplog.text.count("connector_given_up") == 2


def test_a_connector_that_was_given_up_comes_back_by_itself(
    worker: Worker, rest: ConnectRest
) -> None:
    """Connect could not reach the source for hours."""
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    watchdog = watchdog_of(rest, Repair())

    restarts = [n for n in range(0, 3_000, 10) if watchdog.look(float(n))]

    pauses = [after - before for before, after in itertools.pairwise(restarts)]
    assert pauses[-7:] == [60, 120, 240, 480, 600, 600, 600]


def test_that_a_connector_is_given_up_is_told_until_it_runs(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    watchdog = watchdog_of(rest, Repair())
    told = {}
    for now_s in range(0, 3_000, 10):
        watchdog.look(float(now_s))
        told[now_s] = given_up(watchdog)
    first = next(now_s for now_s, is_so in told.items() if is_so)
    assert 300 < first < 600
    assert all(told[now_s] for now_s in range(first, 3_000, 10))

    worker.on("GET", "/connectors/c/status", RUNNING)
    watchdog.look(3_000.0)
    assert not given_up(watchdog)

    # It failed in the same way right after the restart: told at once, not at the next restart.
    worker.on("GET", "/connectors/c/status", FAILED)
    assert watchdog.look(3_001.0) == ()
    assert given_up(watchdog)


def given_up(watchdog: Watchdog) -> bool:
    samples = watchdog.states.samples()
    return any(s.value for s in samples if s.family is catalog.CONNECTOR_GIVEN_UP)


def test_a_connector_that_is_left_is_not_restarted_and_not_given_up(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    """Its repair has said why; there was no restart that could be given up."""
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    repair = Repair(Attended.HELD)
    watchdog = watchdog_of(rest, repair)

    assert [watchdog.look(100.0 * n) for n in range(20)] == [()] * 20

    assert len(repair.asked) == 20 and worker.asked("POST") == []
    assert caplog.text == ""


def test_a_connector_that_is_left_is_looked_at_in_growing_pauses(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    repair = Repair(Attended.HELD)
    watchdog = watchdog_of(rest, repair)
    for now_s in range(16):
        watchdog.look(float(now_s))
    assert len(repair.asked) == 5


def test_one_connector_that_cannot_be_brought_on_does_not_keep_the_others(
    worker: Worker, rest: ConnectRest
) -> None:
    for name in ("a", "b"):
        worker.on("GET", f"/connectors/{name}/status", FAILED)
        worker.on("GET", f"/connectors/{name}/offsets", offset(4))
    wrong, well = Repair(ContractError("no schema history")), Repair()
    repairs = {"a": cast(SourceRepair, wrong), "b": cast(SourceRepair, well)}

    with pytest.raises(ContractError, match="no schema history"):
        Watchdog(rest, ["a", "b"], 1.0, repairs).look(0.0)

    assert well.asked == ["attend b"]


class Broken(Repair):
    """Fails in another way than expected at its first look."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.errors = [error]

    def see_gtid_mode(self) -> None:
        if self.errors:
            raise self.errors.pop()


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (ConfigError("the password is not there", code="SM-5206"), "watch_failed"),
        (ValueError("no JSON"), "watch_broken"),
    ],
)
def test_no_error_at_one_connector_ends_the_watch_or_keeps_the_others(
    worker: Worker,
    rest: ConnectRest,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    event: str,
) -> None:
    for name in ("a", "b"):
        worker.on("GET", f"/connectors/{name}/status", FAILED)
        worker.on("GET", f"/connectors/{name}/offsets", offset(4))
    broken, well = Broken(error), Repair()
    repairs = {"a": cast(SourceRepair, broken), "b": cast(SourceRepair, well)}
    stop, asked = threading.Event(), []

    def moved() -> tuple[str, ...]:
        asked.append(list(well.asked))
        if len(asked) == 2:
            stop.set()
        return ()

    Watchdog(rest, ["a", "b"], 0.01, repairs).run(stop, moved)

    assert asked[0] == ["attend b"], "the other one, in the same look"
    assert len(asked) == 2, "and another look came"
    assert event in caplog.text and str(error.args[0]) in caplog.text


def test_each_connectors_error_is_told(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    repairs = {
        name: cast(SourceRepair, Broken(ConfigError(f"no password of {name}", code="SM-5206")))
        for name in ("a", "b")
    }
    with pytest.raises(ConfigError, match="no password of a"):
        Watchdog(rest, ["a", "b"], 1.0, repairs).look(0.0)
    assert "no password of b" in caplog.text


def test_what_restarted_nothing_is_no_fruitless_restart(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka does not answer the watchdog, and Connect runs on: when it does, it is restarted."""
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    repair = Repair(StackError("no broker answers", code="SM-4101"))
    watchdog = watchdog_of(rest, repair)

    for number in range(20):
        with pytest.raises(StackError, match="no broker answers"):
            watchdog.look(100.0 * number)
    repair.outcome = Attended.RESTARTED

    assert watchdog.look(2000.0) == ("c",)
    assert "connector_given_up" not in caplog.text


def test_a_repair_that_another_process_began_is_taken_up(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    worker.on("GET", "/connectors/c/status", (200, status("STOPPED")))
    repair = Repair(is_begun=True)
    watchdog = watchdog_of(rest, repair)

    assert [watchdog.look(float(n)) for n in range(3)] == [()] * 3

    assert repair.asked == ["finish STOPPED"] * 3
    assert caplog.text.count("repair_resumed connector=c state=STOPPED") == 1


def test_a_running_connector_is_asked_about_only_once_and_for_left_out_tables_now_and_then(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("GET", "/connectors/c/status", (404, {}), RUNNING)
    repair = Repair()
    watchdog = watchdog_of(rest, repair)

    for now_s in range(18):
        assert watchdog.look(float(now_s)) == ()

    assert repair.asked[:4] == ["finish RUNNING", "look", "take in", "look"]
    assert repair.asked.count("take in") == 2 and repair.asked.count("look") == 16


def test_a_running_connectors_gtids_are_looked_at(worker: Worker, rest: ConnectRest) -> None:
    worker.on("GET", "/connectors/c/status", RUNNING)
    watchdog = watchdog_of(rest, Repair(is_unfit=True))
    assert [watchdog.look(float(n)) for n in range(3)] == [(), ("c",), ("c",)]


def test_a_connector_that_is_held_is_not_restarted(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    assert watchdog_of(rest, Repair(Attended.HELD)).look(0.0) == ()
    assert worker.asked("POST") == [] and caplog.text == ""


def test_a_connector_that_was_interrupted_before_it_had_a_place_begins_anew(
    worker: Worker, rest: ConnectRest
) -> None:
    trace = "org.x.ConnectException: Source offset 'file' parameter is missing\n\tat x"
    failed = status("RUNNING", "FAILED")
    failed["tasks"][0]["trace"] = trace
    worker.on("GET", "/connectors/c/status", (200, failed))
    repair = Repair()

    assert watchdog_of(rest, repair).look(0.0) == ("c",)

    assert repair.asked == ["begin anew"] and worker.asked("POST") == []


def test_a_look_ends_the_watch_when_a_source_was_moved(
    worker: Worker, rest: ConnectRest, caplog: pytest.LogCaptureFixture
) -> None:
    worker.on("GET", "/connectors/c/status", (200, status("RUNNING", "RUNNING")))
    looks = iter([(), ("s1",)])
    stop = threading.Event()

    with caplog.at_level(logging.INFO):
        Watchdog(rest, ["c"], 0.01).run(stop, lambda: next(looks))

    assert stop.is_set(), "the watches beside it end, too"
    assert "sources_moved" in caplog.text


def test_a_restart_that_nobody_answered_does_not_count(worker: Worker, rest: ConnectRest) -> None:
    """While its group rebalances, as workers come and go, Connect restarts nothing (409)."""
    worker.on("GET", "/connectors/c/status", FAILED)
    worker.on("GET", "/connectors/c/offsets", offset(4))
    refused = "409: Cannot complete request because of a conflicting operation"
    repair = Repair(StackError(refused, code="SM-4304"))
    watchdog = watchdog_of(rest, repair)

    for second in range(12):
        with pytest.raises(StackError, match="409"):
            watchdog.look(float(second))

    assert len(repair.asked) == 12
    repair.outcome = Attended.RESTARTED
    assert watchdog.look(12.0) == ("c",)
