"""The numbers that real servers read in JSON text, and those that ``json_numbers`` foretells."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from math import isfinite

from shardmerge.spark_sink.targets.mysql.lines.json_numbers import read_exactly, server_reads

from .twin import Twin


def _doubles(count: int) -> Iterator[float]:
    """Of all sizes; half of them of those that people write."""
    chance = random.Random(24)
    while count:
        bits = struct.pack("<Q", chance.getrandbits(64))
        value = (
            struct.unpack("<d", bits)[0]
            if count % 2
            else chance.random() * 10 ** chance.randint(-6, 20)
        )
        if isfinite(value):
            yield value
            count -= 1


def test_servers_read_what_is_foretold(twin: Twin) -> None:
    is_mariadb = "mariadb" in str(twin.query("SELECT VERSION()")[0][0]).lower()
    if is_mariadb:
        # Its JSON is text: there is nothing to foretell.
        assert twin.query("SELECT JSON_COMPACT('[5.0]')") == (("[5.0]",),)
        return
    # MySQL 9.7 reads every number as the double nearest to it.
    is_exact = twin.context.version >= (9,)
    wrong, missed = [], 0
    values = list(_doubles(2_000))
    for value in values:
        plain, better = repr(value), read_exactly(repr(value))
        [(a, b)] = twin.query(
            f"SELECT CAST(CAST('{plain}' AS JSON) AS CHAR), CAST(CAST('{better}' AS JSON) AS CHAR)"
        )
        foretold = value if is_exact else server_reads(plain)
        if float(str(a)) != foretold:
            wrong.append((plain, a, foretold))
        missed += float(str(b)) != value
    assert wrong == []
    assert missed <= len(values) // 100
