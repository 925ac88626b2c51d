"""Iceberg tables as a target: one Spark session, one catalog, everything in the tables."""

from __future__ import annotations

from collections.abc import Mapping

from shardmerge.schemas.pipeline import Pipeline
from shardmerge.schemas.spark_catalog import SparkCatalog
from shardmerge.spark_sink.settings import SinkSettings
from shardmerge.spark_sink.spark_session import start_spark

from .batches import IcebergBatches, SparkStart
from .fold import FoldConfig
from .journal import IcebergJournal
from .store import IcebergStore
from .tables import IcebergCatalog

_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13"
_DRIVER_MEMORY = "1g"
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


class IcebergTarget:
    """See ``interface.Target``; ``spark``: one that others use too."""

    def __init__(
        self, settings: SinkSettings, pipeline: Pipeline, spark: SparkStart | None = None
    ) -> None:
        target = pipeline.target
        catalog = target.catalog
        assert catalog is not None
        conf = spark_conf(catalog, settings, target.version)
        self.spark = spark or SparkStart(lambda: start_spark(settings, conf))
        self._catalog = catalog.name
        self._control_database = target.control_database
        self._pipeline = pipeline.name
        self.state = self._new_store()
        self.batches = IcebergBatches(
            self.spark,
            self.state,
            FoldConfig(pipeline.kafka.bootstrap_servers),
            pipeline.sink.spark_min_records,
        )

    def journal(self, epoch: int) -> IcebergJournal:
        """On the store of ``state``."""
        return IcebergJournal(self.state, epoch)

    def journal_of_thread(self, epoch: int) -> IcebergJournal:
        """On a store of its own; Spark's JVM serves every thread."""
        return IcebergJournal(self._new_store(), epoch)

    def close(self) -> None:
        """Stop Spark."""
        self.batches.stop()

    def _new_store(self) -> IcebergStore:
        return IcebergStore(
            lambda: IcebergCatalog(self.spark.session(), self._catalog),
            self._control_database,
            self._pipeline,
        )


def spark_conf(catalog: SparkCatalog, settings: SinkSettings, version: str) -> Mapping[str, str]:
    """What Spark is told of a catalog.

    Args:
        catalog: Of the pipeline file.
        settings: Where it names no jars, Spark fetches Iceberg's runtime.
        version: Of Iceberg, for Spark to fetch.
    """
    prefix = f"spark.sql.catalog.{catalog.name}"
    runtime = {"spark.jars.packages": f"{_RUNTIME}:{version}"}
    if settings.jars:
        runtime = {"spark.jars": settings.jars}
    return {
        **runtime,
        # MERGE runs in the driver's JVM, when Spark is local.
        "spark.driver.memory": settings.driver_memory or _DRIVER_MEMORY,
        "spark.sql.extensions": _EXTENSIONS,
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key}": value for key, value in catalog.properties},
        # A table read from a cache would be MERGEd into as of some moments ago.
        f"{prefix}.cache-enabled": "false",
        # What comes is UTC, see ``lines``.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Texts of shards stand in literals: ${…} in them is no variable, a backslash escapes.
        "spark.sql.variable.substitute": "false",
        "spark.sql.parser.escapedStringLiterals": "false",
        # Batches are small beside what the default of 200 is made for (measured: 3.3 s a batch).
        "spark.sql.shuffle.partitions": "4",
    }
