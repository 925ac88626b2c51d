"""Every type as a shard has it and as its target does, with values."""

from __future__ import annotations

TYPES = [
    ("TINYINT(3) ZEROFILL", "BIGINT UNSIGNED", ["5", "255", "0"]),
    ("BIGINT UNSIGNED", "DECIMAL(20,0)", ["18446744073709551615", "0"]),
    ("DECIMAL(5,2)", "DECIMAL(10,4)", ["-1.50", "999.99", "0"]),
    ("INT", "DECIMAL(12,2)", ["-2147483648", "7"]),
    ("FLOAT", "DOUBLE", ["1.1 + 0e0", "3.4e38", "1e-38", "0"]),
    ("DOUBLE", "DOUBLE", ["1e15", "1e-300", "0.1", "123456789.123456789", "-0e0"]),
    ("BIT(3)", "BIT(64)", ["b'101'", "0"]),
    ("YEAR", "YEAR", ["0000", "1901", "2155"]),
    ("DATE", "DATE", ["'2026-02-28'", "'9999-12-31'"]),
    ("DATETIME", "DATETIME(6)", ["'2026-02-28 12:13:14'", "'1000-01-01'"]),
    ("DATETIME(3)", "DATETIME(3)", ["'2026-02-28 12:13:14.5'"]),
    ("TIMESTAMP(2) NULL", "TIMESTAMP(4) NULL", ["'2026-02-28 12:13:14.25'"]),
    ("TIME(1)", "TIME(3)", ["'-838:59:58.5'", "'00:00:00'"]),
    ("CHAR(9) CHARSET latin1", "VARCHAR(20) CHARSET utf8mb4", ["'é '", "''", "'a#b'"]),
    ("VARCHAR(9) CHARSET utf8", "VARCHAR(20) CHARSET utf8mb4", ["'€ '", "''"]),
    ("TEXT CHARSET latin1", "LONGTEXT CHARSET utf8mb4", ["'é\\n\\\\'", "REPEAT('x', 60000)"]),
    ("BINARY(2)", "BINARY(4)", ["X'0001'", "X'FF00'"]),
    ("VARBINARY(4)", "LONGBLOB", ["X'00FF'", "''"]),
    ("ENUM('a','é') CHARSET latin1", "ENUM('a','é','c') CHARSET utf8mb4", ["'é'", "0"]),
    ("SET('a','b')", "SET('a','b','c')", ["'a,b'", "''"]),
    ("JSON", "JSON", ["'{\"b\": 1.5, \"a\": [true, null, \"€\"]}'", "'1e100'"]),
    ("POINT", "POINT", ["ST_GeomFromText('POINT(1.5 -2)')"]),
]  # fmt: skip
