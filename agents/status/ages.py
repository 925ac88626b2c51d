"""Times and ages as text for people. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def moment(ms: int) -> str:
    """A time as text, in UTC.

    Args:
        ms: Milliseconds since 1970. 0 gives "": records of earlier versions have no time.
    """
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if ms else ""


def age(ms: int, now_ms: int) -> str:
    """How long ago a time was, in the two largest units, such as ``3 h 12 min``.

    Args:
        ms: The time, in milliseconds since 1970; 0 gives "".
        now_ms: The present time, in milliseconds since 1970.
    """
    if not ms:
        return ""
    left = max(0, now_ms - ms) // 1000
    for place, (seconds, unit) in enumerate(_UNITS):
        if left >= seconds:
            text = f"{left // seconds} {unit}"
            if place + 1 < len(_UNITS) and (rest := left % seconds // _UNITS[place + 1][0]):
                text += f" {rest} {_UNITS[place + 1][1]}"
            return text
    return "0 s"


def ms_of(text: str) -> int:
    """A time in ISO 8601 in milliseconds since 1970; "" gives 0."""
    return round(datetime.fromisoformat(text).timestamp() * 1000) if text else 0
