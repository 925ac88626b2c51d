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
    """Run rounds for ever; what does not answer ends a round, not the process.

    Args:
        compare: Compares each target once; yields the report of each.
        meter: Is told what was found.
        pause_s: Seconds between two rounds.
        sleep: Waits for seconds.
        now_s: Seconds since 1970.

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
            click.echo(f"this round ended: {coded(error.code, error.message)}", err=True)
        sleep(pause_s)
