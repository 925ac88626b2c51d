"""Codes for the reasons in records that were written before reasons had codes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from .decisions import Decision, Fixup, Outcome, TargetStatement
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
        case Decision():
            found = _decision(record)
        case SchemaChange(code="") | OperatorCommand(code="") if record.error:
            found = replace(record, code=EARLIER)
        case SinkProgress():
            found = _progress(record)
        case _:
            pass
    return cast("_Record", found)


def lacks_codes(json_record: bytes, record: object) -> bool:
    """Whether a record in JSON was written before all of its reasons had codes.

    Inside of a text the quotes would be escaped, so only a field's name can match.

    Args:
        json_record: As it was written.
        record: As it was read.
    """
    latest = b'"warning_codes":' if isinstance(record, Decision) else b'"code":'
    return latest not in json_record


def _decision(record: Decision) -> Decision:
    """Holds and refusals had codes first; warnings, fix-ups and statements got them later."""
    needs_code = record.outcome in (Outcome.HOLD, Outcome.REFUSED)
    missing = len(record.warnings) - len(record.warning_codes)
    return replace(
        record,
        code=record.code or (EARLIER if needs_code else ""),
        warning_codes=(*record.warning_codes, *(EARLIER,) * missing),
        statements=tuple(map(_coded, record.statements)),
        fixups=tuple(map(_coded, record.fixups)),
    )


_Part = TypeVar("_Part", TargetStatement, Fixup)


def _coded(part: _Part) -> _Part:
    return part if part.code or not part.reason else replace(part, code=EARLIER)


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
