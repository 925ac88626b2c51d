"""Types and boundary values whose way into the target is looked at one by one, as data.

A literal that Debezium does not give exactly names its limit (``value_limits``): the test
compares what it sees with that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_TEXT = "HEX({0})"
_CHAR = "CAST({0} AS CHAR)"
_DOUBLE = "{0} + 0e0"
_BITS = "CAST({0} AS UNSIGNED)"
"""As it is, FLOAT is shown with six digits."""
_JSON = _CHAR


@dataclass(frozen=True, slots=True)
class Item:
    """A column and its values.

    Attributes:
        column: Its name.
        definition: Its type, as a statement has it.
        literals: SQL literals; of a NOT NULL column none is NULL.
        shown: SQL that shows every bit of a value; ``{0}`` is the column.
        is_key: Whether it is tried as a primary key too.
    """

    column: str
    definition: str
    literals: tuple[str, ...]
    shown: str = _CHAR
    is_key: bool = True


def _integers() -> Iterator[Item]:
    sizes = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
    for name, bits in sizes.items():
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        yield Item(f"i_{name}", name, (str(low), str(high), "0", "-1", "1", "NULL"))
        most = (1 << bits) - 1
        unsigned = (str(most), str(most - 1), str(high + 1), str(high), "0", "NULL")
        yield Item(f"u_{name}", f"{name} UNSIGNED", unsigned)
        yield Item(f"z_{name}", f"{name}(3) ZEROFILL", (str(most), "0", "7", "NULL"))
    for name in ("INT1", "INT2", "INT3", "INT4", "INT8", "MIDDLEINT", "INTEGER"):
        yield Item(f"a_{name}", name, ("-128", "127", "0", "NULL"))
        yield Item(f"b_{name}", f"{name} UNSIGNED", ("255", "128", "0", "NULL"))
    truths = ("0", "1", "2", "-1", "127", "-128")
    for name in ("BOOL", "BOOLEAN", "TINYINT(1)", "INT1(1)"):
        yield Item(f"t_{name}", name, (*truths, "NULL"))
        yield Item(f"n_{name}", f"{name} NOT NULL", truths)
        yield Item(f"d_{name}", f"{name} NOT NULL DEFAULT 1", truths)
    yield Item("d_true", "BOOL NOT NULL DEFAULT TRUE", truths)
    yield Item("t_unsigned", "TINYINT(1) UNSIGNED", ("255", "128", "1", "0", "NULL"))


def _numbers() -> Iterator[Item]:
    yield Item(
        "d_65_30",
        "DECIMAL(65,30)",
        (
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "0.000000000000000000000000000001",
            "-0.000000000000000000000000000001",
            "1e20",
            "0",
            "NULL",
        ),
    )
    yield Item("d_65_0", "DECIMAL(65,0)", ("9" * 65, "-" + "9" * 65, "1e64", "0", "NULL"))
    yield Item("d_30_30", "DECIMAL(30,30)", ("0." + "9" * 30, "-1e-30", "1e-7", "0", "NULL"))
    yield Item("d_10_2", "DECIMAL(10,2) UNSIGNED", ("99999999.99", "0.10", "0", "NULL"))
    yield Item("d_fixed", "FIXED(9,3)", ("-999999.999", "0.1", "NULL"))
    yield Item("d_dec", "DEC", ("-9999999999", "1", "NULL"))
    yield Item("d_numeric", "NUMERIC(5,5)", ("0.99999", "-0.00001", "NULL"))
    doubles = (
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "2.2250738585072014e-308",
        "5e-324",
        "-0.1e0",
        "1e15",
        "1e16",
        "1e22",
        "1e23",
        "2e-3",
        "9007199254740993",
        "123456789.125",
        "0.30000000000000004e0",
        "5.066837196502553e99",
        "NULL",
    )
    for name in ("DOUBLE", "REAL", "DOUBLE PRECISION", "FLOAT8", "FLOAT(53)", "FLOAT(25)"):
        yield Item(f"f_{name}", name, doubles, _DOUBLE)
    yield Item("f_double_u", "DOUBLE UNSIGNED", ("1e308", "0.1", "0", "NULL"), _DOUBLE)
    yield Item("f_double_m", "DOUBLE(20,5)", ("-99999999999.12345", "0.1", "NULL"), _DOUBLE)
    floats = (
        "3.4028234e38",
        "-3.4028234e38",
        "1.17549435e-38",
        "1e-45",
        "-0.1",
        "0.5",
        "16777217",
        "123456.789",
        "1e6",
        "1e0/3",
        "0",
        "NULL",
    )
    for name in ("FLOAT", "FLOAT4", "FLOAT(24)", "FLOAT(7)"):
        yield Item(f"f_{name}", name, floats, _DOUBLE, is_key=False)
    yield Item("f_float_u", "FLOAT UNSIGNED", ("16777217", "0.1", "0", "NULL"), _DOUBLE, False)
    yield Item("f_float_m", "FLOAT(9,3)", ("123456.789", "-0.125", "NULL"), _DOUBLE, False)
    for bits in (1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64):
        most = (1 << bits) - 1
        values = dict.fromkeys((str(most), str(most >> 1), "1", "0", "NULL"))
        yield Item(f"bit_{bits}", f"BIT({bits})", tuple(values), "{0} + 0")
        yield Item(f"bitn_{bits}", f"BIT({bits}) NOT NULL", (str(most), "0"), "{0} + 0")


DATES = (
    "0001-01-01",
    "0069-12-31",
    "0070-01-01",
    "0099-12-31",
    "0100-03-01",
    "1000-01-01",
    "1500-02-28",
    "1500-03-01",
    "1582-10-04",
    "1582-10-15",
    "1582-10-25",
    "1700-02-28",
    "1900-02-28",
    "1969-12-31",
    "1970-01-01",
    "1970-01-02",
    "2000-02-29",
    "2001-02-03",
    "2038-01-20",
    "9999-12-31",
)
LOST_DAYS = ("1582-10-05", "1582-10-10", "1582-10-14")
"""The Gregorian calendar has them, Java's old one has not."""
ZERO = "0000-00-00"
HALF_ZEROS = ("2026-00-00", "2026-05-00", "2026-00-10", "0000-05-05")


