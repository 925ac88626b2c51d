"""Compares all targets again and again, beside the sink, until the process is ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NoReturn

import click

from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ConfigError, ShardMergeError

from .report_shapes import ValidatedTarget
from .validation_meter import ValidationMeter


def keep_comparing(
    compare: Callable[[], Iterator[ValidatedTarget]],
    meter: ValidationMeter,
    pause_s: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now_s: Callable[[], float] = time.time,
) -> NoReturn:
    """Run rounds for ever. A server that does not answer ends the round, not the process.

    Args:
        compare: Runs one round: compares each target once, and yields its report.
        meter: Receives each report, and each failed round.
        pause_s: Seconds between two rounds.
        sleep: Waits for a number of seconds.
        now_s: The time now, in seconds since 1970.

    Raises:
        ConfigError: The pipeline file is wrong.
    """
    while True:
        try:
            for report in compare():
                meter.compared(report, now_s())
        except ConfigError:
            raise
        except ShardMergeError as error:
            meter.failed()
            click.echo(f"this round failed: {coded(error.code, error.message)}", err=True)
        sleep(pause_s)
