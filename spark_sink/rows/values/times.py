"""Dates and times: from Debezium's numbers and ISO text to MySQL's text. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .cells import Cells, around_nulls, joined_alike

ZERO_DAY = -100_000_000
"""The day that ``connectors/java/ExactValues.java`` writes for a zero date in a NOT NULL column.
For DATETIME it writes midnight of that day in milliseconds or microseconds."""


def date_text(days: int) -> str:
    """Days since 1970-01-01 → ``YYYY-MM-DD``, for the years 0 to 9999.

    ``ZERO_DAY`` gives the zero date. Python's ``date`` has no year 0, but MySQL does.

    Source: H. Hinnant, "chrono-compatible low-level date algorithms" (civil_from_days).
    """
    if days == ZERO_DAY:
        return "0000-00-00"
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise ValueError(f"day {days} is outside the years 0 to 9999")
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04d}-{month:02d}-{day:02d}"


_FIRST_DAY = -719_528


_LAST_DAY = 2_932_896


class _Dates(dict[int, str]):
    """A cache of texts by day; emptied at 65,536 entries, so that it stays small."""

    def __missing__(self, days: int) -> str:
        if len(self) >= 65_536:
            self.clear()
        text = self[days] = date_text(days)
        return text


DATES = _Dates()
"""Days since 1970-01-01 → their text (``date_text``); made at the first request, then kept."""
# These tables are small enough to stay in the processor's cache.
_MINUTES = [f"{m // 60:02d}:{m % 60:02d}:" for m in range(1_440)]
_SECONDS = [f"{s:02d}" for s in range(60)]
_MILLIS = ["", *(f".{n:03d}" for n in range(1, 1_000))]


_DAY_MS = 86_400_000


_DAY_US = 86_400_000_000


def datetimes_ms(values: Sequence[Any], has_nulls: bool) -> Cells:
    """DATETIME(0) to (3), milliseconds since 1970 → ``YYYY-MM-DD hh:mm:ss[.fff]``."""
    if has_nulls:
        return around_nulls(datetimes_ms, values)
    dates, minutes, seconds, millis = DATES, _MINUTES, _SECONDS, _MILLIS
    return [
        f"{dates[v // _DAY_MS]} {minutes[(in_day := v % _DAY_MS) // 60_000]}"
        f"{seconds[(in_minute := in_day % 60_000) // 1_000]}{millis[in_minute % 1_000]}"
        for v in values
    ]


def datetimes_us(values: Sequence[Any], has_nulls: bool) -> Cells:
    """DATETIME(4) to (6), microseconds since 1970 → ``YYYY-MM-DD hh:mm:ss[.ffffff]``."""
    if has_nulls:
        return around_nulls(datetimes_us, values)
    dates, minutes, seconds = DATES, _MINUTES, _SECONDS
    return [
        f"{dates[v // _DAY_US]} {minutes[(in_day := v % _DAY_US) // 60_000_000]}"
        f"{seconds[(in_minute := in_day % 60_000_000) // 1_000_000]}"
        + (f".{micros:06d}" if (micros := in_minute % 1_000_000) else "")
        for v in values
    ]


def time_text(value: int, fsp: int) -> str:
    """A TIME(fsp), microseconds → ``[-]hhh:mm:ss[.ffffff]``; may be negative or beyond 24 h."""
    sign = "-" if value < 0 else ""
    seconds, micros = divmod(abs(value), 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}" if fsp else text


def timestamps(values: Sequence[Any], has_nulls: bool) -> Cells:
    """ISO 8601 in UTC → MySQL's form, to be written in a session with time zone ``+00:00``.

    1970-01-01T00:00:00Z is below the range of TIMESTAMP: Debezium writes it for the zero
    timestamp of a NOT NULL column.
    """
    if has_nulls:
        return around_nulls(timestamps, values)
    if "+" in "".join(values):
        values = [v.replace("+00:00", "Z") for v in values]
    joined = joined_alike(values, _TIMESTAMP, "is not an ISO timestamp in UTC")
    cells: Cells = [*joined.replace("T", " ").replace("Z", "").split(",")]
    if "1970-01-01T00:00:00" in joined:
        zero = "0000-00-00 00:00:00"
        return [zero if c == "1970-01-01 00:00:00" else c for c in cells]
    return cells


_TIMESTAMP = re.compile(r"0000-00-00T00:00:00(?:\.0{1,6})?Z")