def _dates() -> Iterator[Item]:
    # Not among numbers: with a multiple of eight of them Debezium 3.6.1 cannot read MySQL 8.0.15's
    # table maps.
    yield Item("year", "YEAR", ("1901", "2155", "0", "'00'", "1970", "2000", "1999", "NULL"))
    yield Item("year_n", "YEAR NOT NULL", ("1901", "2155", "0", "1970", "2000"))
    yield Item("year_d", "YEAR NOT NULL DEFAULT 2001", ("0", "2001", "2155"))
    days = (*DATES, *LOST_DAYS, ZERO, *HALF_ZEROS)
    quoted = tuple(f"'{day}'" for day in days)
    yield Item("d", "DATE", (*quoted, "NULL"))
    yield Item("d_n", "DATE NOT NULL", quoted)
    yield Item("d_d", "DATE NOT NULL DEFAULT '2001-02-03'", quoted)
    yield Item("d_0", "DATE NOT NULL DEFAULT '0000-00-00'", quoted)
    yield Item("d_e", "DATE DEFAULT '2001-02-03'", (*quoted, "NULL"))
    for fsp in range(7):
        clocks: tuple[str, ...] = ("00:00:00", "23:59:59", "12:34:56")
        if fsp:
            clocks = (*clocks, "23:59:59." + "9" * fsp, "00:00:00." + "0" * (fsp - 1) + "1")
            clocks = (*clocks, "01:02:03." + "123456"[:fsp], "01:02:03." + "290000"[:fsp])
        moments = tuple(
            f"'{day} {clocks[n % len(clocks)]}'" for n, day in enumerate((*days, *DATES[-5:]))
        )
        kind = f"DATETIME({fsp})" if fsp else "DATETIME"
        yield Item(f"dt{fsp}", kind, (*moments, "NULL"))
        yield Item(f"dt{fsp}_n", f"{kind} NOT NULL", moments)
        yield Item(f"dt{fsp}_d", f"{kind} NOT NULL DEFAULT '2001-02-03 04:05:06'", moments)
        yield Item(f"dt{fsp}_0", f"{kind} NOT NULL DEFAULT '0000-00-00 00:00:00'", moments)
        now = f"CURRENT_TIMESTAMP({fsp})" if fsp else "CURRENT_TIMESTAMP"
        yield Item(f"dt{fsp}_c", f"{kind} NOT NULL DEFAULT {now}", moments)


