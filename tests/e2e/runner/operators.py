"""Which of our commands an operator's step means."""

from __future__ import annotations

import re
from typing import NamedTuple

from shardmerge.schemas.model.names import ShardId

_OURS = re.compile(r"shardmerge (?P<kind>[a-z-]+) (?P<shard>\w+/\w+\.\w+)(?: (?P<argument>.+))?")
_UNLOCK = re.compile(
    r"(?:shard-ddl-lock\s+)?unlock(?:-ddl-lock)?\s+(?P<lock>\S+)(?P<options>(?:\s+-.*)?)"
)
_ACTION = re.compile(r"(?:--action|-a)[\s=]+['\"]?(?P<action>\w+)")
_ABOUT_A_SHARD = re.compile(r"(?:^|\s)(?:-s|-d|-t|--source|--database|--table)\b")
_SKIP_OF_A_LOCK = re.compile(
    r"shard-ddl-lock unlock \S+ -s (?P<source>\w+) -d (?P<database>\w+) -t (?P<table>\w+)"
    r" --action skip"
)


class Said(NamedTuple):
    """A command about a shard; ``argument`` is "" for a kind that takes none."""

    kind: str
    shard: ShardId
    argument: str


def unlocks(text: str) -> str:
    """What is to become of everything that waits for a lock; "" when the step is about none.

    Returns:
        ``unlock-execute`` or ``unlock-discard``.
    """
    found = _UNLOCK.fullmatch(" ".join(text.split()))
    if found is None or _ABOUT_A_SHARD.search(found["options"]):
        return ""
    action = _ACTION.search(found["options"])
    discards = action is not None and action["action"].lower() in ("skip", "discard")
    return "unlock-discard" if discards else "unlock-execute"


def command_in(text: str, case: str) -> Said | None:
    """The command that a step asks for; None when it is none of ours.

    Args:
        text: ``shardmerge KIND SOURCE/DATABASE.TABLE [ARGUMENT]``, or a command of the original
            system that has its like here.
        case: Prefix of the scenario's databases.
    """
    if found := _OURS.fullmatch(text):
        source, database, table = re.split("[/.]", found["shard"])
        return Said(found["kind"], _shard(source, case, database, table), found["argument"] or "")
    if found := _SKIP_OF_A_LOCK.fullmatch(text):
        return Said("skip", _shard(found["source"], case, found["database"], found["table"]), "")
    return None


def _shard(source: str, case: str, database: str, table: str) -> ShardId:
    return ShardId(source, f"{case}_{database}", table)
