"""What the target stores of a pipeline must be of the topics that are read now. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import TargetTable

from .applied import Applied, moved_streams
from .decisions import Decisions, StatementKey
from .partitions import Partition


def check_topics(applied: Mapping[Partition, Applied], decisions: Decisions) -> None:
    """Raise ``ContractError`` when rows come where they did not before: an offset is a topic's."""
    moved = moved_streams(applied, decisions)
    if moved is not None:
        shard, was, now = moved
        raise ContractError(
            f"rows of {shard} were applied from {was}, and its route says {now} now",
            hint="a running pipeline keeps the row_topic of its routes: set it back; for "
            "another one merge the target again from a snapshot, as another pipeline",
        )


def check_journal(
    executed: Mapping[TargetTable, Collection[StatementKey]], decisions: Decisions
) -> None:
    """Raise ``ContractError`` when something is executed that is not decided.

    Then the ddl topic is not the one that it came from.
    """
    for target, keys in executed.items():
        decided = decisions.targets.get(target)
        # What has a negative ordinal is no statement (``restarts``).
        stored = {key for key in keys if key.ordinal >= 0}
        lacking = sorted(stored - (decided.statements.keys() if decided else set()))
        if lacking:
            first = lacking[0]
            raise ContractError(
                f"statement {first.version}.{first.ordinal} of {target} is executed, but the "
                "ddl topic does not hold it",
                hint="the ddl topic was made anew: replay the schema-log into it, or drop the "
                "target table and its rows in the control database and merge again",
            )
