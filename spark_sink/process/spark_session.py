"""Starts Spark for the sink's process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from shardmerge.connectors.huge_pages import HUGE_PAGES
from shardmerge.schemas.model.errors import ConfigError

from .settings import SinkSettings

_DRIVER_MEMORY = "512m"
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=96m"
"""For a driver whose JVM computes. In other drivers the JVM only hands tasks to Python, and Java's
first compiler is enough: the second one took about an eighth of the sink's CPU time for a backlog.
"""
_FIRST_COMPILER_ONLY = "-XX:TieredStopAtLevel=1"


class SparkStart:
    """Starts Spark in the background; ``session`` waits for it.

    Args:
        start: Starts Spark and returns the session.
        needs: What the start needs, as text for people.
    """

    def __init__(self, start: Callable[[], Any], needs: str) -> None:
        self._start = start
        self._needs = needs
        self._session: Any = None
        self._failure: Exception | None = None
        self._starter = threading.Thread(target=self._run, name="spark-start", daemon=True)

    def begin(self) -> None:
        """Begin to start it, if that has not been done."""
        if self._starter.ident is None:
            self._starter.start()

    @property
    def is_starting(self) -> bool:
        """Whether the start has begun and not ended."""
        return self._starter.is_alive()

    @property
    def lacks_executors(self) -> bool:
        """Whether Spark has started, and the cluster has no executor for it: a job would wait.

        Other applications may have all cores, or no worker may be up. A cluster leaves its cores to
        a driver whose machine is gone, until it notices that.
        """
        return self._session is not None and _lacks_executors(self._session)

    def session(self) -> Any:
        """Spark's session.

        Raises:
            ConfigError: Spark does not start.
        """
        self.begin()
        self._starter.join()
        if self._failure is not None:
            raise ConfigError(
                f"Spark does not start: {self._failure}",
                hint=f"see the lines before this one; it needs {self._needs}",
                code="SM-5503",
            ) from self._failure
        return self._session

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._starter.ident is None:
            return
        self._starter.join()
        if self._session is not None:
            self._session.stop()

    def _run(self) -> None:
        try:
            self._session = self._start()
        except Exception as error:  # ``session`` raises it, in the thread that needs Spark
            self._failure = error


def _lacks_executors(session: Any) -> bool:
    """Whether a cluster has no executor for a session that it has not given up."""
    context = session.sparkContext
    if context.master.startswith("local"):
        return False
    scala = context._jsc.sc()
    return bool(scala.getExecutorIds().isEmpty() and not scala.isStopped())


def start_spark(
    settings: SinkSettings,
    conf: Mapping[str, str] | None = None,
    hidden: Mapping[str, str] | None = None,
) -> Any:
    """A Spark session. A local one listens on 127.0.0.1 only; a web page has to be asked for.

    Args:
        settings: See ``SinkSettings``.
        conf: Spark's settings that a kind of target needs besides.
        hidden: The same, but they are set when Spark runs: ``conf`` stands on the command line of
            its JVM, which every user of the machine can read.
    """
    local = settings.master.startswith("local")
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.update(pythons(os.environ, local=local))
    builder = SparkSession.builder.appName("shardmerge-sink")
    if settings.master:
        builder = builder.master(settings.master)
    builder = (
        builder.config("spark.driver.memory", settings.driver_memory or _DRIVER_MEMORY)
        .config("spark.ui.enabled", str(settings.ui_port > 0).lower())
        .config("spark.ui.port", str(settings.ui_port))
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.worker.reuse", "true")
        .config("spark.python.worker.memory", "256m")
        # Over TCP each task waits 40 ms for an acknowledgement that is delayed (from Spark 4.1 on).
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.task.maxFailures", "1")
        .config("spark.driver.extraJavaOptions", f"{JAVA_OPTIONS} {_FIRST_COMPILER_ONLY}")
    )
    if local:
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    for name, value in HUGE_PAGES.items():
        if name not in os.environ:
            builder = builder.config(f"spark.executorEnv.{name}", value)
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # On a cluster Spark warns when no worker takes a job, or when an executor is lost.
    session.sparkContext.setLogLevel("ERROR" if local else "WARN")
    for key, value in (hidden or {}).items():
        session.conf.set(key, value)
    return session


def pythons(env: Mapping[str, str], *, local: bool) -> dict[str, str]:
    """The variables that name the Python of Spark's workers and of its driver.

    The driver's values are pickled for the workers, so they run this Python. Workers on other
    machines may have it at another path: there ``PYSPARK_PYTHON`` says where, if it is set.
    ``spark-submit`` sets it from ``spark.pyspark.python``.
    """
    of_workers = "" if local else env.get("PYSPARK_PYTHON", "")
    return {
        "PYSPARK_PYTHON": of_workers or sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