def _times() -> Iterator[Item]:
    for fsp in range(7):
        texts = ["838:59:59", "-838:59:59", "00:00:00", "-00:00:01", "-23:59:59", "24:00:00"]
        if fsp:
            texts += ["838:59:58." + "9" * fsp, "-838:59:58." + "9" * fsp]
            texts += ["-00:00:00." + "0" * (fsp - 1) + "1", "00:00:00." + "0" * (fsp - 1) + "1"]
            texts += [f"00:00:01.{n:02d}"[: 9 + fsp] for n in range(100)][:: 1 if fsp == 2 else 9]
            texts += ["-00:00:00." + "290000"[:fsp], "-01:00:00." + "570000"[:fsp]]
        quoted = tuple(f"'{text}'" for text in dict.fromkeys(texts))
        kind = f"TIME({fsp})" if fsp else "TIME"
        yield Item(f"t{fsp}", kind, (*quoted, "NULL"))
        yield Item(f"t{fsp}_d", f"{kind} NOT NULL DEFAULT '-01:02:03'", quoted)
        stamps = ["1970-01-01 00:00:01", "2038-01-19 03:14:07", "0000-00-00 00:00:00"]
        # Hours that time zones skip or have twice.
        stamps += ["2021-03-28 01:30:00", "2021-03-28 02:30:00", "2021-10-31 00:30:00"]
        if fsp:
            stamps += ["2038-01-19 03:14:07." + "9" * fsp, "1970-01-01 00:00:01." + "1" * fsp]
            stamps += ["2001-01-01 00:00:00." + "290000"[:fsp]]
        quoted = tuple(f"'{text}'" for text in stamps)
        kind = f"TIMESTAMP({fsp})" if fsp else "TIMESTAMP"
        now = f"CURRENT_TIMESTAMP({fsp})" if fsp else "CURRENT_TIMESTAMP"
        yield Item(f"ts{fsp}", f"{kind} NULL", (*quoted, "NULL"))
        yield Item(f"ts{fsp}_n", f"{kind} NOT NULL DEFAULT {now}", quoted)
        yield Item(f"ts{fsp}_d", f"{kind} NOT NULL DEFAULT '2001-02-03 04:05:06'", quoted)
        yield Item(f"ts{fsp}_0", f"{kind} NOT NULL DEFAULT '0000-00-00 00:00:00'", quoted)


SINGLE_BYTE = (
    "ascii cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 geostd8 greek hebrew koi8r koi8u latin1 "
    "latin2 latin5 latin7 macce macroman swe7 tis620"
).split()
LOST_BYTES = {
    "cp1250": "81 83 88 90 98",
    "cp1251": "98",
    "cp1257": "81 83 88 8a 8c 90 98 9a 9c 9f a1 a5",
    "geostd8": "81 8d 8f 90 9d",
    "greek": "ae d2 ff",
    "hebrew": "a1 bf c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 ca cb cc cd ce cf d0 d1 d2 d3 d4 d5 d6 d7 d8 d9"
    " da db dc dd de fb fc ff",
    "latin1": "81 8d 8f 90 9d",
    "tis620": " ".join(
        f"{b:02x}" for b in (*range(0x80, 0xA1), *range(0xDB, 0xDF), *range(0xFC, 0x100))
    ),
}
"""Bytes that Debezium finds no character for in the binlog."""
UNMAPPED_BYTES = {
    "cp1256": "8a 8f 98 9a 9f aa c0 ff",
    "geostd8": "83 88 8a 8c 8e 98 99 9a 9c 9e 9f "
    + " ".join(f"{byte:02x}" for byte in (*range(0xE6, 0xFD), 0xFE, 0xFF)),
    "greek": "a4 a5 aa",
    "swe7": "7f",
}
"""Bytes that MySQL itself has no character for, and Debezium has."""
OTHER_CHARSETS = {
    "utf8": "aß€ж汉\u00a0\ufffd\u200b",
    "utf8mb4": "aß€ж汉😀𝒳\u0301\ufeff",
    "ucs2": "aß€ж汉\u2028",
    "utf16": "aß€ж汉😀",
    "utf16le": "aß€ж汉😀",
    "utf32": "aß€ж汉😀",
    "gbk": "a汉字€",
    "gb2312": "a汉字",
    "gb18030": "aß€ж汉字😀",
    "big5": "a漢字",
    "sjis": "aアｱ漢字",
    "cp932": "aアｱ漢字①～",
    "ujis": "aアｱ漢字",
    "eucjpms": "aアｱ漢字①～",
    "euckr": "a한글",
}


