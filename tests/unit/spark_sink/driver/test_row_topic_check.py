"""Row topics that are new, that are others, or that are gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import ContractError, StackError
from shardmerge.spark_sink.driver.row_topic_check import GONE_S, RowTopicCheck
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from tests.unit.spark_sink.decided import A, decision, folded

NAME = "s1.app.a"


class World:
    """What the intake has listed, and what the target has stored."""

    def __init__(self, **stored: RowTopic) -> None:
        self.intake = SimpleNamespace(
            decisions=folded(decision(1, A, 10)),
            described=SimpleNamespace(
                row_topics={NAME: RowTopic("one", 2)}, take_news=self.take_news
            ),
            watermarks=SimpleNamespace(partitions={NAME: 2}),
        )
        self.stored = stored
        self.news = {NAME}
        self.kept: list[dict[str, RowTopic]] = []
        self.now = 0.0
        self.check = RowTopicCheck(
            cast(Any, self.intake), cast(Any, self), epoch=3, clock=lambda: self.now
        )
        self.check.load()

    def take_news(self) -> set[str]:
        news, self.news = self.news, set()
        return news

    def row_topics(self) -> dict[str, RowTopic]:
        return self.stored

    def keep_row_topics(self, epoch: int, topics: dict[str, RowTopic]) -> None:
        assert epoch == 3
        self.kept.append(dict(topics))


def test_a_new_topic_is_stored_once() -> None:
    world = World()
    world.check.compare()
    world.check.compare()
    world.news = {NAME}
    world.check.compare()
    assert world.kept == [{NAME: RowTopic("one", 2)}]


def test_a_topic_that_was_made_anew_ends_the_sink() -> None:
    world = World(**{NAME: RowTopic("another", 2)})
    with pytest.raises(ContractError):
        world.check.compare()


def test_topics_of_which_there_is_no_news_are_not_compared() -> None:
    world = World(**{NAME: RowTopic("another", 2)})
    world.news = {"s1.app.b"}
    world.check.compare()
    assert world.kept == []


def test_a_topic_that_is_gone_is_looked_for_before_the_sink_ends() -> None:
    world = World(**{NAME: RowTopic("one", 2)})
    world.intake.described.row_topics = {}
    for world.now in (0.0, GONE_S - 0.1):
        with pytest.raises(StackError, match="looked for again"):
            world.check.compare()
    world.intake.described.row_topics = {NAME: RowTopic("one", 2)}
    world.check.compare()
    world.intake.described.row_topics, world.news = {}, {NAME}
    world.now = 2 * GONE_S
    with pytest.raises(StackError):
        world.check.compare()
    world.now = 3 * GONE_S
    with pytest.raises(ContractError):
        world.check.compare()
