"""Checks that the target's stored state belongs to the topics that the sink reads now. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import TargetTable

from .applied import Applied, moved_shard
from .decisions import Decisions, StatementKey
from .partitions import Partition


def check_topics(applied: Mapping[Partition, Applied], decisions: Decisions) -> None:
    """Raise ``ContractError`` when a shard's rows come from another topic than before.

    Stored offsets are valid only in the topic that they were stored for.
    """
    moved = moved_shard(applied, decisions)
    if moved is not None:
        shard, was, now = moved
        raise ContractError(
            f"rows of {shard} were applied from {was}, and its route says {now} now",
            hint="a running pipeline keeps the row_topic of its routes: set it back; for "
            "another one merge the target again from a snapshot, as another pipeline",
            code="SM-2119",
        )


def check_journal(
    executed: Mapping[TargetTable, Collection[StatementKey]], decisions: Decisions
) -> None:
    """Raise ``ContractError`` when the journal has an executed statement that is not decided.

    The statement then came from another ddl topic.
    """
    for target, keys in executed.items():
        decided = decisions.targets.get(target)
        # A negative ordinal marks a restart, not a statement (``restarts``).
        stored = {key for key in keys if key.ordinal >= 0}
        lacking = sorted(stored - (decided.statements.keys() if decided else set()))
        if lacking:
            first = lacking[0]
            raise ContractError(
                f"statement {first.version}.{first.ordinal} of {target} is executed, but the "
                "ddl topic does not hold it",
                hint="the ddl topic was made anew: replay the schema-log into it, or drop the "
                "target table and its rows in the control database and merge again",
                code="SM-2114",
            )
