"""Codes for the reasons in records that were written before reasons had codes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from .decisions import Decision, Outcome
from .operator_commands import OperatorCommand
from .progress import SinkProgress
from .schema_changes import SchemaChange

EARLIER = "SM-9003"
"""Says that an earlier version wrote the reason, without a code."""

_Record = TypeVar("_Record")


def with_codes(record: _Record) -> _Record:
    """A record of an earlier contract, in which every reason that needs a code has ``EARLIER``."""
    found: object = record
    match record:
        case Decision(outcome=Outcome.HOLD | Outcome.REFUSED, code=""):
            found = replace(record, code=EARLIER)
        case SchemaChange(code="") | OperatorCommand(code="") if record.error:
            found = replace(record, code=EARLIER)
        case SinkProgress():
            found = _progress(record)
        case _:
            pass
    return cast("_Record", found)


def lacks_codes(json_record: bytes) -> bool:
    """Whether a record in JSON was written before reasons had codes.

    Inside of a text the quotes would be escaped, so only a field's name can match.
    """
    return b'"code":' not in json_record


def _progress(record: SinkProgress) -> SinkProgress:
    failure = record.failure
    return replace(
        record,
        open=tuple(
            replace(s, code=EARLIER) if s.detail and s.state != "executing" else s
            for s in record.open
        ),
        shards=tuple(replace(s, code=EARLIER) if s.waiting else s for s in record.shards),
        failure=failure and replace(failure, code=EARLIER),
    )
