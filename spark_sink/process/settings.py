"""The settings that the sink's process gets when it starts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardmerge.connectors.failpoints import failpoint
from shardmerge.connectors.log_lines import PLAIN, add_log_option, form_of
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable

from .failpoints import PLACES, SETTING

MASTER = "SHARDMERGE_SPARK_MASTER"
DRIVER_MEMORY = "SHARDMERGE_SPARK_DRIVER_MEMORY"
UI_PORT = "SHARDMERGE_SPARK_UI_PORT"
MAX_PORT = 65_535
LOCAL_MASTER = "local[2]"
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""``spark-submit`` sets it for the Python program that it starts."""
LOG_LEVEL = "SHARDMERGE_SINK_LOG_LEVEL"
JARS = "SHARDMERGE_SPARK_JARS"
IVY = "SHARDMERGE_SPARK_IVY"
METRICS_HOST = "SHARDMERGE_SINK_METRICS_HOST"
METRICS_PORT = "SHARDMERGE_SINK_METRICS_PORT"
METRICS_PER_SHARD = "SHARDMERGE_SINK_METRICS_PER_SHARD"
STANDBY = "SHARDMERGE_SINK_STANDBY"
COMPILED_CODE = "SHARDMERGE_SINK_COMPILED_CODE"


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Settings of one sink process. Settings that agents and sink share are in the pipeline file.

    Attributes:
        pipeline_file: Path of the pipeline file.
        master: Spark's master URL; "" is the one that ``spark-submit`` was given.
        driver_memory: Heap of the driver's JVM, in Java's notation (``512m``); "" for what the kind
            of target needs.
        ui_port: Port of Spark's web page on 127.0.0.1; 0 for no page.
        log_level: Of our own log records.
        jars: Paths of further jars for Spark, separated by commas: for example Iceberg's runtime,
            if Spark is not to fetch it.
        ivy: Folder in which Spark keeps the jars that it fetches; "" for Spark's own choice, which
            is below the user's home.
        log_format: Form of the log's lines: ``plain`` or ``json``.
        metrics_host: Address on which metrics are served. There is no login: another host than the
            loopback is for closed networks only.
        metrics_port: Port of the metrics, at ``/metrics``; 0 for none.
        standby: 1 if it waits while another sink of the pipeline writes. Otherwise it takes over.
        metrics_per_shard: 1 if every shard is to have metrics of its own, too: two series for each.
        rebuild: The target whose shadow is filled, instead of applying everything.
        compiled_code: 1: compiled code makes lines for LOAD DATA of records, where it can. 0: only
            Python does it, which takes longer.
    """

    pipeline_file: Path
    master: str = LOCAL_MASTER
    driver_memory: str = ""
    ui_port: int = 0
    log_level: str = "INFO"
    jars: str = ""
    ivy: str = ""
    log_format: str = PLAIN
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 0
    metrics_per_shard: bool = False
    rebuild: TargetTable | None = None
    standby: bool = False
    compiled_code: bool = True

    @property
    def starts_spark_at_once(self) -> bool:
        """Whether Spark starts before this sink may write.

        On a cluster the executors of a sink that stands by would take the cores of the one that
        writes.
        """
        return not self.standby or self.master.startswith("local")


def settings_from(arguments: Sequence[str], env: Mapping[str, str]) -> SinkSettings:
    """Read the settings: from the command line, or else from the environment.

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
        default=env.get(MASTER, "" if SUBMITTED in env else LOCAL_MASTER),
        help=f"Spark's master URL ({MASTER}; default {LOCAL_MASTER}, or that of spark-submit)",
    )
    add_log_option(parser)
    parser.add_argument(
        "--metrics-host",
        default=env.get(METRICS_HOST, "127.0.0.1"),
        help=f"address of the metrics ({METRICS_HOST}; default %(default)s)",
    )
    parser.add_argument(
        "--metrics-port",
        default=env.get(METRICS_PORT, "0"),
        help=f"port of the metrics; 0 for none ({METRICS_PORT}; default %(default)s)",
    )
    parser.add_argument(
        "--metrics-per-shard",
        action="store_true",
        default=env.get(METRICS_PER_SHARD, "0") == "1",
        help=f"metrics of every shard, too ({METRICS_PER_SHARD}=1)",
    )
    parser.add_argument("--rebuild", metavar="DATABASE.TABLE", help="fill the shadow of a target")
    parser.add_argument(
        "--standby",
        action="store_true",
        default=env.get(STANDBY, "0") == "1",
        help=f"wait while another sink of the pipeline writes ({STANDBY}=1)",
    )
    options = parser.parse_args(arguments)
    for name in (METRICS_PER_SHARD, STANDBY, COMPILED_CODE):
        if (value := env.get(name, "0")) not in ("0", "1"):
            raise ConfigError(f"{name} must be 0 or 1, not {value!r}", code="SM-5501")
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
        ui_port=_port(UI_PORT, env.get(UI_PORT, "0")),
        log_level=level,
        jars=env.get(JARS, ""),
        ivy=env.get(IVY, ""),
        log_format=form_of(options.log_format, env),
        metrics_host=options.metrics_host,
        metrics_port=_port("--metrics-port", options.metrics_port),
        metrics_per_shard=options.metrics_per_shard,
        rebuild=TargetTable(*options.rebuild.split(".", 1)) if options.rebuild else None,
        standby=options.standby,
        compiled_code=env.get(COMPILED_CODE, "1") == "1",
    )


def _port(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_PORT:
        raise ConfigError(f"{name} must be a port number, not {text!r}", code="SM-5501")
    return int(text)
