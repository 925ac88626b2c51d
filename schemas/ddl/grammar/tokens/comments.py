"""Version comments: SQL text in a comment that some servers execute.

``/*!50100 … */`` is executed by servers from 5.1.0 on, ``/*! … */`` by all, ``/*M!100301 … */``
only by MariaDB. MariaDB skips comments with the numbers 50700 to 99999, which are MySQL versions.

Source: MySQL and MariaDB reference manuals, "Comments".
"""

from __future__ import annotations

import re

from shardmerge.schemas.model.server_context import ServerContext

_MARIADB_HEAD = re.compile(r"/\*(M?)!(\d{5,6})?")
_MYSQL_HEAD = re.compile(r"/\*(M?)!(\d{6}(?=\s)|\d{5})?")
"""In MySQL a sixth digit belongs to the version only if a blank follows (measured on 9.7)."""
_OTHERS = r"|`[^`]*`|--(?=[\s\x00]|$)[^\n]*|\#[^\n]*|/\*|\*/"
# Strings, quoted names and line comments, in which /* and */ have no meaning; then /* and */.
_NEXT = re.compile(
    r"'(?:[^'\\]|\\.|'')*'" r'|"(?:[^"\\]|\\.|"")*"' + _OTHERS,
    re.DOTALL,
)
_NEXT_WITHOUT_ESCAPES = re.compile(r"'(?:[^']|'')*'" r'|"(?:[^"]|"")*"' + _OTHERS)
"""Under NO_BACKSLASH_ESCAPES."""


def execute_version_comments(sql: str, context: ServerContext) -> str:
    """Replace version comments by their contents, or by blanks if the server skips them.

    The text keeps its length, so that offsets stay valid. A comment that is still open at the end
    of the text counts as closed: Debezium removes the closing part of a trailing comment.
    """
    if "/*!" not in sql and "/*M!" not in sql:
        return sql
    pattern = _MARIADB_HEAD if context.is_mariadb else _MYSQL_HEAD
    following = _NEXT if context.backslash_escapes else _NEXT_WITHOUT_ESCAPES
    out: list[str] = []
    done = 0
    executing = 0
    at = 0
    while (found := following.search(sql, at)) is not None:
        start, at = found.span()
        piece = found.group()
        if piece == "/*":
            head = pattern.match(sql, start)
            if head is not None and _is_executed(head, context):
                out += (sql[done:start], " " * (head.end() - start))
                done = at = head.end()
                executing += 1
                continue
            at = _skip_comment(sql, at)
            if head is not None:
                out += (sql[done:start], re.sub(r"[^\n]", " ", sql[start:at]))
                done = at
        elif piece == "*/" and executing:
            out += (sql[done:start], "  ")
            done = at
            executing -= 1
    out.append(sql[done:])
    return "".join(out)


def _is_executed(head: re.Match[str], context: ServerContext) -> bool:
    only_mariadb, number = head.group(1), head.group(2)
    if only_mariadb and not context.is_mariadb:
        return False
    if not number:
        return True
    version = int(number)
    if context.is_mariadb and not only_mariadb and 50700 <= version <= 99999:
        return False
    return version <= context.version_number


def _skip_comment(sql: str, at: int) -> int:
    """The end of the skipped comment whose contents begin at ``at``; comments may be nested."""
    depth = 1
    while depth:
        close = sql.find("*/", at)
        if close == -1:
            return len(sql)
        opened = sql.find("/*", at, close)
        if opened != -1:
            depth += 1
            at = opened + 2
        else:
            depth -= 1
            at = close + 2
    return at
