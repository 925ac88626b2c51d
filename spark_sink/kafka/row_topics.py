"""Compares a row topic with what it was when the pipeline first read it. Pure.

A stored offset is valid for one topic with one number of partitions. If the topic was deleted and
made anew, the records before the offset would never be read. If partitions were added, keys are
distributed anew: changes of one row are then in two partitions, which have no order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from shardmerge.schemas.model.errors import ContractError
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Stream

_ANEW = "merge the target again from a snapshot, as another pipeline"


class RowTopic(NamedTuple):
    """A row topic as Kafka has it.

    Attributes:
        id: Distinguishes topics of the same name; "" when the broker gives none.
        partitions: Number of partitions.
    """

    id: str
    partitions: int


def live_topics(decisions: Decisions, names: Collection[str]) -> set[str]:
    """Those of some topics that still have a live shard: its rows may not all be applied."""
    own = {Stream(name) for name in names if name not in decisions.topics.shared}
    streams: Iterable[Stream] = own & decisions.streams.keys()
    if len(own) < len(names):
        streams = (stream for stream in decisions.streams if stream.topic in names)
    return {
        stream.topic
        for stream in streams
        if any(
            decisions.targets[target].lives(shard) for target, shard in decisions.streams[stream]
        )
    }


def topics_to_store(
    known: Mapping[str, RowTopic], there: Mapping[str, RowTopic], live: Collection[str]
) -> dict[str, RowTopic]:
    """The topics that have to be stored: new ones, and those whose id was not known before.

    Args:
        known: Topic → what is stored about it.
        there: Topic that exists → what it is now.
        live: Topics that still have a live shard. For any other topic the stored entry stays: its
            shard may come back, and then its stored offsets count again.

    Raises:
        ContractError: A topic was made anew, or has another number of partitions.
    """
    new = {}
    for name, now in there.items():
        was = known.get(name)
        if was is None:
            new[name] = now
            continue
        if name not in live:
            continue
        if was.id and now.id and was.id != now.id:
            raise ContractError(
                f"row topic {name} was deleted and made anew: its topic id is {now.id}, and it"
                f" was {was.id} when this pipeline first read it",
                hint=f"the stored offsets are of another topic: {_ANEW}",
                code="SM-2116",
            )
        if was.partitions != now.partitions:
            raise ContractError(
                f"row topic {name} has {now.partitions} partitions, and it had {was.partitions}"
                " when this pipeline first read it",
                hint="the changes of a row may stand in two partitions now, which have no order:"
                f" {_ANEW}, and leave the number of partitions as it is",
                code="SM-2117",
            )
        if now.id and not was.id:
            new[name] = now
    return new


def gone_topics(
    known: Mapping[str, RowTopic], there: Mapping[str, RowTopic], live: Collection[str]
) -> set[str]:
    """The topics that existed and do not now, while a shard of theirs lives.

    See ``topics_to_store`` for the arguments.
    """
    return {name for name in live if name not in there and name in known and known[name].id}


def gone_error(name: str, was: RowTopic) -> ContractError:
    """The error for a topic that stays away."""
    return ContractError(
        f"row topic {name} is gone: it had the topic id {was.id} and {was.partitions} partitions",
        hint=f"some of its rows may not be applied, and are lost: {_ANEW}. If its shard's table was"
        " dropped, restart the sink when the DROP TABLE is decided. If the shard shall not count "
        "any longer, take it out by `shardmerge command leave`",
        code="SM-2125",
    )
