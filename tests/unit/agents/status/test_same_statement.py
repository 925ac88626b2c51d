from __future__ import annotations

import pytest

from shardmerge.agents.status.same_statement import same_statement
from shardmerge.schemas.model.names import ShardId

ONE, TWO = ShardId("s1", "app", "orders_1"), ShardId("s2", "app_2", "orders_12")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("ALTER TABLE orders_1 ADD INDEX (note)", "alter table  `orders_12`\n ADD INDEX(`Note`);"),
        ("ALTER TABLE app.orders_1 ADD INDEX (a)", "ALTER TABLE `app_2`.`orders_12` ADD INDEX (a)"),
        (
            "ALTER TABLE orders_1 ADD INDEX (a)",
            "/* tool */ ALTER TABLE orders_12 ADD INDEX (a) # x",
        ),
        ("CREATE INDEX i ON orders_1 (a)", "CREATE INDEX i ON app_2.orders_12 (a)"),
        ("CREATE INDEX orders_1_a ON orders_1 (a)", "CREATE INDEX orders_12_a ON orders_12 (a)"),
        ("RENAME TABLE _orders_1_gho TO orders_1", "RENAME TABLE _orders_12_gho TO orders_12"),
        ("ALTER TABLE orders_1 COMMENT 'it''s'", "ALTER TABLE orders_12 COMMENT 'it''s'"),
    ],
)
def test_the_same_statement_on_two_shards_has_one_text(one, two):
    assert same_statement(one, ONE) == same_statement(two, TWO)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("ALTER TABLE orders_1 ADD INDEX (a)", "ALTER TABLE orders_12 ADD INDEX (b)"),
        (
            "ALTER TABLE orders_1 ADD INDEX (orders_1)",
            "ALTER TABLE orders_12 ADD INDEX (orders_12)",
        ),
        ("ALTER TABLE orders_1 COMMENT 'A'", "ALTER TABLE orders_12 COMMENT 'a'"),
        ("ALTER TABLE orders_1 COMMENT 'a b'", "ALTER TABLE orders_12 COMMENT 'ab'"),
        ("ALTER TABLE orders_1 COMMENT '-- a'", "ALTER TABLE orders_12 COMMENT '-- b'"),
        ("ALTER TABLE orders_1 DROP INDEX ab", "ALTER TABLE orders_12 DROP INDEX a b"),
        ("ALTER TABLE orders_1 FORCE", "ALTER TABLE orders_1 FORCE"),
        ("/*!80000 ALTER TABLE orders_1 FORCE */", "/*!90000 ALTER TABLE orders_12 FORCE */"),
    ],
)
def test_other_statements_have_other_texts(one, two):
    assert same_statement(one, ONE) != same_statement(two, TWO)


def test_a_statement_that_ends_within_a_text_or_a_name_has_a_text():
    for ddl in ("", "ALTER TABLE t COMMENT 'a", "ALTER TABLE `t", "/* a", "app."):
        assert isinstance(same_statement(ddl, ONE), str)
