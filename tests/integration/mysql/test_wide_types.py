"""Widening on servers: what is in a column stays what it is when the column becomes the join."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations
from typing import cast

import pymysql
import pytest

from shardmerge.schemas.lattice.charset_order import (
    joined_charset,
    joined_collation,
    pads,
    widest_character,
)
from shardmerge.schemas.lattice.type_join import WIDE, joined_type, value_type
from shardmerge.schemas.model.charsets import charset_name, collation_name
from shardmerge.schemas.model.mysql_text import column_type
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.target.dialects.dialect import FittedColumn, Place
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.spark_sink.rows.values.readers import reader
from shardmerge.spark_sink.targets.mysql.lines.encoders import literals

from .twin import HOME, Twin

_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXTS = ("'a'", "'é'", "'€'", "'字'", "'😀'", "'it''s a\\ttab\\\\'")
_LENGTHS = (1, 63, 64, 85, 86, 255, 256, 300, 16_383, 20_000)
FAMILIES: tuple[tuple[str, ...], ...] = (
    (
        *(f"{n}{sign}" for n in _INTEGERS for sign in ("", " unsigned")),
        *("decimal(5,2)", "decimal(10,0)", "decimal(20,0) unsigned"),
        *("decimal(30,30)", "decimal(38,9)"),
    ),
    ("float", "double", "float unsigned"),
    (
        "char(9) charset latin1", "varchar(9) charset ascii", "varchar(300) charset latin1",
        "tinytext charset latin1", "text charset latin1", "varchar(80) charset utf8mb3",
        "varchar(20000) charset utf8mb3", "tinytext charset utf8mb3", "char(9) charset utf8mb4",
        "varchar(255) charset utf8mb4", "tinytext charset utf8mb4", "text charset utf8mb4",
        "varchar(9) charset latin2", "varchar(9) charset gbk", "varchar(9) charset ucs2",
        "varchar(9) charset utf16", "text charset cp1251", "varchar(9) charset utf8mb4 collate "
        "utf8mb4_unicode_ci", "varchar(9) charset latin1 collate latin1_bin",
    ),
    ("binary(5)", "varbinary(300)", "tinyblob", "blob", "varbinary(9)"),
    ("bit(3)", "bit(64)"),
    ("time", "time(3)", "time(6)"),
    ("datetime", "datetime(6)"),
    ("enum('a','é') charset latin1", "enum('a','é','字') charset utf8mb4"),
    ("set('a','b') charset latin1", "set('a','b','c') charset utf8mb3"),
)  # fmt: skip
_OTHERS = (
    "0", "1.5", "0.1", "-0.1", "3.4028234663852886e38", "1.7976931348623157e308", "4.9e-324",
    "x'00'", "x'ff00ff0000'", "x'2020'", "b'111'", "'-838:59:59'", "'12:00:00.123456'",
    "'9999-12-31 23:59:59.999999'", "'1000-01-01 00:00:00'", "'a,b'", "'b'", "''",
)  # fmt: skip


def _limits(kind: ColumnType) -> Iterator[str]:
    """SQL of values at the limits of a type, those of others among them: a server refuses them."""
    yield from _TEXTS
    yield from _OTHERS
    for bits in _INTEGERS.values():
        yield from (str(n) for n in (2 ** (bits - 1), 2 ** (bits - 1) - 1, 2**bits - 1))
        yield str(-(2 ** (bits - 1)))
    digits, scale = kind.length or 10, kind.scale or 0
    if kind.name == "decimal":
        yield from (f"{sign}{10**digits - 1}e-{scale}" for sign in ("", "-"))
        yield f"{sign_of(kind)}{Decimal(10**digits - 1).scaleb(-scale):f}"
    lengths = {*_LENGTHS, kind.length or 1, 255 // 2, 255 // 3, 65_535, 65_535 // 2, 65_535 // 3}
    for character in ("a", "é", "€", "ł", "я", "字", "😀"):
        yield from (f"REPEAT('{character}', {n})" for n in sorted(lengths))
    yield from (f"REPEAT(x'ff', {n})" for n in sorted(lengths))


def sign_of(kind: ColumnType) -> str:
    return "" if kind.unsigned else "-"


def _kind(twin: Twin, text: str) -> ColumnType | None:
    """The type of a fresh table's column; None where the server has no such type."""
    twin.is_taken("DROP TABLE IF EXISTS t")
    twin.tracked.pop((HOME, "t"), None)
    try:
        if not twin.execute(f"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, c {text})"):
            return None
    except pymysql.MySQLError:
        return None
    column = twin.tracked[HOME, "t"].column("c")
    assert column is not None
    return column.type


