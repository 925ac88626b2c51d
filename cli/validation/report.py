"""What a comparison found, as shapes and as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.validation.compared_table import ComparedTable
from shardmerge.spark_sink.validation.doubts import Difference, Key
from shardmerge.spark_sink.validation.repair_statements import session_statement
from shardmerge.spark_sink.validation.sampled_rows import SampledRow
from shardmerge.spark_sink.validation.table_validation import TableValidation

from .report_shapes import RowDifference, ValidatedTarget

_SHOWN = 3
"""So many keys, or shards, are named where a sentence tells of differences."""
_VALUE = 60
"""Characters of a value in a line."""


def report_of(
    validation: TableValidation,
    *,
    version: int,
    obstacles: int,
    seconds: float,
    stopped: str = "",
    code: str = "",
    repairs: Mapping[Difference, str] | None = None,
    rows: Mapping[Key, SampledRow] | None = None,
) -> ValidatedTarget:
    """The shape of a comparison.

    Args:
        validation: The comparison, at its end.
        version: The target's version.
        obstacles: How many shards were not compared.
        seconds: How long it took.
        stopped: Why it ended early; "" if it did not.
        code: Of the error in ``stopped``, if it was one.
        repairs: Difference → the statement that corrects it.
        rows: Digest → one of its rows, for rows without a key.
    """
    table, told, shown = validation.table, repairs or {}, rows or {}
    found = sorted(validation.differences, key=lambda d: d.key)
    return ValidatedTarget(
        str(table.target),
        version,
        complete=validation.is_compared and not validation.doubts and not stopped,
        stopped=stopped,
        shards=tuple(str(side.shard) for side in table.shards),
        key=table.key,
        columns=table.columns,
        rows=validation.rows,
        ranges=validation.ranges,
        took_ms=round(seconds * 1000),
        differences=tuple(_row(table, d, told.get(d, ""), shown.get(d.key)) for d in found),
        in_doubt=len(validation.doubts),
        unsettled=tuple(
            RowDifference("unsettled", shown_key(table, key), "", (), 0, 0)
            for key in validation.unsettled
        ),
        obstacles=obstacles,
        left_out=table.left_out,
        repair_session=session_statement(table) if told else "",
        code=code,
    )


def failed_report(target: str, error: ShardMergeError) -> ValidatedTarget:
    """The shape of a comparison that did not begin because something did not answer."""
    return ValidatedTarget(
        target,
        version=0,
        complete=False,
        stopped=error.message,
        shards=(),
        key=(),
        columns=(),
        rows=0,
        ranges=0,
        took_ms=0,
        differences=(),
        in_doubt=0,
        unsettled=(),
        obstacles=0,
        left_out=(),
        code=error.code,
    )


def _row(
    table: ComparedTable, found: Difference, repair: str, row: SampledRow | None
) -> RowDifference:
    shards, target = found.counts or (0, 0)
    return RowDifference(
        found.kind.value,
        shown_key(table, found.key),
        "" if found.shard is None else str(found.shard),
        found.columns,
        shards,
        target,
        repair,
        {str(shard): number for shard, number in found.owners},
        {} if row is None else row.shown,
    )


def shown_key(table: ComparedTable, key: Key) -> tuple[str, ...]:
    """A key as people write it: texts as they are, bytes behind ``0x``."""
    if not table.side.key:
        return key
    return tuple(
        _shown(column.target_type, text) for column, text in zip(table.side.key, key, strict=True)
    )


def _shown(kind: ColumnType, text: str) -> str:
    if kind.is_string:
        return bytes.fromhex(text).decode(errors="replace")
    return f"0x{text}" if kind.is_binary else text


def shortfalls(
    report: ValidatedTarget, not_compared: Sequence[str] = (), *, kinds: bool = False
) -> str:
    """What keeps a comparison from proving that all rows are equal, as parts of a sentence.

    Args:
        report: The comparison; it is not clean.
        not_compared: For each shard that was not compared the reason; empty to tell only how many.
        kinds: Whether each key is told with the kind of its difference.
    """
    parts = []
    if report.differences:
        shown = [
            f"{row.kind + ' ' if kinds else ''}({', '.join(row.key)})"
            for row in report.differences[:_SHOWN]
        ]
        parts.append(f"rows that differ: {len(report.differences)}, such as {', '.join(shown)}")
    if report.unsettled:
        parts.append(f"rows that changed each time they were read: {len(report.unsettled)}")
    if report.obstacles and not_compared:
        parts.append(f"not compared: {', '.join(not_compared)}")
    elif report.obstacles:
        parts.append(f"shards that could not be compared: {report.obstacles}")
    if report.stopped:
        parts.append(report.stopped)
    return "; ".join(parts)


def lines(found: ValidatedTarget, most: int = 100) -> Iterator[str]:
    """The report as lines.

    Args:
        found: The report.
        most: How many differences are listed at most.
    """
    if found.code and not found.rows:
        yield f"{found.target}: not compared: {coded(found.code, found.stopped)}"
        return
    counted = f"{found.rows} rows of {len(found.shards)} shards, {found.ranges} ranges"
    yield f"{found.target}: {counted}, {found.took_ms / 1000:.1f} s"
    for note in found.left_out:
        yield f"  note: {note}"
    if found.repair_session:
        yield f"  first, in the same session: {found.repair_session}"
    for row in found.differences[:most]:
        yield f"  {_line(row, found.key)}{f', since {row.since}' if row.since else ''}"
        if row.repair:
            yield f"    {row.repair}"
    if len(found.differences) > most:
        yield f"  and {len(found.differences) - most} more: --json lists all of them"
    for row in found.unsettled[:most]:
        yield f"  unsettled: {_key(row, found.key)} changed each time that it was read"
    if found.stopped:
        yield f"  not complete: {coded(found.code, found.stopped)}"
    if found.in_doubt:
        yield f"  {found.in_doubt} rows look different, but that is not confirmed"
    number = len(found.differences)
    yield f"  {number} difference{'' if number == 1 else 's'}"


def _line(row: RowDifference, key: Sequence[str]) -> str:
    where = _key(row, key)
    match row.kind:
        case "missing":
            return f"missing: {where}, which {row.shard} has"
        case "extra":
            return f"extra: {where}, which no shard has"
        case "count":
            owners = f" ({_owners(row)})" if row.owners else ""
            numbers = f"{row.shard_rows} rows of shards{owners}, {row.target_rows} of the target"
            return f"count: {numbers}: {where}{_values(row)}"
        case _:
            return f"differs: {where} of {row.shard} in {', '.join(row.columns)}"


def _owners(row: RowDifference) -> str:
    some = list(row.owners.items())[:_SHOWN]
    more = f", and {len(row.owners) - _SHOWN} more shards" if len(row.owners) > _SHOWN else ""
    return ", ".join(f"{shard}: {number}" for shard, number in some) + more


def _values(row: RowDifference) -> str:
    told = ", ".join(
        f"{name} = {'NULL' if text is None else _short(text)}" for name, text in row.row.items()
    )
    return f": {told}" if told else ""


def _short(text: str) -> str:
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"


def _key(row: RowDifference, key: Sequence[str]) -> str:
    if not key:
        return f"rows with the digest {row.key[0]}"
    return ", ".join(f"{name} = {text}" for name, text in zip(key, row.key, strict=True))
