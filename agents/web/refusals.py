"""Which status of HTTP an error has. Pure."""

from __future__ import annotations

from shardmerge.schemas.model.errors import AccessDenied, ShardMergeError

_STATUSES = {
    "SM-5601": 400,
    "SM-6903": 401,
    "SM-6904": 401,
    "SM-6905": 429,
    "SM-6910": 409,
    "SM-6911": 409,
    "SM-6912": 400,
    "SM-6913": 503,
}


def status_of(error: ShardMergeError) -> int:
    """The status: 403 for what somebody may not do, 503 for what is out of order here."""
    known = _STATUSES.get(error.code)
    if known is not None:
        return known
    return 403 if isinstance(error, AccessDenied) else 503