def _fitted(twin: Twin, kind: ColumnType) -> ColumnType:
    """The type as a target of the server's kind and version has it."""
    server = twin.context
    version = ".".join(map(str, server.version))
    dialect = dialect_of(server.flavour, version)
    fitted = dialect.fit_column(Column("c", kind), Place())
    assert isinstance(fitted, FittedColumn), fitted
    return fitted.column.type


def _shown(twin: Twin, kind: ColumnType) -> list[object]:
    """Values in a form that does not depend on the type, to the last bit."""
    if kind.charset:
        what = "HEX(CONVERT(c USING utf8mb4))"
    elif kind.is_binary or kind.name == "bit":
        what = "c + 0" if kind.name == "bit" else "HEX(c)"
    elif kind.name in ("float", "double"):
        what = "c + 0e0"
    elif kind.name in ("time", "datetime"):
        what = f"CAST(c AS {kind.name.upper()}(6))"
    else:
        what = "c"
    return [value for (value,) in twin.query(f"SELECT {what} FROM t ORDER BY id")]


def test_values_at_the_limits_are_the_same_after_the_column_became_the_join(twin: Twin) -> None:
    tried = values = 0
    for family in FAMILIES:
        kinds = {text: kind for text in family if (kind := _kind(twin, text)) is not None}
        becomes: dict[str, list[ColumnType]] = {text: [] for text in kinds}
        for (one, a), (two, b) in combinations(kinds.items(), 2):
            joined = joined_type((a, b), WIDE)
            assert isinstance(joined, ColumnType), (one, two, joined)
            wide = _fitted(twin, joined)
            for text, kind in ((one, a), (two, b)):
                if value_type(kind) != value_type(wide):
                    becomes[text].append(wide)
        for text, widened in becomes.items():
            if not widened:
                continue
            before = _filled(twin, text, kinds[text])
            assert before, text
            # Joined with others, a type often becomes the same one: the server does that once.
            for wide in dict.fromkeys(widened):
                twin.query("DROP TABLE IF EXISTS t")
                twin.query("CREATE TABLE t LIKE filled")
                twin.query("INSERT INTO t SELECT * FROM filled")
                twin.query(f"ALTER TABLE t MODIFY c {column_type(wide)}")
                assert not twin.query("SHOW WARNINGS LIMIT 1") or _is_about_names(twin), wide
                assert _shown(twin, wide) == before, (text, wide)
            tried, values = tried + len(widened), values + len(before) * len(widened)
    assert tried > 150
    assert values > 3_000


def _filled(twin: Twin, text: str, kind: ColumnType) -> list[object]:
    """The values that a column of a type takes, as the table ``filled`` has them."""
    assert _kind(twin, text) == kind
    twin.query("SET SESSION sql_mode = 'STRICT_ALL_TABLES'")
    for value in _limits(kind):
        if not (kind.charset and "x'" in value):  # bytes that are no text
            twin.is_taken(f"INSERT INTO t (c) VALUES ({value})")
    before = _shown(twin, kind)
    twin.query("DROP TABLE IF EXISTS filled")
    twin.query("RENAME TABLE t TO filled")
    return before


