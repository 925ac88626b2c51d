"""Which character set holds the texts of others, and which collation tells most values apart.

Both orders have a least upper bound of any set of theirs, or say that there is none. Of a character
set counts what its codes mean: a code for which MySQL has no character never leaves its shard
(``value_limits``).

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
"""Each character has one code, and becomes one of utf8mb3 and the same code again."""
_WHOLE = frozenset({"gb18030", "utf16", "utf16le", "utf32"})
"""Likewise with utf8mb4: their characters are those of all planes."""
_WITHOUT_ASCII = frozenset({"swe7", "ucs2", "utf16", "utf16le", "utf32"})
"""ASCII text has other bytes there, or other characters."""
_TWO_BYTES = frozenset({"dec8", "latin2", "latin5", "swe7"})
"""None of their characters has three bytes in UTF-8."""
_LEAST_BYTES = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
"""Of a character, where that is not one."""


def joined_charset(found: Collection[str]) -> str | None:
    """The least character set to which every text of these transcodes, and back.

    Args:
        found: At least one.

    Returns:
        One of them that holds the others, else utf8mb3 or utf8mb4; None where it is not known that
        every character survives.
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
    """Whether it is one to which others are widened."""
    return charset in ("utf8mb3", "utf8mb4")


def keeps_bytes(source: str, charset: str) -> bool:
    """Whether a text has the same bytes after it became one of the wider character set."""
    return source in (charset, _ASCII) or (source, charset) == ("utf8mb3", "utf8mb4")


def widest_character(source: str, charset: str) -> int:
    """Bytes that a character of one set has in another one that holds it, at most."""
    if source == _ASCII:
        return 1
    if source == charset or source in _WHOLE:
        return max_bytes(charset)
    return 2 if source in _TWO_BYTES else 3


def most_characters(charset: str, size_bytes: int) -> int:
    """How many characters may be in so many bytes."""
    return size_bytes // _LEAST_BYTES.get(charset, 1)


@dataclass(frozen=True, slots=True)
class _Order:
    """A Unicode collation whose name tells how fine it is.

    Attributes:
        family: The algorithm's version and the language.
        pads: Whether spaces at the end count as nothing.
        accents, case, kana: Whether it tells them apart.
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
    """Whether a collation takes 'a' and 'a ' for equal, as far as its name tells.

    Args:
        charset: Its character set.
        collation: "" is the default of its server, which with utf8mb4 may be either: it counts as
            one that does not.
    """
    if not collation:
        return charset != "utf8mb4"
    return "0900" not in collation and "nopad" not in collation and collation != "binary"


def finest_collation(charset: str) -> str:
    """The one that calls only equal bytes equal; a dialect replaces it where it is not there."""
    return "utf8mb4_0900_bin" if charset == "utf8mb4" else f"{charset}_nopad_bin"


def joined_collation(
    charset: str, found: Collection[tuple[str, str]], defaults: Collection[str] = ()
) -> str:
    """The least collation of the joined character set that is as fine as all of these.

    One that is finer than another tells all values apart that the other one does. Every one that
    pads is below ``_bin``, and all are below the finest one.

    Args:
        charset: See ``joined_charset``.
        found: Character sets and collations, at least one; "" is the default of a server.
        defaults: What utf8mb4 has by default, on all servers that these may be of; none where that
            is not known.

    Returns:
        "" where nothing else is found: each server's own.
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
    # Both names of utf8mb4 say the same, each on servers of its own kind.
    nopad = f"{charset}_nopad_bin"
    return nopad if nopad in names else finest_collation(charset)


def _meant_by_default(
    charset: str, found: Collection[tuple[str, str]], defaults: Collection[str]
) -> set[str]:
    """The collations that no collation stands for in some texts of a character set.

    Source: ``charsets.default_collation``; MariaDB took uca1400 for utf8mb3 and utf8mb4 alike.
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
    """A collation of another character set that is as fine as this one."""
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