def _texts() -> Iterator[Item]:
    for charset in SINGLE_BYTE:
        top = 0x80 if charset in ("ascii", "swe7") else 0x100
        left_out = f"{LOST_BYTES.get(charset, '')} {UNMAPPED_BYTES.get(charset, '')}".split()
        codes = bytes(byte for byte in range(1, top) if f"{byte:02x}" not in left_out)
        parts = [codes[n : n + 16] for n in range(0, len(codes), 16)]
        literals: tuple[str, ...] = tuple(f"_{charset} X'{part.hex()}'" for part in parts)
        kind = f"VARCHAR(40) CHARACTER SET {charset}"
        yield Item(f"c_{charset}", kind, (*literals, "''", "NULL"), _TEXT, is_key=False)
    for charset, sample in OTHER_CHARSETS.items():
        literals = (f"'{sample}'", r"'\\~|\0 \' x'", "'tail  '", "''", "NULL")
        kind = f"VARCHAR(40) CHARACTER SET {charset}"
        yield Item(f"c_{charset}", kind, literals, _TEXT, is_key=False)
    odd = (
        r"'tab\t new\n ret\r q\' d\" b\\ NUL\0 \Z %s {p} \\N'",
        "'  s  '",
        "'NULL'",
        "'a'",
        "'A'",
    )
    for kind in ("CHAR(60)", "VARCHAR(60)"):
        for collation in ("utf8mb4_bin", "utf8mb4_general_ci"):
            name = f"k_{kind[:2]}_{collation[8:]}"
            literals = (*odd, "'é'", "'e'", "''", "NULL")
            # One of 'a' and 'A' can be the key of a collation that has one of them.
            yield Item(name, f"{kind} COLLATE {collation}", literals, _TEXT, "bin" in collation)
    for kind in ("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"):
        yield Item(f"x_{kind}", kind, (*odd, "REPEAT('€', 80)", "''", "NULL"), _TEXT, False)
    yield Item("nchar", "NCHAR(9)", ("'é€'", "''", "NULL"), _TEXT, False)
    yield Item("nvarchar", "NATIONAL VARCHAR(9)", ("'é€ '", "''", "NULL"), _TEXT, False)
    yield Item(
        "c_binary", "VARCHAR(20) CHARACTER SET binary", ("0x00ff80", "''", "NULL"), _TEXT, False
    )


