"""Keeps a worker from writing when it may no longer be in its group.

A worker that is cut off from the network works on without an answer. When its session is over,
another worker has its partitions. Records of the first one that arrive after that would put older
rows over newer ones in the changelogs of the tables. Kafka takes them: they are in no transaction.

Theory of operation:

1. Records go out only while the worker is *sure*: the last heartbeat that was answered was sent at
   most ``sure_s`` ago. Otherwise they wait in the producer, until a heartbeat is answered.
2. What went out, and does not arrive at the broker's machine within ``in_flight_s``, is dropped by
   the kernel, together with its connection (``TCP_USER_TIMEOUT`` of tcp(7)). Without that the
   kernel delivers it when the network is back, even if the process has ended meanwhile.
3. Both times together, and what the kernel adds (``KERNEL_S``), are shorter than a session of six
   seconds or more. The session begins when the broker gets a heartbeat.
4. When the broker says that it does not know the worker any more, the process ends. So what waits
   in the producer never goes out: it may be older than what another worker has written.
5. aiokafka tells some errors of the group to whoever reads records, such as one at which it sends
   no heartbeats any more, and waits until they are taken. Faust never takes them. So the process
   ends, if it does not do so by itself.
6. A worker that ends waits for nothing: what it may not send by then fails. What this was made of
   is not committed, so another worker, or the next start, makes it again.

What is left: a broker that has received a record, and needs longer than the rest of the session
until it appends it; and a proxy before the broker that keeps bytes longer than that.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.errors import (
    NodeNotReadyError,
    NoError,
    ProducerClosed,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest
from aiokafka.protocol.produce import ProduceRequest

from shardmerge.connectors.clock import boot_s
from shardmerge.connectors.event_log import logger

from .standstill import EXIT_CODE

log = logger(__name__)


KERNEL_S = 3.5
"""How much longer the kernel can keep what it drops.

Its first retransmission counts, up to half a second later. A packet that has no address of its next
hop waits for it three seconds more: ``mcast_solicit`` and ``retrans_time_ms`` of arp(7). Measured.
"""


BROKEN_S = 5.0
"""How long a worker may live on after an error of its group that nobody takes."""


def heartbeat_s(session_timeout_s: float) -> float:
    """Pause between heartbeats."""
    return session_timeout_s / 12


def sure_s(session_timeout_s: float) -> float:
    """For how long after it sent an answered heartbeat a worker lets records go out."""
    return session_timeout_s / 5


def in_flight_s(session_timeout_s: float) -> float:
    """How long what went out may take to arrive, before the kernel drops it."""
    return session_timeout_s / 6


class Membership:
    """Whether this worker is surely in its group.

    Args:
        sure_s: See the function.
        clock: Gives seconds, and goes on while the process or the machine stands still.
        end: Ends the process.
    """

    def __init__(
        self,
        sure_s: float,
        clock: Callable[[], float] = boot_s,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._sure_s, self._clock, self._end = sure_s, clock, end
        self._answered: float | None = None
        """When the last heartbeat that was answered was sent; None before the first one."""
        self._has_left = False

    @property
    def is_sure(self) -> bool:
        """Whether records may go out now."""
        if self._answered is None or self._has_left:
            return False
        return self._clock() - self._answered <= self._sure_s

    def sends(self, request: object) -> float:
        """Note a request to the group's coordinator; returns when it is sent."""
        if isinstance(request, LeaveGroupRequest):
            self._has_left = True
        elif self._has_left and isinstance(request, JoinGroupRequest):
            self._lost()  # it left because it took no records for long, and may still have some
        return self._clock()

    def hears(self, request: object, response: Any, sent: float) -> None:
        """Note the coordinator's answer to a request that was sent at a time."""
        found = set(_errors(response))
        if UnknownMemberIdError.errno in found:
            if self._answered is not None and not self._has_left:
                self._lost()
        elif isinstance(request, HeartbeatRequest) and found <= _STILL_IN:
            self._answered = sent

    def broken(self, error: BaseException) -> None:
        """End the process after an error with which it can be in no group."""
        log.error("membership_broken", error=error)
        self._end(EXIT_CODE)

    def _lost(self) -> None:
        since = 0.0 if self._answered is None else self._clock() - self._answered
        log.error("membership_lost", seconds=round(since, 1))
        self._end(EXIT_CODE)


_STILL_IN = {NoError.errno, RebalanceInProgressError.errno}
"""A group that waits for its members to join again does not give their partitions to others."""


def _errors(response: Any) -> Iterator[int]:
    if hasattr(response, "error_code"):
        yield response.error_code
    else:  # of a commit: one for each partition
        for _, partitions in getattr(response, "topics", ()):
            yield from (code for _, code in partitions)


def guard_group(
    membership: Membership, in_flight_s: float, is_ending: Callable[[], bool] = lambda: False
) -> None:
    """Let no record leave this process, or arrive late, when another worker may have its partition.

    Args:
        membership: What is told of the group, and asked.
        in_flight_s: See the function.
        is_ending: Whether the process was told to end.
    """
    send_req, join = GroupCoordinator._send_req, CoordinatorGroupRebalance.perform_group_join
    connect, send = AIOKafkaConnection.connect, AIOKafkaConnection.send
    push_error = GroupCoordinator._push_error_to_user

    @wraps(send_req)
    async def told(coordinator: Any, request: Any) -> Any:
        sent = membership.sends(request)
        response = await send_req(coordinator, request)
        membership.hears(request, response, sent)
        return response

    @wraps(join)
    async def joined(rebalance: Any) -> Any:
        found = await join(rebalance)
        if found is not None:
            # aiokafka would send the first one after an interval.
            await rebalance._coordinator._do_heartbeat()
        return found

    @wraps(push_error)
    async def told_to_nobody(coordinator: Any, error: BaseException) -> None:
        try:
            await asyncio.wait_for(push_error(coordinator, error), BROKEN_S)
        except TimeoutError:
            membership.broken(error)

    @wraps(connect)
    async def connected(connection: Any) -> Any:
        found = await connect(connection)
        connected_socket = connection._writer.get_extra_info("socket")
        drop_late(connected_socket, in_flight_s)
        return found

    @wraps(send)
    def sent_while_sure(connection: Any, request: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(request, ProduceRequest) and not membership.is_sure:
            if is_ending():
                raise ProducerClosed("the worker ends, and may be out of its group")
            # The producer tries again.
            raise NodeNotReadyError("no heartbeat was answered of late")
        return send(connection, request, *arguments, **options)

    GroupCoordinator._send_req = told
    GroupCoordinator._push_error_to_user = told_to_nobody
    CoordinatorGroupRebalance.perform_group_join = joined
    AIOKafkaConnection.connect = connected
    AIOKafkaConnection.send = sent_while_sure


def drop_late(connection: socket.socket, in_flight_s: float) -> None:
    """Have the kernel drop what is not acknowledged in time, together with the connection."""
    if sys.platform == "linux":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(in_flight_s * 1000))
