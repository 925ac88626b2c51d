"""Reports of comparisons as records for the pages, and sends them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import click

from shardmerge.agents.status.ages import ms_of
from shardmerge.connectors.kafka.record_formats import record_format
from shardmerge.connectors.kafka.validation_topic import forget_validations, send_validation
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.validations import DifferingRows, TargetValidation

from .report_shapes import RowDifference, ValidatedTarget

MOST_KEYS = 20
"""Keys of each shard and kind."""
MOST_GROUPS = 100
"""Shards and kinds whose keys are told."""
MOST_NOTES = 20
_MOST_TEXT = 200
"""Characters of one column's text in a key, and of a note."""
_UNTOLD_CODE = "SM-4415"


@dataclass(frozen=True, slots=True)
class PageRecords:
    """Sends what a call found to the pages of its pipeline.

    Args:
        pipeline: The pipeline.
        only: The shards that the call named; empty for all.
    """

    pipeline: Pipeline
    only: tuple[ShardId, ...]

    def send(self, report: ValidatedTarget, ended_ms: int, readings: int = 0) -> None:
        """Send a report. If Kafka does not take it, a warning on stderr says so.

        Args:
            report: The report, at the end of its comparison.
            ended_ms: When that ended, in milliseconds since 1970.
            readings: How many readings of its differences were asked for.
        """
        record = record_of(report, self.only, ended_ms, readings)
        try:
            send_validation(self.pipeline, record_format(self.pipeline.kafka), record)
        except ShardMergeError as error:
            _warn(record.target, "the pages do not show this comparison", error)

    def forget(self, target: TargetTable) -> None:
        """Take a target's comparisons from the pages, since its table is another one now.

        If Kafka does not take it, a warning on stderr says so.
        """
        try:
            forget_validations(self.pipeline, target)
        except ShardMergeError as error:
            what = "the pages still show comparisons of the table from before"
            _warn(target, what, error)


def _warn(target: TargetTable, what: str, error: ShardMergeError) -> None:
    text = coded(_UNTOLD_CODE, f"{what}: {coded(error.code, error.message)}")
    click.echo(f"{target}: warning: {text}", err=True)


def record_of(
    report: ValidatedTarget, only: tuple[ShardId, ...], ended_ms: int, readings: int = 0
) -> TargetValidation:
    """The record of a report: bounded, and without values of rows but those of keys.

    Args:
        report: The report, at the end of its comparison.
        only: The shards that the call named; empty for all.
        ended_ms: When that ended, in milliseconds since 1970.
        readings: How many readings of its differences were asked for.
    """
    numbers = Counter(row.kind for row in report.differences)
    known = (ms_of(row.since) or ended_ms for row in report.differences)
    return TargetValidation(
        TargetTable(*report.target.split(".", 1)),
        report.version,
        ended_ms - report.took_ms,
        ended_ms,
        report.complete,
        report.rows,
        len(report.shards),
        numbers["missing"],
        numbers["extra"],
        numbers["differs"],
        numbers["count"],
        report.in_doubt,
        len(report.unsettled),
        report.obstacles,
        report.key,
        tuple(_groups(report.differences)),
        only,
        tuple(_short(note) for note in report.left_out[:MOST_NOTES]),
        report.stopped,
        report.code,
        min(known, default=0),
        readings,
    )


def _groups(differences: tuple[RowDifference, ...]) -> Iterator[DifferingRows]:
    """The differences by shard and kind, the largest groups first."""
    found: dict[tuple[str, str], list[RowDifference]] = {}
    for row in differences:
        found.setdefault((row.shard, row.kind), []).append(row)
    largest = sorted(found.items(), key=lambda group: (-len(group[1]), group[0]))
    for (shard, kind), rows in largest[:MOST_GROUPS]:
        keys = tuple(tuple(map(_short, row.key)) for row in rows[:MOST_KEYS])
        yield DifferingRows(kind, _shard(shard) if shard else None, len(rows), keys)


def _shard(name: str) -> ShardId:
    source, _, table = name.partition("/")
    return ShardId(source, *table.split(".", 1))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"
