"""Compares all targets again and again, beside the sink, until the process is ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NoReturn

import click

from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ConfigError, ShardMergeError
from shardmerge.schemas.model.names import TargetTable

from .report import failed_report
from .report_shapes import ValidatedTarget
from .validation_meter import ValidationMeter


@dataclass(frozen=True, slots=True)
class Round:
    """One comparison of everything.

    Attributes:
        targets: All targets that are to be compared, as the topics name them now.
        compare: Compares one of them, and prints its report.
        tell: Prints the report of a target that could not be compared.
    """

    targets: Sequence[TargetTable]
    compare: Callable[[TargetTable], ValidatedTarget]
    tell: Callable[[ValidatedTarget], None]

    def report(self, target: TargetTable) -> ValidatedTarget:
        """The report of a target, also of one that needs a server that does not answer.

        Raises:
            ConfigError: The pipeline file is wrong.
        """
        try:
            return self.compare(target)
        except ConfigError:
            raise
        except ShardMergeError as error:
            report = failed_report(str(target), error)
            self.tell(report)
            return report


def keep_comparing(
    begin: Callable[[], AbstractContextManager[Round]],
    meter: ValidationMeter,
    pause_s: float,
    *,
    ended: Callable[[], None] = lambda: None,
    sleep: Callable[[float], None] = time.sleep,
    now_s: Callable[[], float] = time.time,
) -> NoReturn:
    """Run rounds for ever. A target that cannot be compared ends neither the round nor the process.

    Args:
        begin: Begins a round.
        meter: Receives each report, and each round that could not begin.
        pause_s: Seconds between two rounds.
        ended: Called after each round that could begin.
        sleep: Waits for a number of seconds.
        now_s: The time now, in seconds since 1970.

    Raises:
        ConfigError: The pipeline file is wrong.
    """
    while True:
        try:
            with begin() as this:
                meter.keep_only([str(target) for target in this.targets])
                for target in this.targets:
                    meter.compared(this.report(target), now_s())
            ended()
        except ConfigError:
            raise
        except ShardMergeError as error:
            meter.failed()
            click.echo(f"this round failed: {coded(error.code, error.message)}", err=True)
        sleep(pause_s)
