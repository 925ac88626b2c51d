"""What a row topic was when it was first read, against what it is."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ContractError
from shardmerge.spark_sink.kafka.row_topics import (
    RowTopic,
    gone_error,
    gone_topics,
    live_topics,
    topics_to_store,
)
from tests.unit.spark_sink.decided import A, B, C, decision, folded

KNOWN = {"t": RowTopic("one", 2)}


def test_a_topic_that_is_read_for_the_first_time_is_taken_as_it_is() -> None:
    there = {"t": RowTopic("one", 2), "old": RowTopic("", 1)}
    assert topics_to_store({}, there, {"t"}) == there


def test_a_topic_that_is_as_it_was_is_not_stored_again() -> None:
    assert topics_to_store(KNOWN, KNOWN, {"t"}) == {}


def test_a_topic_that_was_made_anew_is_an_error_that_names_both() -> None:
    with pytest.raises(ContractError, match=r"topic t .*\btwo\b.*\bone\b") as error:
        topics_to_store(KNOWN, {"t": RowTopic("two", 2)}, {"t"})
    assert "another pipeline" in error.value.hint


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("topic_id", ["one", ""])
def test_another_number_of_partitions_is_an_error(partitions: int, topic_id: str) -> None:
    with pytest.raises(ContractError, match=f"has {partitions} partitions, .* had 2 ") as error:
        topics_to_store(KNOWN, {"t": RowTopic(topic_id, partitions)}, {"t"})
    assert "another pipeline" in error.value.hint


def test_without_an_id_only_the_number_of_partitions_counts() -> None:
    assert topics_to_store(KNOWN, {"t": RowTopic("", 2)}, {"t"}) == {}
    with_id = {"t": RowTopic("two", 2)}
    assert topics_to_store({"t": RowTopic("", 2)}, with_id, {"t"}) == with_id, (
        "the broker tells it now"
    )


def test_the_topic_of_a_shard_that_is_gone_may_be_made_anew_but_what_it_was_stays_known() -> None:
    assert topics_to_store(KNOWN, {"t": RowTopic("two", 5)}, ()) == {}


def test_a_topic_that_is_gone_counts_when_it_had_an_id_and_a_shard_lives() -> None:
    assert gone_topics(KNOWN, {}, {"t"}) == {"t"}
    assert gone_topics(KNOWN, KNOWN, {"t"}) == set()
    assert gone_topics(KNOWN, {}, ()) == set(), "the shard was dropped: so may be its topic"
    assert gone_topics({"t": RowTopic("", 2)}, {}, {"t"}) == set()
    assert gone_topics({}, {}, {"t"}) == set(), "it does not exist yet"
    error = gone_error("t", KNOWN["t"])
    assert "t is gone" in error.message
    assert "one" in error.message
    assert "another pipeline" in error.hint


def test_topics_live_as_long_as_a_shard_of_theirs_does() -> None:
    known = folded(
        decision(1, A, 10), decision(2, B, 10), decision(3, C, 10), decision(4, B, 20, live=False)
    )
    names = {"s1.app.a", "s1.app.b", "s1.app.c", "s1.app.d"}
    assert live_topics(known, names) == {"s1.app.a", "s1.app.c"}
    assert live_topics(known, {"s1.app.b", "s1.app.c"}) == {"s1.app.c"}
