"""Boundary values of every MySQL type, as SQL literals."""

from __future__ import annotations

TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    # column: (definition, literals); a column with fewer literals repeats its last one
    "c_tinyint": ("TINYINT", ("-128", "127", "0", "NULL")),
    "c_tinyint_u": ("TINYINT UNSIGNED", ("255", "0", "NULL")),
    "c_bool": ("TINYINT(1)", ("1", "0", "-7", "NULL")),
    "c_smallint": ("SMALLINT", ("-32768", "32767", "NULL")),
    "c_smallint_u": ("SMALLINT UNSIGNED", ("65535", "0", "NULL")),
    "c_mediumint": ("MEDIUMINT", ("-8388608", "8388607", "NULL")),
    "c_mediumint_u": ("MEDIUMINT UNSIGNED", ("16777215", "0", "NULL")),
    "c_int": ("INT", ("-2147483648", "2147483647", "NULL")),
    "c_int_u": ("INT UNSIGNED", ("4294967295", "0", "NULL")),
    "c_bigint": ("BIGINT", ("-9223372036854775808", "9223372036854775807", "NULL")),
    "c_bigint_u": (
        "BIGINT UNSIGNED",
        ("18446744073709551615", "9223372036854775808", "0", "NULL"),
    ),
    "c_zerofill": ("INT(8) ZEROFILL", ("42", "0", "NULL")),
    "c_decimal": (
        "DECIMAL(65,30)",
        (
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "0.000000000000000000000000000001",
            "0",
            "NULL",
        ),
    ),
    "c_decimal_i": ("DECIMAL(20,0)", ("99999999999999999999", "-1", "0", "NULL")),
    "c_decimal_u": ("DECIMAL(10,2) UNSIGNED", ("99999999.99", "0.10", "NULL")),
    "c_float": ("FLOAT", ("3.4028234e38", "1.17549435e-38", "-0.1", "16777217", "NULL")),
    "c_double": (
        "DOUBLE",
        (
            "1.7976931348623157e308",
            "2.2250738585072014e-308",
            "-0.1",
            "1e15",
            "123456789.125",
            "NULL",
        ),
    ),
    "c_bit1": ("BIT(1)", ("b'1'", "b'0'", "NULL")),
    "c_bit8": ("BIT(8)", ("b'11111110'", "b'0'", "NULL")),
    "c_bit64": ("BIT(64)", ("0xFFFFFFFFFFFFFFFF", "0x0102030405060708", "0", "NULL")),
    "c_year": ("YEAR", ("1901", "2155", "0", "NULL")),
    "c_date": ("DATE", ("'1000-01-01'", "'9999-12-31'", "'0001-01-01'", "'1970-01-01'", "NULL")),
    "c_time": ("TIME", ("'838:59:59'", "'-838:59:59'", "'00:00:00'", "NULL")),
    "c_time6": (
        "TIME(6)",
        ("'838:59:58.999999'", "'-838:59:58.999999'", "'-00:00:00.000001'", "'00:00:00'", "NULL"),
    ),
    "c_datetime": ("DATETIME", ("'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "NULL")),
    "c_datetime3": (
        "DATETIME(3)",
        ("'1969-12-31 23:59:59.999'", "'9999-12-31 23:59:59.999'", "NULL"),
    ),
    "c_datetime6": (
        "DATETIME(6)",
        ("'1000-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'", "NULL"),
    ),
    "c_timestamp": (
        "TIMESTAMP NULL",
        ("'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2021-03-28 01:30:00'", "NULL"),
    ),
    "c_timestamp6": (
        "TIMESTAMP(6) NULL",
        ("'1970-01-01 00:00:01.000001'", "'2038-01-19 03:14:07.999999'", "NULL"),
    ),
    "c_char": ("CHAR(10)", ("'a'", "'aé€😀'", "''", "NULL")),
    "c_varchar": (
        "VARCHAR(255)",
        (
            r"'tab\t newline\n return\r quote\' double\" back\\slash NUL\0 \Z %s {path} \\N'",
            "'  spaces  '",
            "''",
            "'NULL'",
            r"'\\N'",
            "'𝒳😀'",
            "NULL",
        ),
    ),
    "c_latin1": ("VARCHAR(20) CHARACTER SET latin1", ("'äöü€'", "''", "NULL")),
    "c_gbk": ("VARCHAR(20) CHARACTER SET gbk", ("'汉字'", "''", "NULL")),
    "c_utf8": ("VARCHAR(20) CHARACTER SET utf8", ("'ж€'", "''", "NULL")),
    "c_bin_coll": ("VARCHAR(20) COLLATE utf8mb4_bin", ("'aA'", "''", "NULL")),
    "c_text": ("TEXT", ("REPEAT('long € ', 5000)", r"'line\nline\n'", "NULL")),
    "c_longtext": ("LONGTEXT", ("REPEAT('x', 300000)", "''", "NULL")),
    "c_binary": ("BINARY(4)", ("0x00FF0100", "0x61", "0x00000000", "0xFFFFFFFF", "NULL")),
    "c_varbinary": (
        "VARBINARY(300)",
        ("0x" + "".join(f"{b:02x}" for b in range(256)), "''", "0x00", "0x5C4E", "NULL"),
    ),
    "c_blob": ("BLOB", ("0x" + "".join(f"{b:02x}" for b in range(256)), "''", "NULL")),
    "c_longblob": ("LONGBLOB", ("REPEAT(0xFF00, 200000)", "NULL")),
    "c_enum": ("ENUM('a','b c','d''e','2')", ("'a'", "'b c'", "'d''e'", "'2'", "NULL")),
    "c_set": ("SET('x','y','z')", ("'x,z'", "''", "'x,y,z'", "NULL")),
    "c_json": (
        "JSON",
        (
            """'{"a": [1, 2.5, "t\\\\n€😀", null, true], "b": {}}'""",
            "'null'",
            "'[]'",
            "'\"text\"'",
            "'18446744073709551615'",
            "NULL",
        ),
    ),
    "c_point": ("POINT", ("ST_GeomFromText('POINT(1 2)')", "NULL")),
    "c_geometry": (
        "GEOMETRY",
        (
            "ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))')",
            "ST_GeomFromText('POINT(10 20)', 4326)",
            "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')",
            "NULL",
        ),
    ),
    # Names that Avro does not allow.
    "1st": ("INT", ("1", "NULL")),
    "a-b": ("INT", ("2", "NULL")),
    "a_b": ("INT", ("3", "NULL")),
    "größe €": ("VARCHAR(9)", ("'€'", "NULL")),
    "c_generated": ("INT AS (id * 2) STORED", ("DEFAULT",)),
    "c_virtual": ("INT AS (id * 3) VIRTUAL", ("DEFAULT",)),
}

ROWS = max(len(literals) for _, literals in TYPES.values())


def definitions(key: str = "PRIMARY KEY") -> str:
    """Column definitions: ``id``, the key unless told otherwise, and a column of every type."""
    columns = ", ".join(f"`{column}` {definition}" for column, (definition, _) in TYPES.items())
    return f"id INT {key}, {columns}"


SNAPSHOT_LOSES = {
    ("c_float", "3.4028234e38"): "-0.1",
    ("c_float", "1.17549435e-38"): "-0.1",
    ("c_float", "16777217"): "-0.1",
}
"""Values that Debezium's snapshot reads wrongly (measured, 3.6.1) → what stands in for them.

It asks for FLOAT in MySQL's text form, which has six digits.
"""


def insert(name: str, first_id: int, *, snapshot: bool = False) -> str:
    """Rows ``first_id``, ``first_id + 1``, … with every value once at least."""
    rows = []
    for n in range(ROWS):
        cells = [str(first_id + n)]
        for column, (_, literals) in TYPES.items():
            literal = literals[min(n, len(literals) - 1)]
            cells.append(SNAPSHOT_LOSES.get((column, literal), literal) if snapshot else literal)
        rows.append(f"({', '.join(cells)})")
    return f"INSERT INTO {name} VALUES {', '.join(rows)}"


def digest_columns() -> str:
    """A select list that shows every byte of every column."""
    shown = ["id"]
    for column, (definition, _) in TYPES.items():
        kind = definition.partition(" ")[0].partition("(")[0]
        if kind in ("FLOAT", "DOUBLE"):
            shown.append(f"`{column}` + 0e0")  # as it is, FLOAT is shown with six digits
        elif kind in ("BIT", "CHAR", "VARCHAR", "TEXT", "LONGTEXT", "POINT", "GEOMETRY") or (
            "BINARY" in kind or "BLOB" in kind
        ):
            shown.append(f"HEX(`{column}`)")
        else:
            shown.append(f"CAST(`{column}` AS CHAR)")
    return ", ".join(shown)
