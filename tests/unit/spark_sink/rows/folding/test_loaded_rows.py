from __future__ import annotations

from shardmerge.spark_sink.rows.folding.loaded_rows import LoadedColumn, LoadedRows
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.server_values import server_reader
from shardmerge.spark_sink.targets.mysql.lines.load_lines import LoadLines
from tests.strategies import table

TABLE = table("CREATE TABLE t (id int, f float, day date, s varchar(9), w decimal(9,2))")
TARGETS = {"id": "id", "f": "f2", "day": "day", "s": "s", "w": ""}
COLUMNS = tuple(
    LoadedColumn(c.name, c.type, TARGETS[c.name], server_reader(c)) for c in TABLE.columns
)
SHARD = (("_shard", ConstantValue(Form.TEXT, "s1/app.t")),)
ROWS = [
    ("1", "0.5", "2020-01-02", "a\tb", "1.00"),
    ("2", None, "0000-00-00", "b", "2.50"),
    ("3", "1", None, None, None),
]


def ids(where: str) -> list[int]:
    batch = LoadedRows(COLUMNS, ("id",), where).batch(ROWS)
    return [] if batch is None else list(batch.upserts[0].values[0])


def test_rows_become_values_of_the_targets_columns() -> None:
    batch = LoadedRows(COLUMNS, ("id",), constants=SHARD).batch(ROWS)
    assert batch is not None
    (block,) = batch.upserts
    assert batch.key == ("id",)
    assert batch.deletes is None
    assert block.names == ("id", "f2", "day", "s", "_shard")
    assert [list(values) for values in block.values] == [
        [1, 2, 3],
        [0.5, None, 1.0],
        [18_263, None, None],
        ["a\tb", "b", None],
        ["s1/app.t"] * 3,
    ]
    assert block.has_nulls == (False, True, True, True, False)


def test_rows_become_lines_for_a_load() -> None:
    batch = LoadedRows(COLUMNS, ("id",), constants=SHARD).batch(ROWS, LoadLines(is_mariadb=False))
    assert batch is not None
    (block,) = batch.upserts
    assert block.rows == len(block.lines) == 3
    assert block.lines[0].split(b"\t")[:3] == [b"1", b"0.5", b"2020-01-02"]
    assert block.lines[2].endswith(b"\\N\t\\N\ts1/app.t")
    assert [list(values) for values in block.values] == [[1, 2, 3], [], [], [], []]


def test_the_condition_counts_as_on_rows_of_the_stream() -> None:
    assert ids("w >= 2.5") == [2]
    assert ids("f = 0.5 OR f = 1") == [1, 3]
    assert ids("day = '2020-01-02'") == [1]
    assert ids("day IS NULL") == [2, 3]  # the stream gives NULL for this zero date
    assert ids("s LIKE 'A%'") == []
    assert ids("id IN (1, 3)") == [1, 3]


def test_no_rows_are_no_batch() -> None:
    assert LoadedRows(COLUMNS, ("id",)).batch([]) is None
