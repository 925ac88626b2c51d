"""Starts Spark for the sink's process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from .settings import SinkSettings

_DRIVER_MEMORY = "512m"


def start_spark(settings: SinkSettings, conf: Mapping[str, str] | None = None) -> Any:
    """A Spark session for local work: on 127.0.0.1 only, no web page unless asked for.

    Args:
        settings: See there.
        conf: What a kind of target needs of Spark beside it.
    """
    # The workers must be this Python: the driver's values are pickled for them.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    local = settings.master.startswith("local")
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = (
        SparkSession.builder.appName("shardmerge-sink")
        .master(settings.master)
        .config("spark.driver.memory", settings.driver_memory or _DRIVER_MEMORY)
        .config("spark.ui.enabled", str(settings.ui_port > 0).lower())
        .config("spark.ui.port", str(settings.ui_port))
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.worker.reuse", "true")
        .config("spark.python.worker.memory", "256m")
        .config("spark.task.maxFailures", "1")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=96m")
    )
    if local:
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
