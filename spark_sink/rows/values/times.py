"""Dates and times: neutral values from Debezium's, and their text in MySQL's spelling. Pure.

A date is a number of days, a datetime a number of milliseconds or microseconds. MySQL also has
dates whose month or day is 0; these are the numbers from ``ZERO_DAY`` down (``zero_part_day``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from .column_values import Cells, ColumnValues, around_nulls, joined_alike
from .forms import Form

ZERO_DAY = -100_000_000
"""The day that ``connectors/java/ExactValues.java`` writes for a zero date in a NOT NULL column.
For DATETIME it writes midnight of that day in milliseconds or microseconds."""
DAY_MS, DAY_US = 86_400_000, 86_400_000_000
"""Milliseconds and microseconds of a day."""
ZERO_TIMESTAMP = "0000-00-00T00:00:00Z"
"""The neutral value of TIMESTAMP's zero."""
FIRST_DAY, LAST_DAY = -719_528, 2_932_896
"""0000-01-01 and 9999-12-31."""


# --- from Debezium's values --------------------------------------------------------------------


def checked_days(values: ColumnValues, nulls: bool) -> ColumnValues:
    """DATE: the days that Debezium writes; raises ``ValueError`` for years beyond 0 to 9999."""
    return _checked(values, nulls, 1)


def checked_ms(values: ColumnValues, nulls: bool) -> ColumnValues:
    """DATETIME(0) to (3): milliseconds since 1970; raises ``ValueError`` as ``checked_days``."""
    return _checked(values, nulls, DAY_MS)


def checked_us(values: ColumnValues, nulls: bool) -> ColumnValues:
    """DATETIME(4) to (6): microseconds since 1970; raises ``ValueError`` as ``checked_days``."""
    return _checked(values, nulls, DAY_US)


