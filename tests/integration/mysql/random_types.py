"""Random column types with defaults that suit them, and what a server's version takes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

COLUMNS = ("a", "b", "c", "d", "e", "f", "Gg", "h h", "i`j", "select")
_COMMON_CHARSETS = ("latin1", "utf8mb4", "utf8", "ascii", "cp1251", "ucs2", "utf16")
_COMMON_COLLATIONS = (
    "utf8mb4_bin", "latin1_bin", "utf8mb4_general_ci", "utf8_general_ci", "latin1_german1_ci",
    "utf8mb4_unicode_ci", "ascii_general_ci", "utf8_bin", "latin1_swedish_ci",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands, by flavour and version."""

    flavour: str
    version: tuple[int, ...]

    def has(self, mysql: tuple[int, ...] | None, mariadb: tuple[int, ...] | None) -> bool:
        """Whether it is at least that version of its flavour; None is "never"."""
        least = mariadb if self.is_mariadb else mysql
        return least is not None and self.version >= least

    @property
    def is_mariadb(self) -> bool:
        return self.flavour == "mariadb"

    @property
    def expression_defaults(self) -> bool:
        return self.has((8, 0, 13), (10, 2))

    @property
    def invisible_columns(self) -> bool:
        return self.has((8, 0, 23), (10, 3))

    @property
    def functional_indexes(self) -> bool:
        return self.has((8, 0, 13), None)

    @property
    def renames_columns(self) -> bool:
        return self.has((8,), (10, 5, 2))

    @property
    def stored_checks(self) -> bool:
        return self.has((8, 0, 16), (10, 2, 1))

    @property
    def collations(self) -> tuple[str, ...]:
        return (
            (*_COMMON_COLLATIONS, "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs")
            if self.has((8,), None)
            else _COMMON_COLLATIONS
        )


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def charset_name(chance: Random) -> str:
    return chance.choice((*_COMMON_CHARSETS, "utf8mb4", "latin1", "binary"))


def table_charset(chance: Random, dialect: Dialect) -> str:
    """A table's or a database's default, in one of the ways to say it."""
    collation = chance.choice(dialect.collations)
    return chance.choice(
        (
            f"DEFAULT CHARSET={charset_name(chance)}",
            f"CHARACTER SET {charset_name(chance)}",
            f"COLLATE {collation}",
            f"COLLATE {collation} CHARSET {collation.partition('_')[0]}",
            f"CHARSET {collation.partition('_')[0]} COLLATE {collation}",
        )
    )


def charset(chance: Random, dialect: Dialect) -> str:
    """What may stand behind a string type."""
    number = chance.random()
    if number < 0.15:
        word = chance.choice(("CHARACTER SET", "CHARSET"))
        return f" {word} {chance.choice(_COMMON_CHARSETS)}"
    if number < 0.25:
        return f" COLLATE {chance.choice(dialect.collations)}"
    if number < 0.3:
        return " CHARACTER SET latin1 COLLATE latin1_bin"
    return chance.choice((" BINARY", " ASCII", " UNICODE")) if number < 0.35 else ""


@dataclass(frozen=True, slots=True)
class Typed:
    """A type's text, defaults that suit it, and whether it may be AUTO_INCREMENT."""

    text: str
    defaults: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    is_integer: bool = False


def any_type(chance: Random, dialect: Dialect) -> Typed:
    """A column type."""
    return chance.choice(_TYPES)(chance, dialect)


def _integer(chance: Random, dialect: Dialect) -> Typed:
    name = chance.choice(
        (
            "TINYINT", "TINYINT(1)", "SMALLINT", "MEDIUMINT(8)", "INT", "INTEGER(11)", "BIGINT",
            "BOOL", "INT1", "INT8", "MIDDLEINT", "INT4(5)", "INT",
        )
    )  # fmt: skip
    sign = "" if name == "BOOL" else chance.choice(("", "", "", " UNSIGNED", " ZEROFILL"))
    values = ("0", "5", "'7'", "0x10", "+1", "b'11'", "1.4", "TRUE", "' 8 '", "1e1")
    return Typed(name + sign, values, ("1 + 2", "ABS(-3)", "LENGTH('abc')"), is_integer=True)


def _decimal(chance: Random, dialect: Dialect) -> Typed:
    name = chance.choice(("DECIMAL", "NUMERIC", "DEC", "FIXED"))
    size = chance.choice(
        (f"({chance.randint(4, 20)},{chance.randint(0, 3)})", "(7)", "", "(65,30)")
    )
    sign = chance.choice(("", "", "", " UNSIGNED", " ZEROFILL"))
    return Typed(name + size + sign, ("0", "1.5", "'2.25'", ".5", "1e2", "1.005"), ("1.5 * 2",))


def _floating(chance: Random, dialect: Dialect) -> Typed:
    name = chance.choice(
        ("FLOAT", "DOUBLE", "REAL", "FLOAT(30)", "DOUBLE(9,3)", "FLOAT(7,2)", "DOUBLE PRECISION",
         "FLOAT4", "FLOAT8", "FLOAT(24)")
    )  # fmt: skip
    sign = chance.choice(("", "", "", " UNSIGNED", " ZEROFILL"))
    values = ("0", "1.5", "1e2", "'3'", "0.1", "1234567.8", "1e-7")
    return Typed(name + sign, values, ("PI()", "1 / 3"))


def _bit(chance: Random, dialect: Dialect) -> Typed:
    size = chance.choice(("", f"({chance.randint(2, 16)})", "(64)"))
    return Typed(f"BIT{size}", ("b'1'", "1", "0x01", "b'0'", "TRUE"))


