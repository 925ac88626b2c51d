"""Which sink writes: a standby waits, the writer keeps its lease until it is replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.schemas.model.errors import (
    ConfigError,
    ShardMergeError,
    StackError,
    TargetError,
    TargetLost,
    WriterReplaced,
)
from shardmerge.spark_sink.driver import lease_keeper
from shardmerge.spark_sink.driver.lease_keeper import LeaseKeeper, await_lease
from tests.running import wait_for

AWAY = TargetError("away", retryable=True, code="SM-3111")


class ToyLease:
    """Gives what a test says, one answer after the other; the last one stays."""

    def __init__(self, *answers: int | ShardMergeError) -> None:
        self._answers = list(answers)
        self.asked = self.connections = self.kept = 0
        self.is_closed = False

    def connect(self) -> None:
        self.connections += 1

    def wait(self, wait_s: int) -> bool:
        return bool(self.renew())

    def renew(self) -> int:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ShardMergeError):
            raise answer
        return answer

    def keep(self) -> None:
        self.kept += 1

    def sinks(self) -> Sinks:
        return Sinks("db1", ("db2",))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_keeper, "_LET_BACK_S", 0.0)
    monkeypatch.setattr(lease_keeper, "RENEW_S", 0.0)
    monkeypatch.setattr(lease_keeper, "_LOOK_S", 0.0)


@pytest.fixture
def keepers() -> Iterator[list[LeaseKeeper]]:
    made: list[LeaseKeeper] = []
    yield made
    for keeper in made:
        keeper.stop()


def test_a_standby_waits_until_the_lease_is_free() -> None:
    lease = ToyLease(0, 0, AWAY, 1)
    assert await_lease(lease, lambda: False)
    assert lease.asked == 4


def test_a_standby_lets_the_writer_take_its_lease_back_when_the_target_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease = ToyLease(0, AWAY, 1)
    pauses: list[tuple[float, int]] = []
    monkeypatch.setattr(time, "sleep", lambda s: pauses.append((s, lease.connections)))
    monkeypatch.setattr(lease_keeper, "_LET_BACK_S", 3.0)
    assert await_lease(lease, lambda: False)
    assert pauses == [(lease_keeper.RENEW_S, 0), (3.0, 1)], "the pause begins when it answers"


def test_a_standby_that_is_told_to_end_has_no_lease() -> None:
    lease = ToyLease(0)
    assert not await_lease(lease, lambda: lease.asked > 2)


def test_a_standby_that_is_told_to_end_while_it_gets_the_lease_does_not_write() -> None:
    lease = ToyLease(1)
    assert not await_lease(lease, lambda: lease.asked > 0)


def test_a_target_that_does_not_admit_the_standby_ends_it() -> None:
    lease = ToyLease(TargetLost("no such user", code="SM-3114"))
    with pytest.raises(TargetLost):
        await_lease(lease, lambda: False)


def kept(keepers: list[LeaseKeeper], lease: ToyLease) -> LeaseKeeper:
    keeper = LeaseKeeper(lease, renew_s=0.01)
    keeper.compare(7)
    keepers.append(keeper)
    keeper.start()
    return keeper


def test_the_writer_renews_its_lease_and_frees_it_at_the_end() -> None:
    lease = ToyLease(7)
    keeper = LeaseKeeper(lease, renew_s=0.01)
    keeper.compare(7)
    keeper.start()
    wait_for(lambda: lease.asked > 3, "renewal")
    keeper.check()
    assert not lease.is_closed
    keeper.stop()
    assert lease.is_closed


def test_a_writer_that_was_replaced_ends(keepers: list[LeaseKeeper]) -> None:
    keeper = kept(keepers, ToyLease(7, 7, 8))
    wait_for(lambda: not alive("writer-lease"), "end")
    with pytest.raises(WriterReplaced, match="writer epoch 8, this one is 7"):
        keeper.check()


def test_the_lease_is_kept_while_the_sink_takes_over(keepers: list[LeaseKeeper]) -> None:
    """Its epoch is not known then, and the target may have no table that holds one."""
    lease = ToyLease(7, 7, 7, 8)
    keeper = LeaseKeeper(lease, renew_s=0.01)
    keepers.append(keeper)
    keeper.start()
    wait_for(lambda: lease.kept > 3, "keeping")
    assert lease.asked == 0
    keeper.check()
    keeper.compare(7)
    wait_for(lambda: not alive("writer-lease"), "end")
    with pytest.raises(WriterReplaced, match="writer epoch 8, this one is 7"):
        keeper.check()


def alive(name: str) -> bool:
    return any(thread.name == name for thread in threading.enumerate())


def test_a_writer_does_not_end_because_the_target_is_away(keepers: list[LeaseKeeper]) -> None:
    lease = ToyLease(7, AWAY, AWAY, 7)
    keeper = kept(keepers, lease)
    wait_for(lambda: lease.asked > 5, "renewal")
    keeper.check()


def refuses(asked: list[int]) -> Callable[[], Sinks]:
    """A look for standbys that fails, and notes that it was asked."""

    def sinks() -> Sinks:
        asked.append(1)
        raise StackError("no answer", code="SM-4101")

    return sinks


def test_a_writer_goes_on_while_kafka_does_not_tell_who_stands_by(
    keepers: list[LeaseKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = ToyLease(7)
    asked: list[int] = []
    monkeypatch.setattr(lease, "sinks", refuses(asked))
    keeper = kept(keepers, lease)
    wait_for(lambda: len(asked) > 2, "look")
    keeper.check()


def test_a_writer_that_was_replaced_ends_though_nobody_tells_who_stands_by(
    keepers: list[LeaseKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = ToyLease(7, 8)
    monkeypatch.setattr(lease, "sinks", refuses([]))
    keeper = kept(keepers, lease)
    wait_for(lambda: not alive("writer-lease"), "end")
    with pytest.raises(WriterReplaced, match="writer epoch 8, this one is 7"):
        keeper.check()


def test_a_lease_that_is_held_is_not_told_lost_when_the_look_for_standbys_fails(
    keepers: list[LeaseKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    monkeypatch.setattr(lease_keeper.log, "warning", lambda event, **_: events.append(event))
    monkeypatch.setattr(lease_keeper, "_LOOK_S", 3_600.0)
    lease = ToyLease(7)
    looks: list[int] = []
    monkeypatch.setattr(lease, "sinks", refuses(looks))
    kept(keepers, lease)
    wait_for(lambda: lease.asked > 5, "renewal")
    assert events == ["standbys_unknown"]
    assert len(looks) == 1, "the next look is as far away as after an answer"


def test_a_writer_ends_that_is_refused_the_lease(keepers: list[LeaseKeeper]) -> None:
    keeper = kept(keepers, ToyLease(7, ConfigError("not admitted", code="SM-6610")))
    wait_for(lambda: not alive("writer-lease"), "end")
    with pytest.raises(ConfigError, match="not admitted"):
        keeper.check()


class Broken(ToyLease):
    """Fails in a way that nobody expects."""

    def renew(self) -> int:
        raise RuntimeError("a defect")


def test_a_writer_ends_whose_lease_is_not_kept_any_more(keepers: list[LeaseKeeper]) -> None:
    keeper = kept(keepers, Broken(7))
    wait_for(lambda: not alive("writer-lease"), "end")
    with pytest.raises(RuntimeError, match="a defect"):
        keeper.check()


def test_the_writer_knows_where_standbys_wait(keepers: list[LeaseKeeper]) -> None:
    keeper = LeaseKeeper(ToyLease(1))
    keeper.compare(1)
    keepers.append(keeper)
    assert keeper.sinks == Sinks()
    keeper.start()
    wait_for(lambda: keeper.sinks == Sinks("db1", ("db2",)), "look")
