from __future__ import annotations

from dataclasses import replace

from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.sources.chunk_task import ChunkTask, chunk_task
from shardmerge.spark_sink.targets.mysql.tasks.staging import Copying
from tests.unit.spark_sink.loading.loads import at
from tests.unit.spark_sink.sources.test_chunk_task import order

from .test_snapshot_task import snapshot_order

PIECE = "FROM `c`.`s` AS s WHERE s.shardmerge_row > 4 AND s.shardmerge_row <= 9"


def statements(task: ChunkTask, *, replace: bool = False) -> list[str]:
    copying = Copying(task, at(70), "`c`.`s`", (4, 9))
    return list(copying.statements(replace=replace, is_mariadb=False))


def keyed() -> ChunkTask:
    of = replace(snapshot_order(), stream=order().stream)
    shard = ("_shard", ConstantValue(Form.TEXT, "s1/app.t_1"))
    return replace(chunk_task(of), constants=(shard,), target_key=("id", "_shard"))


def test_rows_without_a_key_are_inserted() -> None:
    assert statements(chunk_task(snapshot_order())) == [
        f"INSERT INTO `merged`.`t` (`text`, `id`) SELECT s.`c0`, s.`c1` {PIECE}"
    ]


def test_rows_without_a_key_get_places_of_their_own() -> None:
    task = replace(chunk_task(snapshot_order()), position="_place")
    assert statements(task) == [
        "INSERT INTO `merged`.`t` (`text`, `id`, `_place`) SELECT s.`c0`, s.`c1`,"
        f" CONCAT('s1/binlog.000001:70 app.t_1:', s.shardmerge_row) {PIECE}"
    ]


def test_rows_with_a_key_replace_those_with_the_same_key() -> None:
    assert statements(keyed(), replace=True) == [
        "REPLACE INTO `merged`.`t` (`text`, `id`, `_shard`)"
        f" SELECT s.`c0`, s.`c1`, 's1/app.t_1' {PIECE}"
    ]


def test_beside_another_unique_key_rows_with_the_same_key_are_deleted_first() -> None:
    deletes, inserts = statements(keyed())
    assert deletes == (
        "DELETE `merged`.`t` FROM `merged`.`t` INNER JOIN `c`.`s` AS s ON"
        " `merged`.`t`.`id` = s.`c1` AND `merged`.`t`.`_shard` = 's1/app.t_1'"
        " WHERE s.shardmerge_row > 4 AND s.shardmerge_row <= 9"
    )
    assert inserts.startswith("INSERT INTO")
