"""How often topics are described: thousands of them take a while."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import pytest

from shardmerge.spark_sink.kafka import offsets
from shardmerge.spark_sink.kafka.offsets import DescribedTopics
from shardmerge.spark_sink.kafka.row_topics import RowTopic


class Brokers:
    """Has these topics, and notes what it was asked for."""

    def __init__(self, **topics: RowTopic) -> None:
        self.topics = topics
        self.asked: list[set[str]] = []

    def described(self, names: Collection[str]) -> dict[str, RowTopic]:
        self.asked.append(set(names))
        return {name: self.topics[name] for name in names if name in self.topics}


ONE, TWO = RowTopic("one", 1), RowTopic("two", 1)


def test_only_topics_that_are_new_or_were_changed_are_described() -> None:
    brokers = Brokers(a=ONE, b=TWO)
    described = DescribedTopics(cast(Any, brokers))
    described.renew({"a": 1})
    described.renew({"a": 1})
    described.renew({"a": 1, "b": 1})
    assert brokers.asked == [{"a"}, {"b"}]
    assert described.row_topics == {"a": ONE, "b": TWO}

    brokers.topics["a"] = grown = RowTopic("one", 4)
    described.renew({"a": 4, "b": 1})
    assert brokers.asked[2:] == [{"a"}]
    assert described.row_topics == {"a": grown, "b": TWO}

    del brokers.topics["b"]
    described.renew({"a": 4, "b": 2})
    assert described.row_topics == {"a": grown}, "gone since it was listed"
    described.renew({})
    assert described.row_topics == {}


def test_what_is_described_anew_is_news_until_it_is_taken() -> None:
    brokers = Brokers(a=ONE, b=TWO)
    described = DescribedTopics(cast(Any, brokers))
    described.renew({"a": 1, "c": 0})
    assert described.news == {"a", "c"}, "also what does not exist: it may have existed"
    described.news = set()
    described.renew({"a": 1, "c": 0})
    described.take({"a"}, {"a": ONE})
    assert described.news == set()
    described.take({"b"}, {"b": TWO})
    assert described.news == {"b"}
    described.take({"a"}, {})
    assert (described.news, described.row_topics) == ({"a", "b"}, {"b": TWO})
    described.news = set()
    described.renew({"b": 1, "c": 0, "d": 0})
    assert described.news == {"b", "d"}, "listed for the first time"


def test_a_topic_that_was_made_anew_is_noticed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "_DESCRIBE_S", 0.0)
    monkeypatch.setattr(offsets, "_DESCRIBE_SHARE", 0)
    brokers = Brokers(a=ONE)
    described = DescribedTopics(cast(Any, brokers))
    described.renew({"a": 1})
    brokers.topics["a"] = TWO
    described.renew({"a": 1})
    assert described.row_topics == {"a": TWO}
