"""The nearest collation on a server that lacks the collation of a shard.

A finer collation, which distinguishes more values, accepts every row, so a key may use it. Under a
coarser one, two different keys could be equal, so a key may not use it.

Source: MySQL Reference Manual, "Unicode Character Sets"; MariaDB, "Supported Character Sets and
Collations" (``nopad`` collations distinguish trailing spaces, as MySQL's 0900 ones do).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from shardmerge.schemas.lattice.charset_order import joined_collation, server_defaults
from shardmerge.schemas.model.charsets import charset_of
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.types import ColumnType

from .dialect import CannotRender, Place
from .features import COLLATION_0900_BIN, COLLATIONS_0900, COLLATIONS_UCA1400

_UCA_0900 = re.compile(
    r"utf8mb4_(?:(?P<language>[a-z_]+?)_)?0900_(?P<rest>ai_ci|as_ci|as_cs|bin)\Z"
)
_UCA_1400 = re.compile(
    r"(?P<charset>[a-z0-9]+)_uca1400_(?:(?P<language>[a-z_]+?)_)??(?P<nopad>nopad_)?"
    r"(?P<rest>ai_ci|as_ci|as_cs|ai_cs)\Z"
)


def in_key_collation(
    kind: ColumnType,
    place: Place,
    default: str,
    near: Callable[[str], str],
    notes: list[str],
) -> ColumnType:
    """A column of a key, with the collation that its shards mean by naming none.

    They mean their servers' default. It is named if the target's default may call different keys
    the same. A column that is in a key of the target already keeps its collation: where two rows
    became one, nothing tells them apart any more, and some targets cannot change it. A column that
    got a collation for a unique index keeps it when the index goes, which may come back.

    Args:
        kind: The column's type as it is joined.
        place: Where the column is.
        default: The target's default collation of the type's character set.
        near: A collation → the one that the target has for it in a key; "" for none.
        notes: Gets a note when the shards mean another collation than the target's default.
    """
    names = server_defaults(kind.charset, place.collations)
    if not names or not kind.is_string or kind.collation:
        return kind
    meant = joined_collation(kind.charset, [(kind.charset, name) for name in names])
    if joined_collation(kind.charset, [(kind.charset, meant), (kind.charset, default)]) == default:
        return kind
    had = place.previous.type if place.previous is not None else None
    had = had if had is not None and had.charset == kind.charset else None
    if not place.key:
        keeps = had is not None and had.collation != "" and had.collation == near(meant)
        return replace(kind, collation=had.collation) if had is not None and keeps else kind
    if had is not None and place.was_key and not had.collation:
        notes.append(
            f"it keeps the target's default collation {default}, in which keys can be the same that"
            f" differ in its shards' default {meant}; a target that is loaded anew gets the latter"
        )
        return kind
    notes.append(f"its shards' default collation {meant} is not the target's ({default})")
    return replace(kind, collation=meant)


def fit_collation(
    collation: str, column: str, *, in_key: bool, server: ServerContext, kind: str = ""
) -> tuple[str, str] | CannotRender:
    """The collation to use, and how it differs ("" when it does not).

    Args:
        collation: Canonical name; never "".
        column: The column's name, for messages.
        in_key: Whether a primary key or a unique index names the column.
        server: The target.
        kind: The name of the column's type. CHAR has no spaces at the end, so under it a collation
            that ignores them is as fine as one that does not.
    """
    strict = in_key and kind != "char"
    if found := _UCA_0900.match(collation):
        feature = COLLATION_0900_BIN if found["rest"] == "bin" else COLLATIONS_0900
        if feature.is_in(server):
            return collation, ""
        return _without_0900(collation, found, column, in_key=in_key, strict=strict, server=server)
    if not server.is_mariadb and ("uca1400" in collation or "nopad" in collation):
        return _without_nopad(collation, column, in_key=in_key, strict=strict)
    if server.is_mariadb and "uca1400" in collation and not COLLATIONS_UCA1400.is_in(server):
        return _bytewise(collation) or _refused(collation, column, server)
    return collation, ""


def _without_0900(
    collation: str,
    found: re.Match[str],
    column: str,
    *,
    in_key: bool,
    strict: bool,
    server: ServerContext,
) -> tuple[str, str] | CannotRender:
    rest, language = found["rest"], found["language"]
    if not server.is_mariadb:
        # MySQL's other collations ignore trailing spaces, so none is as fine.
        if strict:
            return _padded(collation, column, server)
        coarse = rest == "ai_ci" and not in_key
        near = "utf8mb4_unicode_520_ci" if coarse else "utf8mb4_bin"
        return near, f"{collation} becomes {near}, which orders otherwise"
    if rest == "bin":
        return "utf8mb4_nopad_bin", f"{collation} is called utf8mb4_nopad_bin"
    if language and in_key:
        return _refused(collation, column, server)
    if COLLATIONS_UCA1400.is_in(server):
        near = f"utf8mb4_uca1400_nopad_{rest}"
        return near, f"{collation} becomes {near}, a newer version of the Unicode order"
    if rest == "ai_ci" and not in_key:
        near = "utf8mb4_unicode_520_nopad_ci"
        return near, f"{collation} becomes {near}, an older version of the Unicode order"
    return "utf8mb4_nopad_bin", f"{collation} becomes utf8mb4_nopad_bin, which tells more apart"


def _without_nopad(
    collation: str, column: str, *, in_key: bool, strict: bool
) -> tuple[str, str] | CannotRender:
    found = _UCA_1400.match(collation)
    server = ServerContext()
    if found and found["charset"] == "utf8mb4" and found["rest"] != "ai_cs":
        if found["language"] and in_key:
            return _refused(collation, column, server)
        near = f"utf8mb4_0900_{found['rest']}"
        return near, f"{collation} becomes {near}, an older version of the Unicode order"
    if bytewise := _bytewise(collation):
        return bytewise
    if collation == "utf8mb4_nopad_bin":
        return "utf8mb4_0900_bin", f"{collation} is called utf8mb4_0900_bin"
    charset = charset_of(collation)
    if collation == f"{charset}_nopad_bin":
        if strict:
            return _padded(collation, column, server)
        return f"{charset}_bin", f"{collation} becomes {charset}_bin, which ignores trailing spaces"
    return _refused(collation, column, server)


def _bytewise(collation: str) -> tuple[str, str] | None:
    """``_bin``, which is finer than every collation that ignores trailing spaces; None for others.

    The server lacks the collation, which is one of MariaDB.
    """
    found = _UCA_1400.match(collation)
    if found is None or found["nopad"]:
        return None
    near = f"{found['charset']}_bin"
    return near, f"{collation} becomes {near}, which tells more apart"


def _padded(collation: str, column: str, server: ServerContext) -> CannotRender:
    """No collation of the target distinguishes keys that differ only in trailing spaces."""
    kind = "MariaDB" if server.is_mariadb else "MySQL"
    return CannotRender(
        f"{column} is in a key and needs the collation {collation}, which {kind} as the target's "
        "version has it lacks: under its others, keys that differ in trailing spaces alone collide",
        f"give {column} one collation on every shard, take it out of the key, or use a newer "
        "target",
        code="SM-1223",
    )


def _refused(collation: str, column: str, server: ServerContext) -> CannotRender:
    kind = "MariaDB" if server.is_mariadb else "MySQL"
    return CannotRender(
        f"{kind} as the target's version has it lacks the collation {collation} of {column}, and "
        "every near one could call different keys the same",
        f"give {column} a collation that the target has on every shard, or use a newer target",
        code="SM-1223",
    )
