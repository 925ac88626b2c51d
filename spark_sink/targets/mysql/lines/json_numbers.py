"""Rewrites numbers in JSON text so that a MySQL server reads exactly the double they name. Pure.

MySQL's parser of JSON (RapidJSON, without full precision) takes a number's digits as an integer,
makes a double of it and multiplies that by a power of ten. Of doubles with 17 digits one in eight
becomes its neighbour that way (measured, MySQL 8.0.15; 9.7 reads every number exactly). So the text
that one server shows for a JSON value can be another value on another server. But such a number can
be written otherwise, with more digits or a shifted decimal point, so that both this arithmetic and
every exact parser give the right double.

Source: RapidJSON 1.1, ``GenericReader::ParseNumber`` and ``internal::StrtodNormalPrecision``;
measured against servers, tests/integration/mysql/test_json_numbers.py.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter

_MAY_HAVE = re.compile(r"\d[.eE]")
MAY_CHANGE = re.compile(_MAY_HAVE.pattern.encode())
"""Is found in the UTF-8 of each text that ``read_exactly`` changes."""
_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)
_POWERS = [float(f"1e{n}") for n in range(309)]
_EXACT_INTEGER = 0x1FFFFFFFFFFFFF
_DIGITS = 17
_LEAST = -308
_MOST_OF_POSITIVE, _MOST_OF_NEGATIVE = (1 << 64) - 1, 1 << 63
_MOST_ZEROS = 24
_SHORT, _PLAIN = 16, re.compile(r"-?\d+\.\d+")
_CANDIDATE_DIGITS = range(15, 19)
"""A whole number with these numbers of digits fits into 63 bits, whatever its sign."""


def read_exactly(text: str) -> str:
    """The JSON text, with numbers that MySQL reads as the nearest doubles of the given numbers.

    Args:
        text: JSON. Strings, and numbers without a point or exponent, stay as they are.
    """
    if _MAY_HAVE.search(text) is None:
        return text
    return _STRING_OR_NUMBER.sub(_replacement, text)


def _replacement(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == '"' or token.lstrip("-").isdigit():
        return token
    return _number(token)


@lru_cache(maxsize=4_096)
def _number(token: str) -> str:
    if len(token) <= _SHORT and _PLAIN.fullmatch(token):
        return token  # at most fifteen digits and a small power of ten: both are exact
    value = float(token)
    if value in (inf, -inf, 0.0) or server_reads(token) == value:
        return token
    sign = "-" if value < 0 else ""
    found = _other_text(abs(value))
    return sign + found if found else token


def _other_text(value: float) -> str:
    """A text for a positive double that both kinds of parser read right; "" when none is found.

    Each zero that is added to the digits, and taken off the exponent, makes the server round
    differently.
    """
    exact = Fraction(value)
    size = len(str(int(exact))) if exact >= 1 else 1 - len(str(int(1 / exact)))
    for zeros in range(_MOST_ZEROS):
        for digits in _CANDIDATE_DIGITS:
            power = size - digits
            whole = float(exact / Fraction(10) ** power)
            for near in (whole, nextafter(whole, 0), nextafter(whole, inf)):
                text = f"{int(near)}{'0' * zeros}e{power - zeros}"
                # The sign decides how many digits the server takes as an integer.
                if float(text) == value == server_reads(text) == -server_reads(f"-{text}"):
                    return text
    return ""


def server_reads(token: str) -> float:
    """The double that RapidJSON reads from a number with a point or an exponent."""
    mantissa, _, exponent = token.lower().partition("e")
    negative = mantissa.startswith("-")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    most = _MOST_OF_NEGATIVE if negative else _MOST_OF_POSITIVE
    number, used, power = 0, len(whole.lstrip("0")), 0
    value: float | None = None
    for digit in whole:
        if value is None and number * 10 + int(digit) > most:
            value = float(number)
        if value is None:
            number = number * 10 + int(digit)
        else:
            value = value * 10.0 + int(digit)
    rest = fraction
    if value is None:
        while rest and number <= _EXACT_INTEGER:
            number = number * 10 + int(rest[0])
            rest, power, used = rest[1:], power - 1, used + (number != 0)
        value = float(number)
    while rest and used < _DIGITS:
        value = value * 10.0 + int(rest[0])
        rest, power, used = rest[1:], power - 1, used + (value > 0)
    power += int(exponent or 0)
    if power < _LEAST:
        value = _scaled(_scaled(value, _LEAST), power - _LEAST)
    else:
        value = _scaled(value, power)
    return -value if negative else value


def _scaled(value: float, power: int) -> float:
    if power < _LEAST:
        return 0.0
    if power >= len(_POWERS):
        return inf
    return value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
