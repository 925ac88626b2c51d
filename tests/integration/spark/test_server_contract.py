"""What a server takes: large rows, many rows with shapes, JSON without a key, times in keys."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.planning.ranges import RangeResult
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.connection import close_connections
from tests.breadth import with_further

from .contract import Contract, Kind, MySqlKind

PACKET = 1 << 16
LARGE = "create table t (id int not null primary key, v longtext, b longblob, j json)"


@pytest.fixture(params=with_further(["mysql80", "mariadb1011"], "mysql97"))
def kind(request: pytest.FixtureRequest, kind_of: Callable[[str], Kind]) -> Kind:
    return kind_of(str(request.param))


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


@pytest.mark.usefixtures("small_packets")
@pytest.mark.parametrize(
    "columns",
    [
        "id int not null primary key, v point not null",
        "id int not null primary key, v geometry not null",
        "id int not null, v point not null",
        "id int not null primary key, v point, g point as (v) stored not null",
    ],
    ids=["point", "geometry", "keyless", "generated"],
)
def test_many_rows_with_a_shape_that_is_never_null_arrive(contract: Contract, columns: str) -> None:
    assert isinstance(contract.kind, MySqlKind)
    if contract.kind.session.is_mariadb:
        columns = columns.replace(" stored not null", " stored")
    ddl = f"create table t ({columns})"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, ddl)
    assert isinstance(contract.kind, MySqlKind)
    writer = contract.start()
    writer.execute(1, contract.create())
    names = [column.name for column in contract.schema.columns[1:]]
    wkb = {n: struct.pack("<BIdd", 1, 1, n, -n) for n in range(LINES_FROM_ROWS + 100)}
    contract.topic.produce(
        contract.insert(id=n, **{name: _shape_of(shape) for name in names})
        for n, shape in wkb.items()
    )

    result = writer.apply()

    assert (result.hold, result.rows) == (None, len(wkb))
    found = contract.kind.session.query(
        f"SELECT id, {', '.join(f'ST_AsBinary({name})' for name in names)}"
        f" FROM {contract.target.sql} ORDER BY id"
    )
    assert found == [(n, *[shape] * len(names)) for n, shape in wkb.items()]


@pytest.mark.usefixtures("small_packets")
def test_a_shape_larger_than_a_packet_is_loaded_or_held(contract: Contract) -> None:
    ddl = "create table t (id int not null primary key, v linestring not null)"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, ddl)
    assert isinstance(contract.kind, MySqlKind)
    writer = contract.start()
    writer.execute(1, contract.create())
    # The second is longer than what surely fits, and fits.
    points = {1: 2, 2: PACKET // 50, 3: PACKET // 10, 4: 2}
    wkb = {
        n: struct.pack("<BII", 1, 2, count)
        + b"".join(struct.pack("<dd", x, n) for x in range(count))
        for n, count in points.items()
    }
    contract.topic.produce(contract.insert(id=n, v=_shape_of(shape)) for n, shape in wkb.items())

    result = writer.apply()

    def found() -> list[tuple[object, ...]]:
        assert isinstance(contract.kind, MySqlKind)
        return contract.kind.session.query(
            f"SELECT id, ST_AsBinary(v) FROM {contract.target.sql} ORDER BY id"
        )

    if result.hold is not None:
        # MySQL 8.0.15 loads no shape that is NOT NULL, and a statement of that size is too large.
        ((version,),) = contract.kind.session.query("SELECT VERSION()")
        assert version.startswith("8.0.") and "[1364]" in result.hold.reason
        assert result.hold.offset == result.next_offset == 2
        assert found() == [(n, shape) for n, shape in wkb.items() if n < 3]
        contract.kind.execute(f"SET GLOBAL max_allowed_packet = {64 << 20}")
        close_connections()
        print(result.hold)
        assert writer.apply().hold is None
    assert found() == [*wkb.items()]


def _shape_of(wkb: bytes) -> dict[str, str | None]:
    """As Debezium writes it."""
    return {"wkb": base64.b64encode(wkb).decode(), "srid": None}


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


@pytest.mark.parametrize("kind", ["mariadb1011"], indirect=True)
def test_a_key_with_a_uuid_is_found(contract: Contract) -> None:
    ddl = "create table t (k char(36) not null primary key, n char(36))"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, ddl)
    uuid = ColumnType("uuid")
    columns = tuple(replace(column, type=uuid) for column in contract.schema.columns)
    contract.schema = replace(contract.schema, columns=columns)
    writer = contract.start()
    writer.execute(1, contract.create())
    texts = [
        f"{n:08x}-0000-{version}000-a000-00000000000{n}" for n in range(4) for version in (1, 4)
    ]
    contract.topic.produce(contract.insert(k=text, n=text) for text in texts)
    assert writer.apply().hold is None

    contract.topic.produce(contract.delete(k=text, n=text) for text in texts[2:])
    result = writer.apply()

    assert (result.hold, result.deleted) == (None, len(texts) - 2)
    assert [tuple(map(str, row)) for row in contract.rows()] == [(t, t) for t in texts[:2]]


@pytest.mark.parametrize("key", ["k", "k, n"])
@pytest.mark.parametrize("kind_of_time", ["time", "time(3)", "time(6)"])
def test_a_key_with_a_time_is_found(contract: Contract, kind_of_time: str, key: str) -> None:
    ddl = f"create table t (k {kind_of_time} not null, n int not null, primary key ({key}))"
    contract = Contract(contract.kind, contract.topic.stack, contract.name, ddl)
    writer = contract.start()
    writer.execute(1, contract.create())
    unit = 1_000_000 if kind_of_time == "time" else 1_180_000
    contract.topic.produce(contract.insert(k=n * unit, n=n) for n in range(-3, 4))
    assert writer.apply().hold is None

    for gone in ([1], [-3, 0, 2]):
        contract.topic.produce(contract.delete(k=n * unit, n=n) for n in gone)
        result = writer.apply()
        assert (result.hold, result.deleted) == (None, len(gone))

    assert sorted(row[1] for row in contract.rows()) == [-2, -1, 3]
