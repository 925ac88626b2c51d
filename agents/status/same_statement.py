"""The text by which statements of different shards are the same. Pure.

It leaves out what shards differ in although they do the same: comments, spaces, quotes around
names, upper and lower case of words, and the shard's own names. The statement is not parsed,
because ten thousand of them may come together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardmerge.schemas.model.names import ShardId

_PART = re.compile(
    r"""
    (?P<text> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<nothing> \s+ | ; | /\*(?![!M]).*?\*/ | \#[^\n]* | --(?=\s)[^\n]* )
    | `(?P<name> (?:[^`]|``)* )`
    | (?P<word> [\w$]+ )
    | (?P<sign> . )
    """,
    re.DOTALL | re.VERBOSE,
)
_TABLE = "`"
"""Stands for the shard's table; no name and no word has it."""


def same_statement(ddl: str, shard: ShardId) -> str:
    """The text; equal for the same statement on other shards.

    Args:
        ddl: The statement as the source sent it.
        shard: The shard that executed it. Names that contain its table's name, such as those of
            online schema changes, are the same on each shard, too; but not those of columns.
    """
    return " ".join(_parts(ddl, shard.database.casefold(), shard.table.casefold()))


def _parts(ddl: str, database: str, table: str) -> Iterator[str]:
    depth = 0
    before = ""
    for match in _PART.finditer(ddl):
        if match["nothing"] is not None:
            continue
        if match["text"] is not None:
            part = match["text"]
        else:
            part = (match["name"] or match["word"] or match["sign"] or "").casefold()
            depth += (part == "(") - (part == ")")
            if not depth and table in part:
                part = _without(part, table)
        # The name before a dot is told only with what follows.
        if before and not (part == "." and before == database):
            yield before
        elif before:
            part = ""
        before = part
    if before:
        yield before


def _without(name: str, table: str) -> str:
    """A name without the table's, unless that is part of a longer word or number."""
    first, *rest = name.split(table)
    found = first
    for left, piece in zip((first, *rest), rest, strict=False):
        is_word = left[-1:].isalnum() or piece[:1].isalnum()
        found += (table if is_word else _TABLE) + piece
    return found