def _string(chance: Random, dialect: Dialect) -> Typed:
    name = chance.choice(
        ("CHAR", "VARCHAR", "VARCHAR", "NVARCHAR", "NCHAR", "CHARACTER VARYING",
         "NATIONAL VARCHAR", "CHARACTER")
    )  # fmt: skip
    is_long = name.endswith(("VARCHAR", "VARYING"))
    length = chance.choice((1, 5, 20, 255, 300, 900) if is_long else (1, 5, 20, 255))
    national = name.startswith("N")
    values = ("''", "'x'", "'5'", "0x61", "'a '", "5", "'it''s'", r"'a\nb'", r"'\\'", "TRUE", '"q"')
    return Typed(
        f"{name}({length}){'' if national else charset(chance, dialect)}",
        values,
        # One character: MySQL 8.0.15 refuses a longer one after it has changed the table.
        ("CONCAT('a', '')", "UPPER('x')", "'x'"),
    )


def _text(chance: Random, dialect: Dialect) -> Typed:
    name = chance.choice(
        ("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "TEXT(50)", "TEXT(9000)", "LONG",
         "LONG VARCHAR")
    )  # fmt: skip
    values = ("'x'", "''", "5") if dialect.is_mariadb else ()
    return Typed(name + charset(chance, dialect), values, ("'x'", "CONCAT('a', 'b')"))


def _binary(chance: Random, dialect: Dialect) -> Typed:
    text, values = chance.choice(
        (
            ("BINARY(3)", ("'ab'", "0x410042", "0x414243")),
            ("BINARY", ("'a'", "0x00")),
            ("VARBINARY(20)", ("x'6162'", "'it''s'", "5", "''")),
            ("VARBINARY(300)", ("'ab'",)),
            ("BLOB", ()), ("TINYBLOB", ()), ("MEDIUMBLOB", ()), ("LONGBLOB", ()),
            ("BLOB(90)", ()), ("BLOB(70000)", ()), ("LONG VARBINARY", ()),
        )
    )  # fmt: skip
    return Typed(text, values, ("'x'", "UNHEX('41')"))


def _moment(chance: Random, dialect: Dialect) -> Typed:
    fsp = chance.choice(("", "", "", "(0)", "(3)", "(6)"))
    now = f"NOW{fsp or '()'}"
    values = (
        f"CURRENT_TIMESTAMP{fsp}", "'2020-01-02 03:04:05'", f"{now} ON UPDATE {now}",
        "20200102030405", "'2020-1-2'", "'0000-00-00 00:00:00'", "'2020-01-02 03:04:05.678'",
        f"NULL ON UPDATE CURRENT_TIMESTAMP{fsp}", f"LOCALTIME{fsp}",
        "TIMESTAMP'2020-01-02 03:04:05'",
    )  # fmt: skip
    return Typed(chance.choice(("DATETIME", "TIMESTAMP")) + fsp, values, ("NOW()", "NOW(3)"))


def _date(chance: Random, dialect: Dialect) -> Typed:
    text, values = chance.choice(
        (
            ("DATE", ("'2020-2-9'", "20200209", "'0000-00-00'", "DATE'2020-02-09'", "'20-02-09'")),
            ("TIME(2)", ("'5'", "'1:2:3.456'", "'00:00'")),
            ("TIME", ("'10:11'", "-101112", "'1 2:3:4'", "TIME'10:11:12'")),
            ("YEAR", ("'99'", "5", "0", "2024", "'0'")),
            ("YEAR(4)", ("1999",)),
        )
    )
    expressions = {"DATE": ("CURDATE()", "NOW() + INTERVAL 1 DAY"), "TIME": ("CURTIME()",)}
    return Typed(text, values, expressions.get(text, ()))


def _enumeration(chance: Random, dialect: Dialect) -> Typed:
    elements = chance.choice(
        ("'u','v','w''x'", "'v'", "'v','a b','z '", "'u','v','','5'", r"'u','v','\\n'", "0x75,'v'")
    )
    values = ("'v'", "'V'", "'u'", "1", "''", "2")
    return Typed(f"{chance.choice(('ENUM', 'SET'))}({elements}){charset(chance, dialect)}", values)


def _json(chance: Random, dialect: Dialect) -> Typed:
    return Typed("JSON", ("'{}'",) if dialect.is_mariadb else (), ("JSON_ARRAY()", "'{}'"))


def _spatial(chance: Random, dialect: Dialect) -> Typed:
    name = chance.choice(
        ("POINT", "GEOMETRY", "LINESTRING", "POLYGON", "MULTIPOINT", "GEOMETRYCOLLECTION",
         "MULTILINESTRING", "MULTIPOLYGON")
    )  # fmt: skip
    srid = " SRID 0" if dialect.has((8,), None) and chance.random() < 0.3 else ""
    return Typed(name + srid)


def _own(chance: Random, dialect: Dialect) -> Typed:
    """Types that only some servers have."""
    if dialect.has(None, (10, 7)):
        return chance.choice(
            (
                Typed("INET6", ("'::1'", "'::'")),
                Typed("UUID", ("'123e4567-e89b-12d3-a456-426655440000'",), ("UUID()",)),
            )
        )
    if dialect.has((9,), None):
        return Typed(chance.choice(("VECTOR", "VECTOR(3)")))
    return _integer(chance, dialect)


_TYPES = (
    _integer, _integer, _integer, _integer, _decimal, _floating, _bit, _string, _string, _string,
    _string, _text, _text, _binary, _binary, _moment, _moment, _date, _date, _enumeration,
    _enumeration, _json, _spatial, _own,
)  # fmt: skip
