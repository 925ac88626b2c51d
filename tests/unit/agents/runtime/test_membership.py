from __future__ import annotations

import asyncio
import socket
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    NodeNotReadyError,
    NoError,
    NotCoordinatorForGroupError,
    ProducerClosed,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest
from aiokafka.protocol.produce import ProduceRequest

from shardmerge.agents.runtime.membership import (
    KERNEL_S,
    Membership,
    drop_late,
    guard_group,
    heartbeat_s,
    in_flight_s,
    sure_s,
)
from shardmerge.agents.runtime.settings import AgentSettings
from shardmerge.agents.runtime.standstill import EXIT_CODE

MODULE = "shardmerge.agents.runtime.membership"
HEARTBEAT = HeartbeatRequest("g", 1, "m")
JOIN = JoinGroupRequest("g", 6_000, 60_000, "m", None, "consumer", [])
LEAVE = LeaveGroupRequest("g", "m")
COMMIT = OffsetCommitRequest("g", 1, "m", -1, [])
PRODUCE = ProduceRequest(None, -1, 1_000, [])


class Group:
    """A membership of three seconds, with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ends: list[int] = []
        self.membership = Membership(3.0, lambda: self.now, self.ends.append)

    def asks(self, request: object, answer: Any, took_s: float = 0.0) -> None:
        sent = self.membership.sends(request)
        self.now += took_s
        self.membership.hears(request, answer, sent)


@pytest.fixture
def group() -> Group:
    return Group()


def said(error: Any) -> SimpleNamespace:
    return SimpleNamespace(error_code=error.errno)


def committed(*errors: Any) -> SimpleNamespace:
    return SimpleNamespace(topics=[("t", [(n, error.errno) for n, error in enumerate(errors)])])


def test_a_worker_is_sure_from_when_an_answered_heartbeat_was_sent(group: Group) -> None:
    found = [group.membership.is_sure]
    group.asks(HEARTBEAT, said(NoError), took_s=1.0)
    for group.now in (102.0, 103.0, 103.1):
        found.append(group.membership.is_sure)
    group.asks(HEARTBEAT, said(NoError))
    found.append(group.membership.is_sure)
    assert found == [False, True, True, False, True]
    assert group.ends == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has CLOCK_BOOTTIME")
def test_a_worker_is_not_sure_when_its_machine_was_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = {time.CLOCK_BOOTTIME: 5_000.0}
    monkeypatch.setattr(time, "clock_gettime", now.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    membership = Membership(3.0)
    membership.hears(HEARTBEAT, said(NoError), membership.sends(HEARTBEAT))
    assert membership.is_sure
    now[time.CLOCK_BOOTTIME] += 3.1
    assert not membership.is_sure


def test_partitions_are_kept_while_the_group_joins_again(group: Group) -> None:
    group.asks(HEARTBEAT, said(RebalanceInProgressError))
    assert group.membership.is_sure


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (HEARTBEAT, said(NotCoordinatorForGroupError)),
        (HEARTBEAT, said(IllegalGenerationError)),
        (JOIN, said(NoError)),
        (COMMIT, committed(NoError)),
    ],
)
def test_other_answers_prove_nothing(group: Group, request_: object, answer: Any) -> None:
    group.asks(request_, answer)
    assert not group.membership.is_sure
    assert group.ends == []


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (HEARTBEAT, said(UnknownMemberIdError)),
        (JOIN, said(UnknownMemberIdError)),
        (COMMIT, committed(NoError, UnknownMemberIdError)),
    ],
)
def test_a_worker_ends_that_its_group_does_not_know_any_more(
    group: Group, request_: object, answer: Any
) -> None:
    group.asks(HEARTBEAT, said(NoError))
    group.asks(request_, answer)
    assert group.ends == [EXIT_CODE]


def test_a_worker_that_was_in_no_group_yet_joins_again(group: Group) -> None:
    group.asks(JOIN, said(UnknownMemberIdError))
    assert group.ends == []


def test_a_worker_that_leaves_writes_nothing_more(group: Group) -> None:
    group.asks(HEARTBEAT, said(NoError))
    group.asks(LEAVE, said(NoError))
    group.asks(HEARTBEAT, said(UnknownMemberIdError))
    assert not group.membership.is_sure
    assert group.ends == []
    group.asks(JOIN, said(NoError))
    assert group.ends == [EXIT_CODE]


def test_what_goes_out_has_arrived_or_is_dropped_before_the_session_is_over() -> None:
    session_s = AgentSettings().session_timeout_s
    assert sure_s(session_s) + in_flight_s(session_s) + KERNEL_S < session_s
    assert heartbeat_s(session_s) < sure_s(session_s)


def test_the_kernel_drops_what_does_not_arrive_in_time() -> None:
    with socket.socket() as opened:
        drop_late(opened, 2.0)
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2_000


def keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back at the end what ``guard_group`` replaces."""
    for owner, name in (
        (GroupCoordinator, "_send_req"),
        (GroupCoordinator, "_push_error_to_user"),
        (CoordinatorGroupRebalance, "perform_group_join"),
        (AIOKafkaConnection, "connect"),
        (AIOKafkaConnection, "send"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_worker_ends_after_an_error_of_its_group_that_nobody_takes(
    group: Group,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_taken: bool,
) -> None:
    keep(monkeypatch)
    monkeypatch.setattr(f"{MODULE}.BROKEN_S", 0.05)
    guard_group(group.membership, 2.0)
    told: list[BaseException] = []

    async def play() -> None:
        coordinator: Any = SimpleNamespace(
            _subscription=SimpleNamespace(abort_waiters=told.append),
            _closing=asyncio.get_running_loop().create_future(),
        )
        error = GroupAuthorizationFailedError("g")
        waiting = asyncio.ensure_future(GroupCoordinator._push_error_to_user(coordinator, error))
        await asyncio.sleep(0)
        if is_taken:
            coordinator._error_consumed_fut.set_result(None)
        await waiting

    asyncio.run(play())
    assert [type(error) for error in told] == [GroupAuthorizationFailedError]
    assert group.ends == ([] if is_taken else [EXIT_CODE])
    assert ("membership_broken" in caplog.text) is not is_taken


def test_records_wait_until_a_heartbeat_was_answered(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None, "assignment"])
    sent: list[object] = []

    async def joins(_: Any) -> Any:
        return next(answers)

    async def answered(_: Any, request: object) -> Any:
        sent.append(request)
        return said(NoError)

    monkeypatch.setattr(CoordinatorGroupRebalance, "perform_group_join", joins)
    monkeypatch.setattr(GroupCoordinator, "_send_req", answered)
    keep(monkeypatch)
    monkeypatch.setattr(AIOKafkaConnection, "send", lambda _, request: sent.append(request))
    ends: list[bool] = []
    guard_group(group.membership, 2.0, lambda: bool(ends))

    async def heartbeat() -> None:
        await GroupCoordinator._send_req(None, HEARTBEAT)

    rebalance = SimpleNamespace(_coordinator=SimpleNamespace(_do_heartbeat=heartbeat))

    async def play() -> None:
        assert await CoordinatorGroupRebalance.perform_group_join(rebalance) is None
        with pytest.raises(NodeNotReadyError) as waits:
            AIOKafkaConnection.send(None, PRODUCE)
        ends.append(True)
        with pytest.raises(ProducerClosed) as fails:
            AIOKafkaConnection.send(None, PRODUCE)
        ends.clear()
        assert (waits.value.retriable, fails.value.retriable) == (True, False)
        AIOKafkaConnection.send(None, JOIN)
        assert await CoordinatorGroupRebalance.perform_group_join(rebalance) == "assignment"
        AIOKafkaConnection.send(None, PRODUCE)

    asyncio.run(play())
    assert sent == [JOIN, HEARTBEAT, PRODUCE]
