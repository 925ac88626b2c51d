"""The settings that the sink's process gets when it starts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardmerge.connectors.event_log import PLAIN, add_log_option, form_of
from shardmerge.connectors.failpoints import failpoint
from shardmerge.schemas.model.errors import ConfigError

from .failpoints import PLACES, SETTING

MASTER = "SHARDMERGE_SPARK_MASTER"
DRIVER_MEMORY = "SHARDMERGE_SPARK_DRIVER_MEMORY"
UI_PORT = "SHARDMERGE_SPARK_UI_PORT"
LOG_LEVEL = "SHARDMERGE_SINK_LOG_LEVEL"
JARS = "SHARDMERGE_SPARK_JARS"


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Settings of one sink process. Settings that agents and sink share are in the pipeline file.

    Attributes:
        pipeline_file: Path of the pipeline file.
        master: Spark's master URL.
        driver_memory: Heap of the driver's JVM, in Java's notation (``512m``); "" for what the kind
            of target needs.
        ui_port: Port of Spark's web page on 127.0.0.1; 0 for no page.
        log_level: Of our own log records.
        jars: Paths of further jars for Spark, separated by commas: for example Iceberg's runtime,
            if Spark is not to fetch it.
        log_format: Form of the log's lines: ``plain`` or ``json``.
    """

    pipeline_file: Path
    master: str = "local[2]"
    driver_memory: str = ""
    ui_port: int = 0
    log_level: str = "INFO"
    jars: str = ""
    log_format: str = PLAIN


def settings_from(arguments: Sequence[str], env: Mapping[str, str]) -> SinkSettings:
    """Read settings from the command line, and what it leaves out from the environment.

    Raises:
        ConfigError: A value is not usable.
    """
    parser = argparse.ArgumentParser(
        prog="python -m shardmerge.spark_sink.job",
        description="Applies row changes and target DDL: the sink of one pipeline.",
    )
    parser.add_argument("--pipeline", required=True, type=Path, help="the pipeline file")
    parser.add_argument(
        "--master",
        default=env.get(MASTER, "local[2]"),
        help=f"Spark's master URL ({MASTER}; default %(default)s)",
    )
    add_log_option(parser)
    options = parser.parse_args(arguments)
    port = env.get(UI_PORT, "0")
    if not port.isdigit():
        raise ConfigError(f"{UI_PORT} must be a port number, not {port!r}", code="SM-5501")
    level = env.get(LOG_LEVEL, "INFO").upper()
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ConfigError(
            f"{LOG_LEVEL} {level!r} is not DEBUG, INFO, WARNING or ERROR", code="SM-5501"
        )
    failpoint(env.get(SETTING, ""), PLACES)
    return SinkSettings(
        pipeline_file=options.pipeline,
        master=options.master,
        driver_memory=env.get(DRIVER_MEMORY, ""),
        ui_port=int(port),
        log_level=level,
        jars=env.get(JARS, ""),
        log_format=form_of(options.log_format, env),
    )