def _bytes() -> Iterator[Item]:
    every = "0x" + "".join(f"{b:02x}" for b in range(256))
    yield Item("b4", "BINARY(4)", ("0x00FF0100", "0x61", "0x00000000", "0xFFFFFFFF", "NULL"), _TEXT)
    yield Item("b4_d", "BINARY(4) NOT NULL DEFAULT 'ab'", ("0x00", "0xff", "'ab'"), _TEXT)
    yield Item("b1", "BINARY", ("0x00", "0xFF", "NULL"), _TEXT)
    varying = (every, "''", "0x00", "0x0000", "0x5C4E", "0x0A", "0x20", "NULL")
    yield Item("vb", "VARBINARY(300)", varying, _TEXT)
    for kind in ("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"):
        some = (every[:400], "''", "0x00", "0x0000", "REPEAT(0x09, 200)", "NULL")
        yield Item(f"l_{kind}", kind, some, _TEXT, False)
    elements = r"'a','b c','d''e','2','','é€','f,g','h\\i','j\"k','0 '"
    enums = ("'a'", "'b c'", "'d''e'", "'2'", "''", "'é€'", "'f,g'", r"'h\\i'", "'j\"k'", "'0 '")
    yield Item("e", f"ENUM({elements})", (*enums, "NULL"), "CONCAT({0} + 0, {0})")
    yield Item("e_0", "ENUM('a','b')", ("'a'", "'wrong'", "NULL"), "CONCAT({0} + 0, {0})")
    yield Item(
        "e_l1", "ENUM('ä','ö') CHARACTER SET latin1", ("'ä'", "'ö'", "NULL"), "CONCAT({0} + 0, {0})"
    )
    many = ",".join(f"'m{n}'" for n in range(300))
    yield Item("e_300", f"ENUM({many})", ("'m0'", "'m255'", "'m299'", "NULL"), "{0} + 0")
    members = r"'x','y z','d''e','é€','q\\r'"
    sets = ("'x,y z'", "''", "'d''e,é€'", r"'x,y z,d''e,é€,q\\r'", "NULL")
    yield Item("s", f"SET({members})", sets, "CONCAT({0} + 0, {0})")
    wide = ",".join(f"'m{n}'" for n in range(64))
    all_64 = ",".join(f"m{n}" for n in range(64))
    yield Item("s_64", f"SET({wide})", (f"'{all_64}'", "'m63'", "'m0,m63'", "NULL"), _BITS)


JSON_DECIMALS = (
    "CAST(1.50 AS JSON)",
    "JSON_OBJECT('price', 12.3400, 'n', -0.05)",
    "CAST(12345678901234567890123456789.012345678901234567890123456789 AS JSON)",
    "CAST(99999999999999999999 AS JSON)",
)
"""A decimal that is not the text of a double."""


def _json() -> Iterator[Item]:
    documents = (
        """{"a": [1, 2.5, "t\\\\n€😀", null, true, false], "b": {}, "": [], "aa": {"z": 0}}""",
        "null",
        "true",
        "[]",
        "{}",
        '"text"',
        '""',
        r'"\\u0001\\u001f\\b\\f\\n\\r\\t\\"\\\\\\/\\u007f\\u2028"',
        "0",
        "-1",
        "32767",
        "-32768",
        "32768",
        "65535",
        "65536",
        "2147483647",
        "-2147483648",
        "2147483648",
        "4294967295",
        "4294967296",
        "10000000",
        "1000000000000000",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551615",
        "[4294967295, 65535, -32768, 2147483648, -2147483648, 18446744073709551615]",
        "1.0",
        "0.1",
        "-0.0",
        "3.14159",
        "1e7",
        "10000000.0",
        "123456789.0",
        "1e15",
        "1e16",
        "-1e15",
        "1e18",
        "18446744073709551616",
        "1e20",
        "1e22",
        "1e100",
        "-1e100",
        "1.5e300",
        "1e-3",
        "1e-4",
        "1e-5",
        "1e-14",
        "1e-15",
        "1e-16",
        "1.25e-20",
        "[1e15, 1000000000000000, 1e-7, 0.001]",
    )
    made = (
        *(f"'{document}'" for document in documents),
        "CAST(9007199254740993e0 AS JSON)",
        "CAST(0.30000000000000004e0 AS JSON)",
        "CAST(5.066837196502553e99 AS JSON)",
        "CAST(1.7976931348623157e308 AS JSON)",
        "CAST(2.2250738585072014e-308 AS JSON)",
        "CAST(5e-324 AS JSON)",
        "CAST(1.2345678901234567e-7 AS JSON)",
        "CAST(1234567.8901234567e0 AS JSON)",
        "CAST(1.5 AS JSON)",
        *JSON_DECIMALS,
        "CAST(DATE '2001-02-03' AS JSON)",
        "CAST(TIMESTAMP '2001-02-03 04:05:06.000007' AS JSON)",
        "CAST(TIMESTAMP '2001-02-03 04:05:06' AS JSON)",
        "CAST(TIME '-01:02:03.5' AS JSON)",
        "CAST(TIME '838:59:59' AS JSON)",
        "JSON_ARRAY(0x00ff, b'101', _binary 'bytes')",
        "JSON_ARRAY(REPEAT(0xfe, 200))",
        "JSON_OBJECT('big', REPEAT('x', 70000), 'n', 70000, 'd', 1e15)",
        "JSON_ARRAY(REPEAT('y', 70000), 2147483648, -2, 65535, 4294967295, 1.5e0, 'z')",
        "NULL",
    )
    yield Item("j", "JSON", made, _JSON, False)
    yield Item("j_n", "JSON NOT NULL", made[:12], _JSON, False)


