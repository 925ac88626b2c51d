"""Literal defaults in the form that MySQL stores for a column's type.

``5``, ``'5'``, ``0x05`` and ``b'101'`` are the same default of an INT column; ``1.5`` and
``'1.50'`` are the same default of a DECIMAL(5,2). Two shards that write the same default in
different ways must compare equal.

Source: measured against ``information_schema.columns`` (tests/integration/mysql).
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

from shardmerge.schemas.ddl.changes import WrittenLiteral
from shardmerge.schemas.model.tables import Default, DefaultKind
from shardmerge.schemas.model.types import BLOB_NAMES, ColumnType

_CODECS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "latin1": "cp1252", "ascii": "ascii",
    "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be",
    "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "big5": "big5", "sjis": "shift_jis",
    "cp932": "cp932", "ujis": "euc_jp", "eucjpms": "euc_jp", "euckr": "euc_kr",
    "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257",
    "koi8r": "koi8_r", "koi8u": "koi8_u", "cp850": "cp850", "cp852": "cp852", "cp866": "cp866",
    "latin2": "iso8859_2", "latin5": "iso8859_9", "latin7": "iso8859_13", "greek": "iso8859_7",
    "hebrew": "iso8859_8", "tis620": "tis_620",
}  # fmt: skip
_UNIT_BYTES = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
"""Bytes per unit. The server pads a literal to whole units with zeros on the left."""
_FLOAT_DIGITS = 6
_DELIMITED = re.compile(
    r"\s*(\d+)[^\d\s]+(\d+)[^\d\s]+(\d+)"
    r"(?:\D+(\d+)(?:\D+(\d+)(?:\D+(\d+)(?:\.(\d*))?)?)?)?\D*"
)
"""Any characters may separate the numbers of a date and time; a fraction begins with a point."""
_CLOCK = re.compile(r"\s*(-?)(?:(\d+)\s+)?(\d+)(?:[:](\d{1,2}))?(?:[:](\d{1,2}))?(?:\.(\d*))?\s*$")
_TWO_DIGIT_PIVOT = 70
"""Two-digit years below it are 20xx, the others 19xx. Source: MySQL, "2-Digit Years in Dates"."""


def normal_literal(
    literal: WrittenLiteral, column_type: ColumnType, *, rounds: bool = False
) -> Default:
    """The default that the server stores for this literal and type.

    A value that cannot be read as the type (the server would have refused it) is kept as text.
    ``rounds``: whether fractions of a second are rounded, as MySQL does, instead of truncated.
    """
    try:
        text = _text(literal, column_type, rounds)
    except (ValueError, ArithmeticError, struct.error):
        text = literal.text
    return Default(DefaultKind.LITERAL, text)


def _text(literal: WrittenLiteral, kind: ColumnType, rounds: bool) -> str:
    name = kind.name
    if kind.is_integer:
        return _integer(literal)
    if name == "decimal":
        return _decimal(literal, kind)
    if name in ("float", "double"):
        return _floating(literal, kind)
    if name == "bit":
        return "b'" + f"{_bits(literal):b}" + "'"
    if name in ("binary", "varbinary") or name in BLOB_NAMES:
        return _binary(literal, kind)
    if name == "enum":
        return _enum(literal, kind)
    if name == "set":
        return _set(literal, kind)
    value = _string(literal, kind.charset)
    if name == "date":
        return _datetime(value, 0, rounds=False, pointed=rounds)[:10]
    if name in ("datetime", "timestamp"):
        return _datetime(value, kind.fsp, rounds=rounds, pointed=rounds)
    if name == "time":
        return _time(value, kind.fsp, rounds=rounds)
    if name == "year":
        return _year(value, quoted=literal.form == "string")
    if name == "char":
        return value.rstrip(" ")
    if name == "varchar" and len(value) > (kind.length or 0):
        # The server removes spaces beyond the length; it refuses other characters.
        return value[: kind.length]
    return value


def _raw_bytes(literal: WrittenLiteral) -> bytes:
    if literal.form == "hex":
        digits = literal.text
        return bytes.fromhex("0" + digits if len(digits) % 2 else digits)
    bits = literal.text or "0"
    return int(bits, 2).to_bytes((len(bits) + 7) // 8, "big")


def _string(literal: WrittenLiteral, charset: str) -> str:
    if literal.form in ("hex", "bit"):
        name = literal.charset or charset
        raw = _raw_bytes(literal)
        width = _UNIT_BYTES.get(name, 1)
        raw = raw.rjust(-(-len(raw) // width) * width, b"\0")
        return raw.decode(_CODECS.get(name, "latin-1"))
    return literal.text


def element_of_bytes(raw: bytes, charset: str) -> str:
    """The element of an ENUM or SET of this charset that was written as bytes.

    The bytes of a binary one are text if they can be; what is no text of the charset is latin1.
    """
    literal = WrittenLiteral(DefaultKind.LITERAL, raw.hex(), form="hex")
    try:
        return _string(literal, "utf8mb4" if charset == "binary" else charset)
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _number(literal: WrittenLiteral) -> Decimal:
    if literal.form in ("hex", "bit"):
        return Decimal(int.from_bytes(_raw_bytes(literal), "big"))
    try:
        return Decimal(literal.text.strip() or "0")
    except InvalidOperation as error:
        raise ValueError(literal.text) from error


def _integer(literal: WrittenLiteral) -> str:
    return str(int(_number(literal).to_integral_value(ROUND_HALF_UP)))


def _decimal(literal: WrittenLiteral, kind: ColumnType) -> str:
    with localcontext() as context:
        context.prec = 100
        step = Decimal(1).scaleb(-(kind.scale or 0))
        value = _number(literal).quantize(step, ROUND_HALF_UP)
    return f"{value if value else abs(value):f}"


def _floating(literal: WrittenLiteral, kind: ColumnType) -> str:
    value = float(_number(literal))
    if kind.scale is not None:
        return f"{value:.{kind.scale}f}"
    if kind.name == "float":
        (value,) = struct.unpack("<f", struct.pack("<f", value))
        value = float(f"{value:.{_FLOAT_DIGITS}g}")
    text = repr(value)
    return text.removesuffix(".0").replace("e+", "e").replace("e-0", "e-").replace("e0", "e")


def _bits(literal: WrittenLiteral) -> int:
    if literal.form in ("hex", "bit"):
        return int.from_bytes(_raw_bytes(literal), "big")
    if literal.form == "string":
        return int.from_bytes(literal.text.encode(), "big")
    return int(_integer(literal))


def _binary(literal: WrittenLiteral, kind: ColumnType) -> str:
    if literal.form in ("hex", "bit"):
        value = _raw_bytes(literal)
    else:
        value = literal.text.encode(_CODECS.get(literal.charset, "utf-8"))
    if kind.name == "binary":
        value = value.ljust(kind.length or 0, b"\0")
    return "0x" + value.hex()


def _enum(literal: WrittenLiteral, kind: ColumnType) -> str:
    value = _string(literal, kind.charset)
    if literal.form == "number":
        place = int(Decimal(value))
        return kind.elements[place - 1] if 0 < place <= len(kind.elements) else value
    folded = value.rstrip(" ").casefold()
    return next((e for e in kind.elements if e.casefold() == folded), value)


def _set(literal: WrittenLiteral, kind: ColumnType) -> str:
    value = _string(literal, kind.charset)
    if literal.form == "number":
        mask = int(Decimal(value))
        return ",".join(e for i, e in enumerate(kind.elements) if mask >> i & 1)
    chosen = {part.rstrip(" ").casefold() for part in value.split(",")}
    return ",".join(e for e in kind.elements if e.casefold() in chosen)


def _year(value: str, *, quoted: bool) -> str:
    number = int(Decimal(value).to_integral_value(ROUND_HALF_UP))
    if len(value.strip()) < 4 and (number or quoted) and number < 100:
        number += 2000 if number < _TWO_DIGIT_PIVOT else 1900
    return f"{number:04d}"


def _full_year(text: str) -> int:
    """A year with its century. Only a year of two digits lacks it: '2/2/2' is in the year 2."""
    number = int(text)
    if len(text) == 2:
        number += 2000 if number < _TWO_DIGIT_PIVOT else 1900
    return number


def _datetime(value: str, fsp: int, *, rounds: bool, pointed: bool = False) -> str:
    """A date and time in canonical form.

    ``pointed``: whether a year of one digit, with a point after it, counts as one of two digits.
    """
    found = _DELIMITED.fullmatch(value)
    if found is not None:
        written = found[1].zfill(2) if pointed and value[found.end(1)] == "." else found[1]
        year, month, day = _full_year(written), int(found[2]), int(found[3])
        hours, minutes, seconds = (int(each or 0) for each in found.group(4, 5, 6))
        fraction = found[7] or ""
    else:
        digits, _, fraction = value.strip().partition(".")
        digits = digits.replace("T", "")
        if not digits.isdigit():
            raise ValueError(value)
        if len(digits) in (6, 8):
            digits += "000000"
        elif digits.strip("0") == "":
            digits = "0" * 14
        if len(digits) == 12:
            digits = f"{_full_year(digits[:2]):04d}{digits[2:]}"
        digits = digits.rjust(14, "0")
        year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
        hours, minutes, seconds = int(digits[8:10]), int(digits[10:12]), int(digits[12:])
    if year == 2000 and not month and not day and value.strip().startswith("00"):
        year = 0
    carry, tail = _fraction(fraction, fsp, rounds=rounds)
    if carry:
        try:
            moment = datetime(year, month, day, hours, minutes, seconds, tzinfo=UTC)
            later = moment + timedelta(seconds=1)
            year, month, day = later.year, later.month, later.day
            hours, minutes, seconds = later.hour, later.minute, later.second
        except (ValueError, OverflowError):
            tail = ""  # Dates with zeros are not rounded up to the next second.
    return f"{year:04d}-{month:02d}-{day:02d} {hours:02d}:{minutes:02d}:{seconds:02d}{tail}"


def _fraction(digits: str, fsp: int, *, rounds: bool) -> tuple[int, str]:
    """The seconds to carry after rounding, and the fraction's text with its point."""
    kept = digits[:fsp].ljust(fsp, "0")
    if rounds and digits[fsp : fsp + 1] >= "5":
        number = int(kept or "0") + 1
        if number == 10**fsp:
            return 1, "." + "0" * fsp if fsp else ""
        kept = f"{number:0{fsp}d}"
    return 0, f".{kept}" if fsp else ""


def _time(value: str, fsp: int, *, rounds: bool) -> str:
    if _DELIMITED.fullmatch(value) is not None and _CLOCK.match(value) is None:
        value = _datetime(value, len(value), rounds=False).partition(" ")[2]
    found = _CLOCK.match(value)
    if found is None:
        raise ValueError(value)
    sign, days, first, second, third, fraction = found.groups()
    if second is None:
        number = int(first) if days is None else 0
        hours, minutes, seconds = number // 10000, number // 100 % 100, number % 100
        if days is not None:
            hours, minutes, seconds = int(first), 0, 0
    else:
        hours, minutes, seconds = int(first), int(second), int(third or 0)
    carry, tail = _fraction(fraction or "", fsp, rounds=rounds)
    whole = ((hours + 24 * int(days or 0)) * 60 + minutes) * 60 + seconds + carry
    return f"{sign}{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}{tail}"