def _is_about_names(twin: Twin) -> bool:
    """Whether the server only warns that utf8mb3 and its collations will go."""
    return all("utf8" in str(row[2]) or "deprecated" in str(row[2]) for row in _warnings(twin))


def _warnings(twin: Twin) -> Sequence[tuple[object, ...]]:
    return twin.query("SHOW WARNINGS")


_PLANES = {
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "utf8mb3": "utf-8",
    "ucs2": "utf-16-be",
}  # fmt: skip


def _codes(charset: str, most_bytes: int) -> list[bytes]:
    """Codes of a character set: all of one and two bytes, or a sample of Unicode."""
    if charset in _PLANES:
        last = 0x110000 if charset.startswith(("utf16", "utf32")) else 0x10000
        numbers = (n for n in range(1, last, 7) if not 0xD800 <= n < 0xE000)
        return [chr(n).encode(_PLANES[charset]) for n in numbers]
    found = [bytes([n]) for n in range(256)]
    if most_bytes > 1:
        found += [bytes([a, b]) for a in range(0x80, 256) for b in range(256)]
    return found


def test_every_character_of_a_set_that_is_widened_becomes_one_of_utf8mb4_and_the_same_again(
    twin: Twin,
) -> None:
    known = 0
    sets = twin.query("SELECT character_set_name, maxlen FROM information_schema.character_sets")
    for named, most_bytes in sets:
        charset = charset_name(str(named))
        wide = joined_charset([charset, "utf8mb4"])
        if wide is None or charset in ("binary", "utf8mb4"):
            continue
        known += 1
        twin.query("DROP TABLE IF EXISTS codes")
        twin.query("CREATE TABLE codes (b VARBINARY(4) PRIMARY KEY)")
        codes = _codes(charset, int(str(most_bytes)))
        for at in range(0, len(codes), 5_000):
            values = ",".join(f"(0x{code.hex()})" for code in codes[at : at + 5_000])
            twin.query(f"INSERT INTO codes VALUES {values}")
        text = f"CONVERT(b USING {named})"
        unicode = f"CONVERT({text} USING utf8mb4)"
        rows = twin.query(
            f"SELECT HEX(b), HEX({unicode}), HEX(CONVERT({unicode} USING {named})) FROM codes"
            f" WHERE HEX({text}) = HEX(b) AND CHAR_LENGTH({text}) = 1"
        )
        # A code for which the server has no character becomes '?' or U+FFFD.
        characters = [r for r in rows if r[1] not in ("3F", "EFBFBD", "", None)]
        assert len(characters) >= (0x5E if charset != "ascii" else 0x7F), charset
        assert [r for r in characters if r[0] != r[2]] == [], charset
        widest = max(len(str(r[1])) // 2 for r in characters)
        assert widest <= widest_character(charset, "utf8mb4"), charset
        if joined_charset(["ascii", charset]) == charset != "utf8mb3":
            assert all(r[0] == r[1] for r in characters if str(r[0]) < "80"), charset
    assert known > 25


def _collations(twin: Twin, charset: str) -> list[str]:
    rows = twin.query(
        "SELECT collation_name FROM information_schema.collations"
        f" WHERE character_set_name = '{charset}' ORDER BY 1"
    )
    return [collation_name(str(name)) for (name,) in rows]


@pytest.mark.parametrize("charset", ["latin1", "utf8mb4"])
def test_the_name_of_a_collation_tells_whether_it_pads(twin: Twin, charset: str) -> None:
    for collation in _collations(twin, charset):
        text = f"CONVERT('{{}}' USING {charset}) COLLATE {collation}"
        ((equal,),) = twin.query(f"SELECT {text.format('a')} = {text.format('a ')}")
        assert bool(equal) == pads(charset, collation), collation


_ALIKE = (
    ("a", "A"), ("a", "á"), ("a", "a "), ("ss", "ß"), ("か", "カ"), ("o", "ö"), ("ae", "æ"),
    ("1", "¹"), ("ə", "Ə"), ("i", "ı"), ("字", "字 "), ("v", "w"),
)  # fmt: skip


def test_the_joined_collation_tells_apart_what_either_one_does(twin: Twin) -> None:
    there = _collations(twin, "utf8mb4")
    told = {
        collation: {
            pair
            for pair in _ALIKE
            if twin.query(f"SELECT '{pair[0]}' = '{pair[1]}' COLLATE {collation}")[0][0] == 0
        }
        for collation in there
    }
    joined = 0
    for a, b in combinations(there, 2):
        both = joined_collation("utf8mb4", [("utf8mb4", a), ("utf8mb4", b)])
        if both not in told:
            both = "utf8mb4_nopad_bin" if "utf8mb4_nopad_bin" in told else ""
        if both:
            joined += 1
            assert told[both] >= told[a] | told[b], (a, b, both)
    assert joined > 100


_READ: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("bigint", (2**63 - 1, -(2**63), 0)),
    ("bigint unsigned", (2**64 - 1, 0)),
    ("int unsigned", (2**32 - 1,)),
    ("decimal(20,0)", ("99999999999999999999", "-99999999999999999999")),
    ("decimal(38,10)", ("9999999999999999999999999999.9999999999", "-0.0000000001")),
    ("float", (0.1, 3.4028235e38, -1.17549435e-38, 16777215.0)),
    ("double", (0.1, 1.7976931348623157e308, 5e-324)),
    ("varchar(9) charset latin1", ("é€ÿ", "it's", "")),
    ("text charset utf8mb4", ("字😀\n\\", "a ")),
    ("binary(3)", (b"\xff", b"")),
    ("varbinary(9)", (b"\x00 \xff", b"")),
    ("blob", (b"\x00\x01",)),
)
"""Types of shards, and values as Debezium reads them from the binlog (bytes: in Avro)."""
_JOINED = (
    ("bigint", "bigint unsigned"), ("int unsigned", "bigint"), ("bigint", "decimal(38,10)"),
    ("bigint unsigned", "decimal(38,10)"), ("decimal(20,0)", "decimal(38,10)"),
    ("float", "double"), ("varchar(9) charset latin1", "text charset utf8mb4"),
    ("binary(3)", "varbinary(9)"), ("varbinary(9)", "blob"), ("binary(3)", "blob"),
)  # fmt: skip


