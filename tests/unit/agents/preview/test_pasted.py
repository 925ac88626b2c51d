from __future__ import annotations

import pytest

from shardmerge.agents.preview.pasted import MOST_STEPS, pasted_steps
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId

ONE, TWO = ShardId("s1", "app", "t_1"), ShardId("s2", "app", "t`")


@pytest.mark.parametrize(
    ("sql", "first", "second"),
    [
        ("ALTER TABLE {table} DROP a;", "ALTER TABLE `t_1` DROP a", "ALTER TABLE `t``` DROP a"),
        ("ALTER TABLE x DROP a", "ALTER TABLE `t_1` DROP a", "ALTER TABLE `t``` DROP a"),
        ("alter table `d`.`x` drop a ; ", "alter table `t_1` drop a", "alter table `t``` drop a"),
        ("DROP TABLE {table}", "DROP TABLE `t_1`", "DROP TABLE `t```"),
        ("RENAME TABLE a TO b", "RENAME TABLE a TO b", "RENAME TABLE a TO b"),
    ],
)  # fmt: skip
def test_each_shard_executes_the_statement_on_its_own_table(sql, first, second):
    steps = pasted_steps(sql, [ONE, TWO])
    assert [(step.shard, step.sql) for step in steps] == [(ONE, first), (TWO, second)]


@pytest.mark.parametrize(
    ("sql", "shards", "what"),
    [
        (" ; ", [ONE], "no statement"),
        ("ALTER TABLE x ADD a INT", [], "no shard"),
        ("ALTER TABLE x ADD a INT", [ONE] * (MOST_STEPS + 1), "201 shards are too many"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_what_helps(sql, shards, what):
    with pytest.raises(ConfigError, match=what) as refused:
        pasted_steps(sql, shards)
    assert refused.value.hint
    assert refused.value.code == "SM-5604"
