from __future__ import annotations

import pytest

from shardmerge.schemas.model.origin import OriginPart
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.loading.table_shape import difference
from tests.strategies import table

BASE = "id int, a varchar(9) default 'x', PRIMARY KEY (id)"


def expected(sql: str = BASE) -> list[ShardColumn]:
    return [ShardColumn(f"{c.name}#1", c) for c in table(f"CREATE TABLE t ({sql})").columns]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (BASE, ""),
        ("id int, a varchar(9) default 'y' comment 'c', KEY (a), PRIMARY KEY (id)", ""),
        ("ID int, a varchar(9), PRIMARY KEY (ID)", ""),
        ("id int, PRIMARY KEY (id)", "column a is not there"),
        ("id int, a varchar(9), b int, PRIMARY KEY (id)", "column b is not expected"),
        ("a varchar(9), id int, PRIMARY KEY (id)", "the columns have another order"),
        ("id int, a varchar(9), PRIMARY KEY (id, a)", "the primary key is (id, a), not (id)"),
        ("id int, a varchar(9) as ('x'), PRIMARY KEY (id)", "column a is generated"),
    ],
)
def test_what_differs_is_said(shown: str, said: str) -> None:
    assert difference(expected(), ["id"], table(f"CREATE TABLE t ({shown})")) == said


def test_another_type_is_another_shape() -> None:
    shown = table("CREATE TABLE t (id int, a varchar(9) charset latin1, PRIMARY KEY (id))")
    assert difference(expected(), ["id"], shown).startswith("column a is varchar(9)")


def test_origin_columns_are_in_no_shard() -> None:
    origin = ShardColumn(OriginPart.SHARD.column_id, Column("_shard", ColumnType("varchar", 9)))
    columns = [*expected(), origin]
    assert difference(columns, ["id", "_shard"], table(f"CREATE TABLE t ({BASE})")) == ""
