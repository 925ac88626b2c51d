"""What the driver relies on, held against every kind of target."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from shardmerge.connectors.local.servers import running_server
from shardmerge.connectors.local.stack import LocalStack, Ports
from shardmerge.schemas.errors import TargetError
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.row_statements import copying
from shardmerge.spark_sink.partitions import Partition
from shardmerge.spark_sink.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.row_topics import RowTopic
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from .contract import ROOT, Contract, IcebergKind, Kind, MySqlKind

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TIDB = os.environ.get("SHARDMERGE_TIDB", "")
"""``USER:PASSWORD@HOST:PORT/VERSION`` of a TiDB: it is held against the contract too."""
KINDS = ("mysql80", "mysql97", "mariadb1011", "iceberg", *(["tidb"] if TIDB else []))
DONE = JournalEntry("done")
servers = pytest.mark.parametrize("contract", ["mysql80", "mysql97", "mariadb1011"], indirect=True)
PACKET = 1 << 16


@pytest.fixture(scope="module")
def kind_of(stack: LocalStack) -> Iterator[Callable[[str], Kind]]:
    """The kind of that name, started at the first call."""
    kinds: dict[str, Kind] = {}
    folder = Path(tempfile.mkdtemp(prefix="contract-", dir=ROOT / ".local"))
    with ExitStack() as running:
        running.callback(shutil.rmtree, folder, ignore_errors=True)

        def start(name: str) -> Kind:
            if name == "mysql80":
                return MySqlKind(stack.ports.target)
            if name == "tidb":
                url = urlsplit(f"mysql://{TIDB}")
                address = MySqlAddress(
                    url.hostname or "", url.port or 4000, url.username or "", url.password or ""
                )
                return MySqlKind(0, "tidb", url.path.strip("/"), address)
            if name == "iceberg":
                iceberg = IcebergKind(folder / "warehouse")
                running.callback(iceberg.spark.stop)
                return iceberg
            server = running.enter_context(
                running_server(
                    name, folder / name, Ports.free().target, cache=ROOT / ".local" / "cache"
                )
            )
            kind, version = ("mariadb", "10.11") if "mariadb" in name else ("mysql", "9.7")
            return MySqlKind(server.port, kind, version)

        def kind(name: str) -> Kind:
            if name not in kinds:
                kinds[name] = start(name)
            return kinds[name]

        yield kind


@pytest.fixture(params=KINDS)
def contract(
    request: pytest.FixtureRequest, kind_of: Callable[[str], Kind], stack: LocalStack
) -> Iterator[Contract]:
    contract = Contract(kind_of(str(request.param)), stack)
    contract.topic.make_topic()
    yield contract
    contract.clean()


def test_what_row_topics_were_is_stored_by_the_present_writer_alone(contract: Contract) -> None:
    first = contract.start()
    assert first.target.state.row_topics() == {}
    one, two = RowTopic("id", 3), RowTopic("", 1)
    first.target.state.keep_row_topics(first.epoch, {"one": RowTopic("", 3), "two": two})
    second = contract.start()
    second.target.state.keep_row_topics(second.epoch, {"one": one})
    with pytest.raises(TargetError, match="took over"):
        first.target.state.keep_row_topics(first.epoch, {"two": one})
    assert second.target.state.row_topics() == {"one": one, "two": two}


@pytest.fixture
def small_packets(contract: Contract) -> Iterator[None]:
    """The server takes statements of ``PACKET`` from connections that are made from now on."""
    assert isinstance(contract.kind, MySqlKind)
    ((packet, can_load),) = contract.kind.session.query(
        "SELECT @@GLOBAL.max_allowed_packet, @@GLOBAL.local_infile"
    )
    contract.kind.execute(f"SET GLOBAL max_allowed_packet = {PACKET}, local_infile = 1")
    yield
    contract.kind.execute(f"SET GLOBAL max_allowed_packet = {packet}, local_infile = {can_load}")


def test_each_writer_gets_the_next_epoch(contract: Contract) -> None:
    first, second = contract.start(), contract.start()

    assert (first.epoch, second.epoch) == (1, 2)
    assert first.target.state.epoch() == second.target.state.epoch() == 2
    assert second.target.state.offsets() == {}
    assert second.target.state.rows() == {}


def test_a_statement_is_executed_once(contract: Contract) -> None:
    writer = contract.start()

    assert writer.execute(1, contract.create()) == DONE
    assert writer.execute(1, contract.create()) == DONE
    assert writer.execute(2, contract.add("w bigint unsigned")) == DONE
    assert writer.execute(2, contract.add("w bigint unsigned")) == DONE
    assert contract.columns() == ["id", "v", "n", "w"]
    again = contract.start()
    assert again.execute(2, contract.add("w bigint unsigned")) == DONE
    assert again.journal.load() == {
        (contract.target, 1, 0): DONE,
        (contract.target, 2, 0): DONE,
    }


def test_a_statement_that_does_not_apply_is_refused_until_it_does(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())

    entry = writer.execute(2, contract.rename("gone", "back"))

    assert entry.state == "refused" and "gone" in entry.error
    assert contract.columns() == ["id", "v", "n"]
    assert contract.start().journal.load()[contract.target, 2, 0] == entry
    writer = contract.start()
    assert writer.execute(3, contract.add("gone int")) == DONE
    assert writer.execute(2, contract.rename("gone", "back")) == DONE
    assert writer.journal.load()[contract.target, 2, 0] == DONE


def test_a_column_that_is_there_is_taken_when_it_fits(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    assert writer.execute(2, contract.add("w bigint")) == DONE

    assert writer.execute(3, contract.add("W int")) == DONE
    assert writer.execute(4, contract.drop("gone")) == DONE
    entry = writer.execute(5, contract.add("w varchar(9)"))

    assert entry.state == "refused" and "w is there already and does not fit" in entry.error
    assert contract.columns() == ["id", "v", "n", "w"]
    assert contract.start().journal.load()[contract.target, 5, 0] == entry


def test_a_table_that_is_there_is_taken_when_it_fits(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())

    assert writer.execute(9, contract.create()) == DONE
    wider = "create table t (id int not null primary key, v varchar(20), n int, x int)"
    other = Contract(contract.kind, contract.topic.stack, contract.name, wider)
    entry = writer.execute(10, other.create())
    assert entry.state == "refused" and "x" in entry.error


def test_rows_and_their_offsets_commit_together(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce(
        [contract.insert(id=n, v=f"v{n}", n=n) for n in range(5)]
        + [contract.topic.event("u", {"id": 1, "v": None, "n": -1})]
        + [contract.delete(id=2, v="v2", n=2), None, contract.delete(id=77, v="", n=0)]
    )

    result = writer.apply()

    assert contract.rows() == [(0, "v0", 0), (1, None, -1), (3, "v3", 3), (4, "v4", 4)]
    end = contract.topic.end_offset()
    assert (result.start_offset, result.next_offset, result.next_position) == (0, end, None)
    assert (result.rows, result.written, result.deleted, result.hold) == (8, 4, 2, None)
    assert writer.target.state.offsets() == {Partition(contract.topic.topic, 0): end}
    assert writer.target.state.rows() == {contract.target: 8}
    contract.topic.produce([contract.delete(id=0, v="v0", n=0), contract.insert(id=9, v="", n=0)])
    again = contract.start()
    assert again.target.state.offsets() == {Partition(contract.topic.topic, 0): end}
    assert again.apply().rows == 2
    assert contract.rows() == [(1, None, -1), (3, "v3", 3), (4, "v4", 4), (9, "", 0)]
    assert again.target.state.rows() == {contract.target: 10}


def test_a_range_without_rows_moves_its_offset(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([None])

    assert writer.apply().rows == 0
    end = contract.topic.end_offset()
    assert writer.target.state.offsets() == {Partition(contract.topic.topic, 0): end}


def test_the_same_task_is_not_applied_twice(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    task = writer.task()
    [first] = writer.run(task)
    assert isinstance(first, RangeResult)
    contract.topic.produce([contract.insert(id=1, v="b", n=2)])
    writer.apply()

    [failure] = writer.run(task)

    assert isinstance(failure, TaskFailure) and "another writer moved" in failure.message
    assert contract.rows() == [(1, "b", 2)]


def test_an_older_writer_neither_applies_nor_executes(contract: Contract) -> None:
    older = contract.start()
    older.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    task = older.task()
    newer = contract.start()

    [failure] = older.run(task)

    assert isinstance(failure, TaskFailure) and "another writer took over" in failure.message
    with pytest.raises(TargetError, match="another writer took over") as raised:
        older.execute(2, contract.add("w int"))
    assert not raised.value.retryable
    assert contract.rows() == [] and contract.columns() == ["id", "v", "n"]
    assert newer.target.state.offsets() == {}
    newer.apply()
    assert contract.rows() == [(1, "a", 1)]


def test_a_gate_stops_a_range_at_its_row(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    stop = contract.topic.next_place()
    contract.topic.produce([contract.insert(id=2, v="b", n=2)])
    second = contract.topic.end_offset() - 2

    result = writer.apply(stop=stop)

    assert result.next_offset == second and result.next_position is not None
    assert contract.rows() == [(1, "a", 1)]
    assert writer.apply().rows == 1
    assert contract.rows() == [(1, "a", 1), (2, "b", 2)]


def test_a_row_that_does_not_fit_is_held_and_those_before_it_applied(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce(
        [
            contract.insert(id=1, v="a", n=1),
            contract.insert(id=2, v="b", n=None),
            contract.insert(id=3, v="c", n=3),
        ]
    )

    result = writer.apply()

    assert result.hold is not None and result.hold.offset == 1 and "n" in result.hold.reason
    assert (result.next_offset, result.rows) == (1, 1)
    assert contract.rows() == [(1, "a", 1)]
    held = writer.apply()
    assert held.hold == result.hold and held.rows == 0


def test_rows_follow_added_renamed_dropped_and_widened_columns(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()

    for version, sql in enumerate(
        [
            contract.add("w int"), contract.rename("v", "text`2"), contract.drop("w"),
            contract.add("w varchar(9)"), contract.widen("n", "n bigint not null"),
        ], 2,
    ):  # fmt: skip
        assert writer.execute(version, sql) == DONE

    assert contract.rows() == [(1, "a", 1, None)]
    columns = "id int primary key, `text``2` varchar(20), n bigint not null, w varchar(9)"
    after = f"create table t ({columns})"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, after)
    contract.topic.place_from(5_000)
    contract.topic.produce([contract.insert(id=2, **{"text`2": "b", "n": 2**40, "w": "x"})])
    later = contract.start()
    later.apply()
    assert contract.rows() == [(1, "a", 1, None), (2, "b", 2**40, "x")]


def test_a_truncation_stops_a_range_until_its_offset_is_moved(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    before, after = contract.insert(id=1, v="a", n=1), contract.insert(id=2, v="b", n=2)
    contract.topic.produce([before, contract.truncation(), after])

    result = writer.apply()

    assert (result.next_offset, result.rows, result.truncated, result.hold) == (1, 1, True, None)
    assert writer.apply().truncated
    writer.target.journal_of_thread(writer.epoch).change_rows(f"DELETE FROM {contract.target.sql}")
    assert contract.rows() == []
    writer.move((0, 1, 2))
    assert not writer.apply().truncated
    assert contract.rows() == [(2, "b", 2)]


def test_offsets_move_forward_and_back_in_one_step(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n, v="a", n=n) for n in range(3)])
    writer.apply()
    topic, end = contract.topic.topic, contract.topic.end_offset()

    with pytest.raises(TargetError, match="another writer moved"):
        writer.move((0, end, 0), (0, 1, 2))
    assert writer.target.state.offsets() == {Partition(topic, 0): end}
    writer.move((0, end, 1), (1, 0, 7))
    assert writer.target.state.offsets() == {Partition(topic, 0): 1, Partition(topic, 1): 7}
    assert writer.target.state.rows() == {contract.target: 3}
    assert writer.apply().rows == 2
    contract.start()
    with pytest.raises(TargetError, match="another writer took over"):
        writer.move((0, end, 0))


def test_a_statement_changes_the_rows_of_one_shard_once(contract: Contract) -> None:
    columns = "id int primary key, v varchar(20), n int, d decimal(9,2), day date, _s varchar(194)"
    contract = Contract(
        contract.kind, contract.topic.stack, contract.name, f"create table t ({columns})"
    )
    one, two = ShardId("s", "a", "it's \\"), ShardId("s", "a", "its")
    writer = contract.start()
    assert writer.execute(1, contract.create()) == DONE
    names = ("id", "v", "n", "d", "day", "_s")
    rows = [(n, "V", n, Decimal("1.50"), None, str(one if n % 2 else two)) for n in range(4)]
    contract.topic.produce(
        contract.insert(**dict(zip(names, (*row[:3], "1.50", *row[4:]), strict=True)))
        for row in rows
    )
    writer.apply()
    assert contract.rows() == rows

    fill = contract.fill(
        one, v="value v'\\\n${env:HOME}", n="NULL", d="value -7.5", day="value 2020-02-03"
    )
    assert writer.change(2, fill) == DONE

    filled = ("v'\\\n${env:HOME}", None, Decimal("-7.50"), date(2020, 2, 3), str(one))
    assert contract.rows() == [rows[0], (1, *filled), rows[2], (3, *filled)]
    assert writer.change(3, contract.fill(one, v="value V", n="value 5")) == DONE
    later = contract.start()
    assert later.change(2, fill) == DONE
    assert [row[1:3] for row in contract.rows()] == [("V", 0), ("V", 5), ("V", 2), ("V", 5)]
    with pytest.raises(TargetError, match="another writer took over"):
        writer.change(4, contract.remove(two))
    with pytest.raises(TargetError, match="another writer took over"):
        writer.journal.change_rows(contract.remove(two).sql)
    assert later.change(4, contract.remove(two)) == DONE
    assert [row[0] for row in contract.rows()] == [1, 3]
    assert later.change(5, contract.remove(two)) == DONE
    assert contract.start().journal.load() == {(contract.target, v, 0): DONE for v in range(1, 6)}


@pytest.mark.parametrize("overwrites", [True, False])
def test_values_move_from_one_column_to_another(contract: Contract, overwrites: bool) -> None:
    text = "create table t (id int primary key, old int, new int)"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, text)
    writer = contract.start()
    assert writer.execute(1, contract.create()) == DONE
    values = [(1, 7, None), (2, None, 5), (3, 8, 9), (4, None, None)]
    contract.topic.produce(contract.insert(id=n, old=a, new=b) for n, a, b in values)
    writer.apply()

    _, old, new = contract.schema.columns
    move = copying(contract.target, old, new, [], overwrites=overwrites)
    assert writer.change(2, move) == DONE

    moved = [7, 5, 8, None] if overwrites else [7, 5, 9, None]
    assert [row[2] for row in contract.rows()] == moved
    assert contract.start().change(2, move) == DONE
    assert [row[2] for row in contract.rows()] == moved


def test_a_change_of_rows_that_the_target_cannot_make_is_refused(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    statement = contract.remove(ShardId("s", "a", "t"))

    entry = writer.change(2, statement)

    assert entry.state == "refused" and "_s" in entry.error
    with pytest.raises(TargetError, match="_s") as raised:
        writer.journal.change_rows(statement.sql)
    assert raised.value.statement and not raised.value.retryable
    writer.execute(3, contract.add("_s varchar(9)"))
    assert writer.change(2, statement) == DONE


def test_a_batch_large_enough_for_a_job_is_the_same(contract: Contract) -> None:
    count = 6_000
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n % 5_000, v=f"v{n}", n=n) for n in range(count)])
    writer.target.batches.start()

    result = writer.apply()

    assert (result.rows, result.written) == (count, 5_000)
    found = contract.rows()
    assert len(found) == 5_000
    assert found[0] == (0, "v5000", 5_000) and found[-1] == (4_999, "v4999", 4_999)


LARGE = "create table t (id int not null primary key, v longtext, b longblob, j json)"


@servers
@pytest.mark.usefixtures("small_packets")
def test_a_row_larger_than_a_statement_may_be_is_loaded(contract: Contract) -> None:
    contract = Contract(contract.kind, contract.topic.stack, contract.name, LARGE)
    writer = contract.start()
    writer.execute(1, contract.create())
    text, data = "it's\t\\\n\0\U0001f600" * PACKET, bytes(range(256)) * (PACKET // 300)
    text = text[: 2 * PACKET]
    contract.topic.produce(
        [
            contract.insert(id=1, v="a", b=None, j="{}"),
            contract.insert(id=2, v=text, b=None, j=None),
            contract.insert(id=3, v=None, b=base64.b64encode(data).decode(), j=None),
        ]
    )

    result = writer.apply()

    assert (result.hold, result.rows) == (None, 3)
    found = {row[0]: row[1:3] for row in contract.rows()}
    assert found == {1: ("a", None), 2: (text, None), 3: (None, data)}


@servers
@pytest.mark.usefixtures("small_packets")
@pytest.mark.parametrize("can_load", [True, False])
@pytest.mark.parametrize("name", ["v", "b", "j"])
def test_a_row_larger_than_a_packet_is_whole_or_held(
    contract: Contract, name: str, can_load: bool
) -> None:
    contract = Contract(contract.kind, contract.topic.stack, contract.name, LARGE)
    assert isinstance(contract.kind, MySqlKind)
    is_mariadb = contract.kind.session.is_mariadb
    contract.kind.execute(f"SET GLOBAL local_infile = {int(can_load)}")
    writer = contract.start()
    writer.execute(1, contract.create())
    text = "x" * (3 * PACKET)
    value = {"v": text, "b": base64.b64encode(text.encode()).decode(), "j": f'{{"a":"{text}"}}'}
    empty = {"v": None, "b": None, "j": None}
    contract.topic.produce(
        contract.insert(id=n, **(empty | ({name: value[name]} if n == 2 else {})))
        for n in range(1, 5)
    )

    result = writer.apply()

    # Only MySQL's JSON has a bound of its own: measured, UNHEX has none.
    is_held = not can_load or (name == "j" and not is_mariadb)
    assert (result.hold is not None) is is_held
    if result.hold is not None:
        assert "max_allowed_packet" in result.hold.reason
        assert "raise max_allowed_packet" in result.hold.hint
        assert result.hold.offset == result.next_offset == 1
        assert [row[0] for row in contract.rows()] == [1]
        assert writer.apply().hold == result.hold
        contract.kind.execute(f"SET GLOBAL max_allowed_packet = {64 << 20}")
        # A connection keeps the value that it began with, and is given up when that is too small.
        [outcome] = writer.run(writer.task())
        assert isinstance(outcome, RangeResult) or writer.apply().hold is None
    [row] = [row for row in contract.rows() if row[0] == 2]
    found = dict(zip("vbj", row[1:], strict=True))
    stored = {"v": text, "b": text.encode()}
    if name == "j":
        assert json.loads(found["j"]) == {"a": text}
    else:
        assert found[name] == stored[name]
    assert len(contract.rows()) == 4


@servers
@pytest.mark.usefixtures("small_packets")
@pytest.mark.parametrize("size", [PACKET - 1, PACKET, 40 << 20])
def test_a_statement_larger_than_a_packet_is_not_tried_again(contract: Contract, size: int) -> None:
    assert isinstance(contract.kind, MySqlKind)
    session = MySqlSession(contract.kind.session.address)
    session.execute("DO '".ljust(PACKET - 3, "x") + "'")

    with pytest.raises(TargetError, match="larger than max_allowed_packet") as raised:
        session.execute("DO '".ljust(size - 1, "x") + "'")

    assert (raised.value.number, raised.value.retryable) == (1153, False)
    assert session.query("SELECT 1") == [(1,)]
    session.close()


@servers
def test_rows_without_a_key_are_found_by_their_json(contract: Contract) -> None:
    ddl = "create table t (id int, j json)"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, ddl)
    writer = contract.start()
    writer.execute(1, contract.create())
    values = ['{"a": [1, "it\'s \\\\ \\n ä"]}', '{"a":"x"}', '{"a":"X"}', "null", None, '"y"']
    contract.topic.produce(contract.insert(id=1, j=value) for value in values)
    assert writer.apply().hold is None
    # The connector writes what it read from a snapshot with blanks, and without from the binlog.
    gone = ['{"a":[1,"it\'s \\\\ \\n ä"]}', '{"a": "x"}', "null", None]
    contract.topic.produce(contract.delete(id=1, j=value) for value in gone)

    result = writer.apply()

    assert (result.hold, result.deleted) == (None, 4)
    left = sorted(row[1].replace(" ", "") for row in contract.rows())
    assert left == ['"y"', '{"a":"X"}']
