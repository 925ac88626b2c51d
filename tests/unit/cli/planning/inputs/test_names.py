"""How options and rollout files name shards."""

from __future__ import annotations

import pytest

from shardmerge.cli.planning.inputs.names import expanded, named_shards
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId
from tests.unit.cli.planning.pipelines import pipeline

LIVE = [ShardId("s1", "app", "t_1"), ShardId("s1", "app", "t_2"), ShardId("s2", "app", "t_1")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ["a"]),
        ("t_{1..3}", ["t_1", "t_2", "t_3"]),
        ("t_{08..10}", ["t_08", "t_09", "t_10"]),
        ("{a,b}{1..2}", ["a1", "a2", "b1", "b2"]),
        ("t_{3..1}", []),
    ],
)
def test_braces_stand_for_several_texts(text: str, found: list[str]) -> None:
    assert list(expanded(text)) == found


def test_wildcards_name_live_shards_each_once() -> None:
    assert named_shards(["*"], LIVE, pipeline(), "x") == LIVE
    assert named_shards(["s2/*", "s?/app.t_1"], LIVE, pipeline(), "x") == [LIVE[2], LIVE[0]]


def test_a_shard_that_is_not_there_yet_can_be_named() -> None:
    new = ShardId("s2", "app", "t_9")
    assert named_shards([str(new)], LIVE, pipeline(), "x") == [new]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s3/app.t_1", "no source 's3'"),
        ("s1/other.*", "no live shard fits"),
        ("t_1", "a shard is source/database.table"),
    ],
)
def test_a_name_of_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        named_shards([text], LIVE, pipeline(), "x")