def test_what_the_sink_writes_into_the_join_is_what_the_shards_own_column_becomes(
    twin: Twin,
) -> None:
    """Through the encoder of the shard's type, beside the same values in a column of that type."""
    values = dict(_READ)
    for pair in _JOINED:
        kinds = [kind for text in pair if (kind := _kind(twin, text)) is not None]
        joined = joined_type(kinds, WIDE)
        assert isinstance(joined, ColumnType)
        wide = _fitted(twin, joined)
        for text, kind in zip(pair, kinds, strict=True):
            how = reader(kind, base64=False)
            written = literals(how.form, how.read(values[text]))
            shown = []
            for first in (kind, wide):
                twin.query("DROP TABLE IF EXISTS t")
                definition = f"id INT AUTO_INCREMENT PRIMARY KEY, c {column_type(first)}"
                twin.query(f"CREATE TABLE t ({definition})")
                for literal in written:
                    twin.query(f"INSERT INTO t (c) VALUES ({literal})")
                twin.query(f"ALTER TABLE t MODIFY c {column_type(wide)}")
                shown.append(_shown(twin, wide))
            assert shown[0] == shown[1], (text, wide)
            if kind.name in ("float", "decimal") or kind.is_integer:
                read = [Decimal(str(v)) for v in values[text]]
                if kind.name == "float":
                    read = [Decimal(struct.unpack("f", struct.pack("f", v))[0]) for v in read]
                assert [Decimal(cast("float", v)) for v in shown[1]] == read, (text, wide)
