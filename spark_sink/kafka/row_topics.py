"""What a row topic was when the pipeline first read it, against what it is. Pure.

A stored offset tells of one topic with so many partitions. In a topic that was deleted and made
anew it stands somewhere else, and the records before it would never be read. Over more partitions
keys are spread anew, so the changes of one row stand in two partitions, which have no order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from shardmerge.schemas.model.errors import ContractError
from shardmerge.spark_sink.barrier.decisions import Decisions

_ANEW = "merge the target again from a snapshot, as another pipeline"


class RowTopic(NamedTuple):
    """A row topic as Kafka has it.

    Attributes:
        id: It tells topics of one name from each other; "" where the broker gives none.
        partitions: How many.
    """

    id: str
    partitions: int


def live_topics(decisions: Decisions) -> set[str]:
    """The row topics that still have a shard: rows may come in them, or be left."""
    return {
        stream.topic
        for stream, owners in decisions.streams.items()
        if any(decisions.targets[target].lives(shard) for target, shard in owners)
    }


def changed(
    known: Mapping[str, RowTopic], there: Mapping[str, RowTopic], live: Collection[str]
) -> dict[str, RowTopic]:
    """What is to be stored of the topics that are there: those that are new.

    Args:
        known: Topic → what is stored of it.
        there: Topic → what it is now; one that does not exist is not in it.
        live: Topics that still have a shard. What is stored of another one stays: its shard may
            come back, and its stored offsets with it.

    Raises:
        ContractError: One is not the topic that it was.
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
            )
        if was.partitions != now.partitions:
            raise ContractError(
                f"row topic {name} has {now.partitions} partitions, and it had {was.partitions}"
                " when this pipeline first read it",
                hint="the changes of a row may stand in two partitions now, which have no order:"
                f" {_ANEW}, and leave the number of partitions as it is",
            )
        if now.id and not was.id:
            new[name] = now
    return new


def gone(
    known: Mapping[str, RowTopic], there: Mapping[str, RowTopic], live: Collection[str]
) -> set[str]:
    """The topics that were there and are not, while a shard of theirs lives; as ``changed``."""
    return {name for name in live if name not in there and name in known and known[name].id}


def gone_error(name: str, was: RowTopic) -> ContractError:
    """The error of a topic that stays away."""
    return ContractError(
        f"row topic {name} is gone: it had the topic id {was.id} and {was.partitions} partitions",
        hint=f"rows of it may not be applied; without them {_ANEW}. When the table of its shard was"
        " dropped, restart the sink after that is decided; one that does not count any more is"
        " taken out by `shardmerge command leave`",
    )
