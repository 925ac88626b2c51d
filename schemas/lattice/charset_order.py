"""Which character set holds the texts of others, and which collation distinguishes most values.

This module defines two orders, of character sets and of collations. In both, a set of elements has
a least upper bound, or the function says that there is none. Only codes with a meaning count: a
code for which MySQL has no character never leaves its shard (``connectors.debezium.value_limits``).

Source: MySQL Reference Manual, "Character Sets, Collations, Unicode"; MariaDB, "Supported Character
Sets and Collations". The tables are measured: tests/integration/mysql/test_wide_types.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from shardmerge.schemas.model.charsets import charset_of, max_bytes

_ASCII = "ascii"
_PLANE = frozenset(
    {
        *("big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8"),
        *("euckr", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r"),
        *("koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "swe7"),
        *("tis620", "ucs2"),
    }
)
"""Character sets that convert to utf8mb3 and back without loss: each character has one code."""
_WHOLE = frozenset({"gb18030", "utf16", "utf16le", "utf32"})
"""Character sets that convert to utf8mb4 and back without loss: they have characters of all
planes."""
_WITHOUT_ASCII = frozenset({"swe7", "ucs2", "utf16", "utf16le", "utf32"})
"""Character sets in which the bytes of ASCII text differ, or mean other characters."""
_TWO_BYTES = frozenset({"dec8", "latin2", "latin5", "swe7"})
"""Character sets whose characters have at most two bytes in UTF-8."""
_LEAST_BYTES = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
"""Bytes of the shortest character; 1 in all other character sets."""


def joined_charset(found: Collection[str]) -> str | None:
    """The least character set that every text in ``found`` survives being converted to and back.

    Args:
        found: Character sets, at least one.

    Returns:
        One of them that holds the others, else utf8mb3 or utf8mb4. None when it is not known that
        every character survives the conversion.
    """
    different = set(found)
    if len(different) == 1:
        return different.pop()
    rest = different - {_ASCII}
    if len(rest) == 1:
        (one,) = rest
        if (one in _PLANE | _WHOLE or is_unicode(one)) and one not in _WITHOUT_ASCII:
            return one
    if rest <= _PLANE | {"utf8mb3"}:
        return "utf8mb3"
    return "utf8mb4" if rest <= _PLANE | _WHOLE | {"utf8mb3", "utf8mb4"} else None


def is_unicode(charset: str) -> bool:
    """Whether other character sets are widened to this one."""
    return charset in ("utf8mb3", "utf8mb4")


def keeps_bytes(source: str, charset: str) -> bool:
    """Whether a text has the same bytes after its conversion to the wider character set."""
    return source in (charset, _ASCII) or (source, charset) == ("utf8mb3", "utf8mb4")


def widest_character(source: str, charset: str) -> int:
    """Most bytes that a character of one character set has in another one that holds it."""
    if source == _ASCII:
        return 1
    if source == charset or source in _WHOLE:
        return max_bytes(charset)
    return 2 if source in _TWO_BYTES else 3


def most_characters(charset: str, size_bytes: int) -> int:
    """The largest number of characters in this many bytes."""
    return size_bytes // _LEAST_BYTES.get(charset, 1)


_UCA1400_DEFAULTS = frozenset({"utf8mb3", "ucs2", "utf16", "utf32"})
"""Character sets, beside utf8mb4, whose default collation MariaDB 11.5 changed (measured, 11.8)."""


@dataclass(frozen=True, slots=True)
class _Order:
    """A Unicode collation whose name says what it distinguishes.

    Attributes:
        family: The algorithm's version and the language.
        pads: Whether it ignores spaces at the end.
        accents, case, kana: Whether it distinguishes them.
    """

    family: str
    pads: bool
    accents: bool
    case: bool
    kana: bool

    def joined(self, other: _Order) -> _Order:
        return _Order(
            self.family,
            self.pads and other.pads,
            self.accents or other.accents,
            self.case or other.case,
            self.kana or other.kana,
        )

    @property
    def suffix(self) -> str:
        nopad = "" if self.pads or self.family.endswith("0900") else "nopad_"
        sensitive = f"{'as' if self.accents else 'ai'}_{'cs' if self.case else 'ci'}"
        return f"{self.family}_{nopad}{sensitive}{'_ks' if self.kana else ''}"


_ORDER = re.compile(
    r"(?P<family>(?:[a-z_]+_)?0900|uca1400(?:_[a-z_]+?)??)(?P<nopad>_nopad)?"
    r"_a(?P<accents>[is])_c(?P<case>[is])(?P<kana>_ks)?\Z"
)
_SAME_IN_UTF8MB4 = re.compile(r"utf8mb3_(?!nopad_bin|general_mysql500_ci|tolower_ci)(?P<suffix>.+)")


def pads(charset: str, collation: str) -> bool:
    """Whether 'a' and 'a ' are equal in a collation, judged by its name.

    Args:
        charset: Its character set.
        collation: "" is the server's default. Servers have different defaults for utf8mb4, so its
            default counts as a collation that does not pad.
    """
    if not collation:
        return charset != "utf8mb4"
    return "0900" not in collation and "nopad" not in collation and collation != "binary"


def finest_collation(charset: str) -> str:
    """The collation in which only equal bytes are equal.

    A dialect writes another collation instead if its database does not have this one.
    """
    return "utf8mb4_0900_bin" if charset == "utf8mb4" else f"{charset}_nopad_bin"


def joined_collation(
    charset: str, found: Collection[tuple[str, str]], defaults: Collection[str] = ()
) -> str:
    """The least collation of the joined character set that is as fine as all of these.

    A collation is finer than another when it distinguishes all values that the other distinguishes.
    ``_bin`` is finer than every collation that pads; ``finest_collation`` is finer than all.

    Args:
        charset: See ``joined_charset``.
        found: Pairs of character set and collation, at least one; "" is the default of a server.
        defaults: The default collations of utf8mb4 on all servers that the pairs may be from; empty
            when they are not known.

    Returns:
        The collation; "" means each server's default. It is "" only if every collation in
        ``found`` is "".
    """
    names = {_carried(*one, charset) for one in found}
    if "" in names and len(names) > 1:
        names = names - {""} | _meant_by_default(charset, found, defaults)
    if len(names) == 1:
        return names.pop()
    orders = [_order_of(charset, name) for name in sorted(names)]
    first = orders[0]
    if first is not None and all(o is not None and o.family == first.family for o in orders):
        for order in orders[1:]:
            assert order is not None
            first = first.joined(order)
        return f"{charset}_{first.suffix}"
    every_one_pads = all(pads(charset, name) for name in names)
    if every_one_pads:
        return f"{charset}_bin"
    # utf8mb4_nopad_bin (MariaDB) and utf8mb4_0900_bin (MySQL) name the same order.
    nopad = f"{charset}_nopad_bin"
    return nopad if nopad in names else finest_collation(charset)


def server_defaults(charset: str, defaults: Collection[str]) -> frozenset[str]:
    """The default collations of a character set on servers that may differ in it.

    Args:
        charset: Any.
        defaults: The servers' default collations of utf8mb4; empty when they are not known.

    Returns:
        Empty when they are not known, or when the default is the same on all servers.
    """
    if charset == "utf8mb4":
        return frozenset(defaults)
    if charset not in _UCA1400_DEFAULTS:
        return frozenset()
    suffixes = ("uca1400_ai_ci" if "uca1400" in name else "general_ci" for name in defaults)
    return frozenset(f"{charset}_{suffix}" for suffix in suffixes)


def _meant_by_default(
    charset: str, found: Collection[tuple[str, str]], defaults: Collection[str]
) -> set[str]:
    """The collations of ``charset`` that "" may mean in ``found``.

    Source: ``charsets.default_collation``; MariaDB made uca1400 the default of both utf8mb3 and
    utf8mb4.
    """
    sources = {source for source, collation in found if not collation}
    meant = set[str]()
    if charset in sources and charset == "utf8mb4":
        meant |= set(defaults) or {""}
    elif charset in sources:
        meant.add("")
    if "utf8mb3" in sources - {charset}:
        meant.add(f"{charset}_general_ci")
        meant |= {name for name in defaults if "uca1400" in name}
    return meant


def _carried(source: str, collation: str, charset: str) -> str:
    """The collation of ``charset`` that is at least as fine as this one of ``source``."""
    if source == charset:
        return collation
    if (source, charset) == ("utf8mb3", "utf8mb4"):
        if not collation:
            return ""
        if same := _SAME_IN_UTF8MB4.fullmatch(collation):
            return f"{charset}_{same['suffix']}"
    return f"{charset}_bin" if pads(source, collation) else finest_collation(charset)


def _order_of(charset: str, collation: str) -> _Order | None:
    if charset_of(collation) != charset:
        return None
    found = _ORDER.fullmatch(collation.removeprefix(f"{charset}_"))
    if found is None:
        return None
    return _Order(
        found["family"],
        pads(charset, collation),
        found["accents"] == "s",
        found["case"] == "s",
        bool(found["kana"]),
    )
