"""Why the schema of a table is not known, for people."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import PurePath

from shardmerge.schemas.model.errors import SourceError, UnparsableDDL, UnsupportedDDL
from shardmerge.schemas.model.names import ShardId

from .tracked import Tracked, Unknown

DESCRIBE_ANEW = (
    "the shard's rows wait; they go on when a CREATE TABLE or a new snapshot describes the table"
)


def not_known(shard: ShardId, tracked: Tracked | None) -> tuple[str, str, str]:
    """Error, hint and code of a statement on a table whose schema is not known before it."""
    if isinstance(tracked, Unknown):
        return f"the schema of {shard} is unknown: {tracked.reason}", DESCRIBE_ANEW, "SM-1103"
    return (
        f"the schema of {shard} is not known: its CREATE TABLE was not seen",
        ("take a snapshot of the table; capture the whole database from the start"),
        "SM-1103",
    )


def defect_of_ours(error: Exception) -> SourceError:
    """A defect of our own, as the reason why a statement's effect cannot be told."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{PurePath(place.filename).name}:{place.lineno}"
    return SourceError(
        f"defect of shardmerge: {type(error).__name__}: {error} ({where})",
        hint=f"report it with the statement; {DESCRIBE_ANEW}",
        code="SM-9002",
    )


def ambiguous_origin(origins: Sequence[ShardId]) -> str:
    """Error of a statement that names a table which can be one of several."""
    names = " or ".join(map(str, origins))
    return f"the statement does not tell which table it means: {names}"


def message(error: SourceError) -> str:
    """The text of an error; where the statement cannot be parsed, with the place in it."""
    if isinstance(error, UnparsableDDL):
        return f"cannot parse: {error.message}, at character {error.offset + 1}\n{error.caret()}"
    if isinstance(error, UnsupportedDDL):
        return f"cannot track: {error.message}"
    return error.message
