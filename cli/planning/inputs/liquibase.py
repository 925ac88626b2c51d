"""Liquibase's formatted SQL → changesets. Pure.

Source: Liquibase documentation, "SQL changelog format": the first line, ``--changeset author:id``
with attributes, ``--rollback``, ``splitStatements``, ``endDelimiter``, ``dbms``, ``--ignoreLines``,
``ignore``, ``context``, ``contextFilter``, ``labels``, ``--preconditions``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.server_context import ServerContext

from .sql_text import Piece, pieces

_HEAD = re.compile(r"\s*--\s*liquibase\s+formatted\s+sql\b", re.IGNORECASE)
_CHANGESET = re.compile(r"\s*--\s*changeset\s+(.+)", re.IGNORECASE)
_NAME = re.compile(r"(\"[^\"]+\"|'[^']+'|[^:\s]+):(\"[^\"]+\"|'[^']+'|\S+)\s*(.*)")
_ATTRIBUTE = re.compile(r"([\w-]+):(\"[^\"]*\"|'[^']*'|\S+)")
_COMMENT = re.compile(r"\s*--")
_DECIDING = {"context": "context", "contextfilter": "contextFilter", "labels": "labels"}
"""Attributes that decide together with the call of Liquibase whether a changeset runs."""
_BLOCK_ROLLBACK = re.compile(r"/\*\s*liquibase\s+rollback\b.*?\*/", re.IGNORECASE | re.DOTALL)
_PRECONDITIONS = re.compile(r"\s*--\s*preconditions\b", re.IGNORECASE)
_IGNORE = re.compile(r"\s*--\s*ignoreLines:(start|end|\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Changeset:
    """One changeset.

    Attributes:
        name: As ``author:id``.
        pieces: Its statements.
        condition: What decides whether it runs, and is known only when Liquibase runs: such as
            ``context:test`` or ``preconditions``; "" for a changeset that runs in any case.
    """

    name: str
    pieces: tuple[Piece, ...]
    condition: str = ""


def is_formatted(text: str) -> bool:
    """Whether a file is Liquibase's formatted SQL."""
    return _HEAD.match(text) is not None


def changesets(text: str, context: ServerContext, where: str) -> Iterator[Changeset]:
    """The changesets of a file that are for this kind of server, in their order.

    Those with ``ignore:true`` are left out.

    Args:
        text: Of the file; see ``is_formatted``.
        context: How the server that executes them reads a statement.
        where: How messages name the file.

    Raises:
        ConfigError: A changeset has no author and id, or SQL stands before the first one.
    """
    begun: tuple[str, dict[str, str], int] | None = None
    lines: list[str] = []
    checked = False
    for number, line in enumerate([*_executed_lines(text), "--changeset end:end"], 1):
        head = _CHANGESET.match(line)
        if head is None:
            is_check = _PRECONDITIONS.match(line) is not None
            checked |= is_check
            lines.append("" if is_check else line)
            continue
        if begun is not None:
            yield from _changeset(*begun, "\n".join(lines), context, checked=checked)
        elif any(pieces("\n".join(lines), backslash_escapes=context.backslash_escapes)):
            raise ConfigError(
                f"{where}: a statement stands before the first --changeset", code="SM-5604"
            )
        name = _NAME.match(head[1])
        if name is None:
            raise ConfigError(
                f"{where}:{number}: expected --changeset author:id, not {line.strip()!r}",
                code="SM-5604",
            )
        attributes = {key.lower(): _bare(value) for key, value in _ATTRIBUTE.findall(name[3])}
        begun, lines = (f"{_bare(name[1])}:{_bare(name[2])}", attributes, number + 1), []
        checked = False


def _changeset(
    name: str,
    attributes: dict[str, str],
    first_line: int,
    sql: str,
    context: ServerContext,
    *,
    checked: bool,
) -> Iterator[Changeset]:
    dbms = [each.strip().lower() for each in attributes.get("dbms", "").split(",") if each.strip()]
    if dbms and not _is_for(dbms, context.flavour):
        return
    if attributes.get("ignore", "").lower() == "true":
        return
    escapes = context.backslash_escapes
    if attributes.get("splitstatements", "true").lower() == "false":
        whole = sql.strip()
        is_there = any(pieces(sql, backslash_escapes=escapes))
        found: tuple[Piece, ...] = (Piece(whole, first_line),) if is_there else ()
    else:
        delimiter = attributes.get("enddelimiter", ";").replace("\\n", "\n")
        split = pieces(sql, delimiter=delimiter, backslash_escapes=escapes, first_line=first_line)
        found = tuple(split)
    conditions = [f"{_DECIDING[key]}:{attributes[key]}" for key in _DECIDING if key in attributes]
    conditions += ["preconditions"] if checked else []
    yield Changeset(name, found, ", ".join(conditions))


def _is_for(dbms: list[str], flavour: str) -> bool:
    if "none" in dbms:
        return False
    wanted = [each for each in dbms if not each.startswith("!")]
    return f"!{flavour}" not in dbms and (not wanted or flavour in wanted or "all" in wanted)


def _executed_lines(text: str) -> list[str]:
    """The lines of a text. A line that Liquibase does not execute is empty, so numbers stay.

    Lines with ``--changeset`` and ``--preconditions`` are kept.
    """
    text = _BLOCK_ROLLBACK.sub(lambda found: "\n" * found[0].count("\n"), text)
    kept: list[str] = []
    ignoring = 0
    for line in text.splitlines():
        told = _IGNORE.match(line)
        if told is not None:
            word = told[1].lower()
            ignoring = 0 if word == "end" else -1 if word == "start" else int(word)
            kept.append("")
        elif ignoring:
            ignoring -= ignoring > 0
            kept.append("")
        else:
            # For Liquibase a comment begins with -- alone; MySQL needs a blank behind it.
            kept_too = _CHANGESET.match(line) or _PRECONDITIONS.match(line)
            comment = _COMMENT.match(line) and not kept_too
            kept.append("" if comment else line)
    return kept


def _bare(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