def _shapes() -> Iterator[Item]:
    shapes = {
        "POINT": ("POINT(1 2)", "POINT(-1e300 5e-324)"),
        "LINESTRING": ("LINESTRING(0 0,1 1,2 3.5)",),
        "POLYGON": ("POLYGON((0 0,0 4,4 4,4 0,0 0),(1 1,1 2,2 2,2 1,1 1))",),
        "MULTIPOINT": ("MULTIPOINT(0 0,1 1)",),
        "MULTILINESTRING": ("MULTILINESTRING((0 0,1 1),(2 2,3 3))",),
        "MULTIPOLYGON": ("MULTIPOLYGON(((0 0,0 1,1 1,0 0)))",),
        "GEOMETRYCOLLECTION": ("GEOMETRYCOLLECTION(POINT(1 1))", "GEOMETRYCOLLECTION EMPTY"),
    }
    for kind, texts in shapes.items():
        literals = tuple(f"ST_GeomFromText('{text}')" for text in texts)
        yield Item(f"g_{kind}", kind, (*literals, "NULL"), _TEXT, False)
    every = tuple(f"ST_GeomFromText('{text}')" for texts in shapes.values() for text in texts)
    placed = "ST_GeomFromText('POINT(10 20)', 4326)"
    yield Item("g", "GEOMETRY", (*every, placed, "NULL"), _TEXT, False)
    yield Item("g_n", "GEOMETRY NOT NULL", (*every, placed), _TEXT, False)


FAMILIES: dict[str, tuple[Item, ...]] = {
    "integers": tuple(_integers()),
    "numbers": tuple(_numbers()),
    "dates": tuple(_dates()),
    "times": tuple(_times()),
    "texts": tuple(_texts()),
    "bytes": tuple(_bytes()),
    "json": tuple(_json()),
    "shapes": tuple(_shapes()),
}


UNMAPPED = tuple(
    Item(
        f"q_{charset}",
        f"VARCHAR(40) CHARACTER SET {charset}",
        tuple(f"_{charset} X'{byte}'" for byte in codes.split()),
        _TEXT,
        is_key=False,
    )
    for charset, codes in UNMAPPED_BYTES.items()
)
"""Apart from the families: a row of the binlog with such a byte holds its shard."""


def definitions(items: tuple[Item, ...], key: str = " PRIMARY KEY") -> str:
    """``id`` and every column."""
    return f"id INT{key}, " + ", ".join(f"`{i.column}` {i.definition}" for i in items)


def rows(items: tuple[Item, ...]) -> list[list[str]]:
    """Literals row by row; a column with fewer begins again with its first."""
    count = max(len(i.literals) for i in items)
    return [[i.literals[n % len(i.literals)] for i in items] for n in range(count)]


def insert(table: str, items: tuple[Item, ...], first: int = 1) -> Iterator[str]:
    """Statements that insert the rows, with ids from ``first`` on."""
    for n, row in enumerate(rows(items)):
        yield f"INSERT INTO {table} VALUES ({first + n}, {', '.join(row)})"


def shown(items: tuple[Item, ...]) -> str:
    """A select list that shows every bit of every column."""
    return ", ".join(["id", *(i.shown.format(f"`{i.column}`") for i in items)])
