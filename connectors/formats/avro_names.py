"""Column names as Debezium writes them into Avro, which knows letters, digits and ``_`` only. Pure.

The connectors are configured with ``field.name.adjustment.mode=avro_unicode``: every other
character, and ``_`` itself, becomes ``_u`` and its code, so that two columns never get one name.
(``avro`` makes ``_`` of all of them: ``a-b`` beside ``a_b`` would stop the connector for good.)

Source: Debezium 3.6, ``UnicodeReplacementFunction`` and ``FieldNameUnicodeReplacementFunction``;
measured, tests/integration/connect.
"""

from __future__ import annotations

import re

ADJUSTMENT = "avro_unicode"
"""Debezium's name of this way."""


def avro_name(column: str) -> str:
    """A column's name as that of a field."""
    first, rest = column[:1], column[1:]
    return re.sub("[^A-Za-z]", _escape, first) + re.sub("[^A-Za-z0-9]", _escape, rest)


def _escape(match: re.Match[str]) -> str:
    code = f"{ord(match[0]):x}"
    # As Debezium does it: codes of three digits stay as they are.
    return "_u" + (f"00{code}" if len(code) <= 2 else code)
