"""Shards whose rows are removed from the target because all of them come again. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition

from .plain import dump, from_plain


@dataclass(frozen=True, order=True, slots=True)
class Reload:
    """A shard whose rows are removed from the target and come again.

    Attributes:
        shard: The shard.
        position: Rows before this position do not count any more: those that are applied are
            removed, the others are skipped.
        began_ms: For a whole reading: when it began, in milliseconds by the connector's clock. Its
            rows all have exactly ``position``. 0 when the rows come by an incremental snapshot,
            whose rows are among those of the binlog.
    """

    shard: ShardId
    position: SourcePosition
    began_ms: int = 0


def reloads_text(reloads: Iterable[Reload]) -> str:
    """The argument of the command ``reloaded``: equal readings give equal text."""
    return dump(tuple(sorted(reloads))).decode()


def reloads_in(text: str) -> tuple[Reload, ...]:
    """Read what ``reloads_text`` wrote.

    Raises:
        ContractError: ``reloads_text`` did not write this text.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ContractError(f"not a list of readings: {error}", code="SM-2103") from error
    if not isinstance(found, list) or not found:
        raise ContractError("not a list of readings", code="SM-2103")
    return tuple(sorted(from_plain(Reload, item) for item in found))
