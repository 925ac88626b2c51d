"""Makes a difference between tracker and server small: fewer tables, columns, keys, actions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pymysql

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import ShardMergeError

from .twin import Twin

MOST_TRIALS = 400
_HEAD = re.compile(r"ALTER TABLE \S+ ")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Statements that make tables, and the one after which tracker and server differ."""

    setup: tuple[str, ...]
    sql: str

    def __str__(self) -> str:
        return "\n".join([*(f"{sql};;" for sql in self.setup), f"{self.sql};;"])


def outcome(twin: Twin, sql: str, context: ServerContext | None = None) -> tuple[bool, list[str]]:
    """Execute one statement on both sides.

    Returns:
        Whether the server took it, and how the sides differ then; an error of the tracker is
        a difference.
    """
    try:
        if not twin.execute(sql, context):
            return False, []
        return True, twin.differences()
    except (ShardMergeError, AssertionError, KeyError, ValueError) as error:
        return True, [f"{type(error).__name__}: {error}"]


def shrink(twin: Twin, found: Reproduction, wrong: Sequence[str]) -> tuple[Reproduction, list[str]]:
    """The smallest reproduction that a bounded number of trials finds, and its differences.

    Args:
        twin: Left with the reproduction's tables.
        found: What to begin with.
        wrong: How the sides differed; what is smaller must differ in the same part.
    """
    best, best_wrong = found, _differs(twin, found)
    if _kind(best_wrong) != _kind(wrong):
        return found, list(wrong)  # The way to these tables matters: nothing can be left out.
    trials = 0
    progress = True
    while progress and trials < MOST_TRIALS:
        progress = False
        for smaller in _smaller(best):
            trials += 1
            now_wrong = _differs(twin, smaller)
            if now_wrong and _kind(now_wrong) == _kind(wrong):
                best, best_wrong, progress = smaller, now_wrong, True
                break
            if trials >= MOST_TRIALS:
                break
    return best, best_wrong


def _differs(twin: Twin, candidate: Reproduction) -> list[str]:
    twin.reset([])
    try:
        for sql in candidate.setup:
            twin.query(sql)
    except pymysql.MySQLError:
        return []
    try:
        twin.adopt()
    except ShardMergeError:
        return []
    return outcome(twin, candidate.sql)[1]


def _kind(wrong: Sequence[str]) -> str:
    """The part in which the sides differ first."""
    if not wrong:
        return ""
    found = re.search(r"\) (column|indexes|checks|foreign_keys|charset|collation)", wrong[0])
    if found is not None:
        return found[1]
    return wrong[0].partition(":")[0] if "Error" in wrong[0].partition(":")[0] else wrong[0][:6]


def _smaller(candidate: Reproduction) -> Iterator[Reproduction]:
    for place in range(len(candidate.setup)):
        rest = (*candidate.setup[:place], *candidate.setup[place + 1 :])
        yield Reproduction(rest, candidate.sql)
    for sql in _fewer_items(candidate.sql):
        yield Reproduction(candidate.setup, sql)
    for place, sql in enumerate(candidate.setup):
        for shorter in _fewer_lines(sql):
            setup = (*candidate.setup[:place], shorter, *candidate.setup[place + 1 :])
            yield Reproduction(setup, candidate.sql)


def _fewer_items(sql: str) -> Iterator[str]:
    """An ALTER TABLE with one action less; a CREATE TABLE with one item less."""
    head = _HEAD.match(sql)
    start, end = (head.end(), len(sql)) if head else (sql.find("(") + 1, _closing(sql))
    if start <= 0 or end <= start:
        return
    items = split(sql[start:end])
    if len(items) > 1:
        for place in range(len(items)):
            kept = ",".join((*items[:place], *items[place + 1 :]))
            yield sql[:start] + kept.strip() + sql[end:]
    if not head and end + 1 < len(sql):
        yield sql[: end + 1]


def _fewer_lines(sql: str) -> Iterator[str]:
    """A CREATE TABLE as the server shows it, with one line less."""
    lines = sql.split("\n")
    body = [line.rstrip(",") for line in lines[1:]]
    last = next((n for n, line in enumerate(body) if line.startswith(")")), None)
    if last is None or last < 2:
        return
    tail = "\n".join(body[last:])
    for place in range(last):
        kept = [*body[:place], *body[place + 1 : last]]
        yield lines[0] + "\n" + ",\n".join(kept) + "\n" + tail
    if tail != ")":
        yield lines[0] + "\n" + ",\n".join(body[:last]) + "\n)"


def split(text: str) -> list[str]:
    """Split at the commas that stand outside of parentheses and quotes."""
    items = [""]
    for depth, character in _depths(text):
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return items


def _closing(sql: str) -> int:
    """Where the first parenthesis is closed; -1 without one."""
    start = sql.find("(")
    place = start
    for depth, character in _depths(sql[start:]):
        if character == ")" and depth == 0:
            return place
        place += 1
    return -1


def _depths(text: str) -> Iterator[tuple[int, str]]:
    """Each character with the depth of parentheses around it; -1 inside of quotes."""
    depth, quote, escaped = 0, "", False
    for character in text:
        if quote:
            yield -1, character
            if not escaped and character == quote:
                quote = ""
            escaped = character == "\\" and not escaped and quote != "`"
            continue
        if character in "'\"`":
            quote = character
            yield -1, character
            continue
        if character == ")":
            depth -= 1
        yield depth, character
        if character == "(":
            depth += 1
