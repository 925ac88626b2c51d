"""The writer's lease on real servers: who has it, and when it is free again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from shardmerge.connectors.access.lease_names import (
    Sinks,
    lease_name,
    session_mark,
    session_names,
    sinks_at,
    standby_names,
)
from shardmerge.connectors.access.mysql import connect
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.targets.mysql import lease as module
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.lease import MySqlLease
from shardmerge.spark_sink.targets.mysql.server_errors import LOST
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks import connection
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig
from tests.running import holding, wait_for

SERVERS = ("mysql80", "mariadb1011")
CONTROL, PIPELINE = "shardmerge_lease", "p"
FREED_S = 10
"""Within so many seconds a server that has much to do frees the lock of a closed connection."""
HOLDER = """
import sys, time
from tests.integration.mysql.test_lease import MySqlAddress, lease_at
host, port, user, password = sys.argv[1:]
lease = lease_at(MySqlAddress(host, int(port), user, password))
assert lease.wait(10)
print("held", flush=True)
while True:
    lease.renew()
    time.sleep(0.2)
"""


@pytest.fixture(params=SERVERS, scope="module")
def target(request: pytest.FixtureRequest, server_port: Callable[[str], int]) -> MySqlAddress:
    return prepared(MySqlAddress("127.0.0.1", server_port(request.param), USER, PASSWORD))


def prepared(target: MySqlAddress) -> MySqlAddress:
    """The target, with the control tables of the pipeline."""
    session = MySqlSession(target)
    ControlStore(session, CONTROL, PIPELINE).prepare()
    session.close()
    return target


def lease_at(target: MySqlAddress) -> MySqlLease:
    session = MySqlSession(target)
    of = CONTROL, PIPELINE
    epoch = ControlStore(session, *of).epoch
    names = session_names(session_mark(*of))
    return MySqlLease(session, epoch, lease_name(*of), standby_names(*of), names)


@pytest.fixture
def leases(target: MySqlAddress) -> Iterator[Callable[[], MySqlLease]]:
    """Makes leases of one pipeline, and frees them at the end."""
    made: list[MySqlLease] = []

    def make() -> MySqlLease:
        made.append(lease_at(target))
        return made[-1]

    yield make
    for lease in made:
        lease.close()


def test_one_sink_has_the_lease_and_another_gets_it_when_it_is_freed(
    leases: Callable[[], MySqlLease],
) -> None:
    one, two = leases(), leases()
    assert one.wait(FREED_S)
    assert one.wait(0), "it has it already"
    assert not two.wait(0)
    one.close()
    assert two.wait(FREED_S)


def test_a_sink_that_was_killed_frees_the_lease_at_once(
    target: MySqlAddress, leases: Callable[[], MySqlLease]
) -> None:
    at = (target.host, str(target.port), target.user, target.password)
    with holding(HOLDER, *at):
        waiting = leases()
        assert not waiting.wait(1)
    assert waiting.wait(FREED_S)


def test_a_sink_that_stands_still_loses_the_lease_and_takes_none_from_its_successor(
    leases: Callable[[], MySqlLease], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENCE_S", 2)
    still, waiting = leases(), leases()
    assert still.wait(FREED_S)
    monkeypatch.undo()  # only this one is to lose it
    wait_for(lambda: waiting.wait(1), "lease")
    with pytest.raises(TargetError):
        still.renew()
    assert still.renew() == 0, "the epoch: the lease itself it cannot have"
    assert waiting.renew() == 0
    assert waiting.wait(0)


def test_a_transaction_of_a_driver_whose_machine_was_cut_off_is_ended(
    target: MySqlAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 2)
    config = ApplyConfig(Kafka(""), target, CONTROL, PIPELINE)
    silent, later = config.session(), MySqlSession(target)
    epoch = ControlStore(silent, CONTROL, PIPELINE).take_epoch()

    def write_while_silent() -> None:
        with silent.transaction():
            ControlStore(silent, CONTROL, PIPELINE).fence(epoch)
            assert ControlStore(later, CONTROL, PIPELINE).take_epoch() == epoch + 1

    with pytest.raises(TargetError) as lost:
        write_while_silent()
    assert lost.value.number in LOST
    later.close()


def test_who_gets_the_lease_ends_the_silent_sessions_of_the_sink_before(
    target: MySqlAddress, leases: Callable[[], MySqlLease]
) -> None:
    config = ApplyConfig(Kafka(""), target, CONTROL, PIPELINE, lock_wait_timeout_s=10)
    silent, busy = config.session(), config.session()
    other = ApplyConfig(Kafka(""), target, CONTROL, "another").session()
    control = ControlStore(silent, CONTROL, PIPELINE)
    epoch = control.take_epoch()
    before, later = leases(), leases()
    assert before.wait(FREED_S)
    other.execute("DO 0")

    def write_while_silent() -> None:
        with silent.transaction():
            control.fence(epoch)
            wait_for(lambda: is_asleep(target), "statement that runs")
            before.close()
            assert later.wait(FREED_S)
            assert ControlStore(MySqlSession(target), CONTROL, PIPELINE).take_epoch() == epoch + 1

    with ThreadPoolExecutor(1) as pool:
        slept = pool.submit(busy.query, "SELECT SLEEP(3)")  # as DDL that takes long
        with pytest.raises(TargetError) as lost:
            write_while_silent()
        assert lost.value.number in LOST
        assert slept.result() == [(0,)]
    assert other.query("SELECT 1") == [(1,)]


def is_asleep(target: MySqlAddress) -> bool:
    with connect(target) as connection, connection.cursor() as cursor:
        query = "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'"
        return bool(cursor.execute(query))


def test_status_shows_who_writes_and_who_waits(
    target: MySqlAddress, leases: Callable[[], MySqlLease]
) -> None:
    assert sinks(target) == Sinks()
    one, two, three = leases(), leases(), leases()
    assert one.wait(FREED_S)
    assert not two.wait(0)
    assert not three.wait(0)
    for found in (one.sinks(), sinks(target)):
        assert counted(found) == ("127.0.0.1", 2)
    one.close()
    assert two.wait(FREED_S)
    assert counted(two.sinks()) == ("127.0.0.1", 1)


def counted(found: Sinks) -> tuple[str, int]:
    return found.writer.replace("localhost", "127.0.0.1"), len(found.standbys)


def sinks(target: MySqlAddress) -> Sinks:
    """As the command ``status`` asks for them, with a cursor."""
    of = CONTROL, PIPELINE
    with connect(target) as connection, connection.cursor() as cursor:

        def query(sql: str, arguments: Sequence[object]) -> Sequence[tuple[object, ...]]:
            cursor.execute(sql, arguments)
            return list(cursor.fetchall())

        return sinks_at(query, lease_name(*of), standby_names(*of))
