from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from shardmerge.cli.rebuild.beginning import Changes, begin
from shardmerge.cli.rebuild.rebuild_lake import RebuildLake
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.process.spark_session import SparkStart
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from tests.strategies import table
from tests.target_statements import written
from tests.unit.spark_sink.rebuilding.test_rebuild_record import TARGET
from tests.unit.spark_sink.targets.test_kinds import CATALOG, pipeline

FIRST = table("create table t (id int not null primary key, v varchar(20) not null, gone int)")


def statements() -> list[TargetStatement]:
    spark = SparkDialect()
    [wide, more] = table("create table t (id bigint not null, n decimal(5,2))").columns
    found = [
        spark.create_table(TARGET, FIRST),
        spark.add_column(TARGET, more),
        spark.change_column(TARGET, FIRST.columns[0], wide, in_key=True),
        spark.rename_column(TARGET, FIRST.columns[1], "w"),
        spark.drop_column(TARGET, FIRST.columns[2]),
        spark.add_column(TARGET, FIRST.columns[2]),
    ]
    return [written(each.sql) for made in found if isinstance(made, tuple) for each in made]


def test_the_decided_table_is_what_the_executed_statements_make() -> None:
    lake = pipeline(Target("", 0, "", "", kind="iceberg", version="1.12.0", catalog=CATALOG))
    settings = SinkSettings(Path())
    opened = IcebergTarget(settings, lake, SparkStart(lambda: None, "nothing"))
    server = RebuildLake(settings, lake, TARGET, opened)
    known = TargetDecisions(TARGET)
    known.statements |= {StatementKey(n, 0): each for n, each in enumerate(statements(), 1)}
    assert len(known.statements) == 6
    executed = set(known.statements) - {StatementKey(6, 0)}
    found = server.decided_table(known, executed)
    assert found is not None
    assert [(column.name, column.nullable) for column in found.columns] == [
        ("id", False), ("w", False), ("n", True),
    ]  # fmt: skip
    [made] = SparkDialect().create_table(TARGET, found)  # type: ignore[misc]
    assert made.sql == (
        "CREATE TABLE `merged`.`t` (`id` bigint NOT NULL, `w` string NOT NULL, `n` decimal(5,2))"
        " USING iceberg"
    )
    assert not server.is_cut_over()
    server.close()


def test_other_origin_columns_are_refused_before_anything_is_read() -> None:
    lake = pipeline(Target("", 0, "", "", kind="iceberg", version="1.12.0", catalog=CATALOG))
    origin = Origin((OriginColumn(OriginPart.SHARD, "_s"),), in_keys=True)
    unread = cast(Any, None)
    found = begin(
        lake, TARGET, unread, unread, by="olga", only_source_rows=False,
        changes=Changes(None, origin), patience_s=0,
    )  # fmt: skip
    assert isinstance(found, tuple)
    assert [obstacle.code for obstacle in found] == ["SM-6531"]