def _checked(values: ColumnValues, nulls: bool, day: int) -> ColumnValues:
    """The values, after a check that their days exist; ``day``: a day's length in their unit."""
    present = [v for v in values if v is not None] if nulls else values
    if present and not (FIRST_DAY * day <= min(present) and max(present) < (LAST_DAY + 1) * day):
        for number in {v // day for v in present}:
            if not FIRST_DAY <= number <= LAST_DAY and number != ZERO_DAY:
                raise ValueError(f"day {number} is outside the years 0 to 9999")
    return values


def timestamps(values: ColumnValues, nulls: bool) -> ColumnValues:
    """TIMESTAMP: ISO 8601 in UTC, with ``Z``.

    1970-01-01T00:00:00Z is below the range of TIMESTAMP: Debezium writes it for the zero
    timestamp of a NOT NULL column.
    """
    if nulls:
        return around_nulls(_timestamps, values)
    return _timestamps(values)


def _timestamps(values: ColumnValues) -> ColumnValues:
    if "+" in "".join(values):
        values = [v.replace("+00:00", "Z") for v in values]
    joined = joined_alike(values, _TIMESTAMP, "is not an ISO timestamp in UTC")
    if "1970-01-01T00:00:00" in joined:
        return [ZERO_TIMESTAMP if v == "1970-01-01T00:00:00Z" else v for v in values]
    return values


_TIMESTAMP = re.compile(r"0000-00-00T00:00:00(?:\.0{1,6})?Z")


# --- from MySQL's text -------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def day_of(text: str) -> int:
    """``YYYY-MM-DD`` → days; raises ``ValueError`` for another text.

    The days of ten years are remembered: a table has few days, and each of them many times.
    """
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no date")
    year, month, day = map(int, found.groups())
    if not (month and day):
        return zero_part_day(year, month, day)
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def zero_part_day(year: int, month: int, day: int) -> int:
    """The number of a date whose month or day is 0; ``ZERO_DAY`` for 0000-00-00."""
    return ZERO_DAY - (year * 10_000 + month * 100 + day)


def time_of(text: str) -> int:
    """``[-]hhh:mm:ss[.ffffff]`` → microseconds; raises ``ValueError`` for another text."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time")
    sign, hours, minutes, seconds, fraction = found.groups()
    total = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = total * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return -micros if sign else micros


def moment_of(text: str) -> int:
    """``YYYY-MM-DD[ hh:mm:ss[.ffffff]]`` → microseconds since 1970; see ``day_of``."""
    date, _, time = text.partition(" ")
    return day_of(date) * DAY_US + (time_of(time) if time else 0)


_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")


# --- to MySQL's text ---------------------------------------------------------------------------


def date_text(days: int) -> str:
    """Days since 1970-01-01 → ``YYYY-MM-DD``, for the years 0 to 9999.

    Python's ``date`` has no year 0, but MySQL does.

    Source: H. Hinnant, "chrono-compatible low-level date algorithms" (civil_from_days).
    """
    if days <= ZERO_DAY:
        rest, day = divmod(ZERO_DAY - days, 100)
        year, month = divmod(rest, 100)
        return f"{year:04d}-{month:02d}-{day:02d}"
    if not FIRST_DAY <= days <= LAST_DAY:
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


def datetime_texts_ms(values: ColumnValues, nulls: bool) -> Cells:
    """Milliseconds since 1970 → ``YYYY-MM-DD hh:mm:ss[.fff]``."""
    if nulls:
        return around_nulls(_datetime_texts_ms, values)
    return _datetime_texts_ms(values)


def _datetime_texts_ms(values: Sequence[int]) -> Cells:
    dates, minutes, seconds, millis = DATES, _MINUTES, _SECONDS, _MILLIS
    return [
        f"{dates[v // DAY_MS]} {minutes[(in_day := v % DAY_MS) // 60_000]}"
        f"{seconds[(in_minute := in_day % 60_000) // 1_000]}{millis[in_minute % 1_000]}"
        for v in values
    ]


def datetime_texts_us(values: ColumnValues, nulls: bool) -> Cells:
    """Microseconds since 1970 → ``YYYY-MM-DD hh:mm:ss[.ffffff]``."""
    if nulls:
        return around_nulls(_datetime_texts_us, values)
    return _datetime_texts_us(values)


def _datetime_texts_us(values: Sequence[int]) -> Cells:
    dates, minutes, seconds = DATES, _MINUTES, _SECONDS
    return [
        f"{dates[v // DAY_US]} {minutes[(in_day := v % DAY_US) // 60_000_000]}"
        f"{seconds[(in_minute := in_day % 60_000_000) // 1_000_000]}"
        + (f".{micros:06d}" if (micros := in_minute % 1_000_000) else "")
        for v in values
    ]


def time_text(value: int) -> str:
    """Microseconds → ``[-]hhh:mm:ss[.ffffff]``; may be negative or beyond 24 h."""
    sign = "-" if value < 0 else ""
    seconds, micros = divmod(abs(value), 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}" if micros else text


def timestamp_texts(values: ColumnValues, nulls: bool) -> Cells:
    """ISO 8601 in UTC → MySQL's form, to be written in a session with time zone ``+00:00``."""
    if nulls:
        return around_nulls(_timestamp_texts, values)
    return _timestamp_texts(values)


def _timestamp_texts(values: Sequence[str]) -> Cells:
    return [*",".join(values).replace("T", " ").replace("Z", "").split(",")]


def moment_text(form: Form, value: Any) -> str | None:
    """The text of a DATE, DATETIME or TIMESTAMP in MySQL's spelling; None for NULL."""
    return None if value is None else _MOMENT_TEXTS[form]([value])[0]


_MOMENT_TEXTS: dict[Form, Callable[[Sequence[Any]], Cells]] = {
    Form.DATE: lambda values: [*map(date_text, values)],
    Form.DATETIME_MS: _datetime_texts_ms,
    Form.DATETIME_US: _datetime_texts_us,
    Form.TIMESTAMP: _timestamp_texts,
}
