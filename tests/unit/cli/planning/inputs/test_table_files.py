"""Files of CREATE TABLE, as skeema, mysqldump and Rails write them."""

from __future__ import annotations

import pytest

from shardmerge.cli.planning.inputs.table_files import table_like, tables_of
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId

CONTEXT = ServerContext()
DUMP = """
/*!40101 SET @saved_cs_client = @@character_set_client */;
DROP TABLE IF EXISTS `t_1`;
CREATE TABLE `t_1` (
  `id` bigint NOT NULL AUTO_INCREMENT, -- the key
  PRIMARY KEY (`id`)
) ENGINE=InnoDB;
create table if not exists app.t_2 (id INT PRIMARY KEY);
/*!40000 ALTER TABLE `t_2` DISABLE KEYS */;
INSERT INTO `schema_migrations` (version) VALUES ('20260101');
"""


def test_a_dump_of_a_structure_gives_its_tables() -> None:
    found = list(tables_of({"structure.sql": DUMP}, "s1", "app", CONTEXT))
    assert [(str(each.shard), each.origin) for each in found] == [
        ("s1/app.t_1", "structure.sql:4"),
        ("s1/app.t_2", "structure.sql:8"),
    ]
    assert found[1].sql.startswith("create table t_2 (")


def test_a_named_shard_has_the_table_of_a_file_whatever_its_name_there() -> None:
    shard = ShardId("s1", "app", "t_7")
    found = table_like("CREATE TABLE IF NOT EXISTS db . `any` (id INT)", "f", shard, CONTEXT)
    assert found.sql == "CREATE TABLE `t_7` (id INT)"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ALTER TABLE t ADD a INT", "it is no CREATE TABLE"),
        ("CREATE TABLE t LIKE u", "LIKE names another table"),
        ("CREATE TABLE t (", "f.sql:1: "),
    ],
)
def test_other_statements_are_refused_with_their_place(sql: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list(tables_of({"f.sql": sql}, "s1", "app", CONTEXT))


def test_a_file_for_a_named_shard_has_one_table() -> None:
    with pytest.raises(ConfigError, match="has 2 CREATE TABLE statements"):
        table_like(DUMP, "f", ShardId("s1", "app", "t_7"), CONTEXT)
