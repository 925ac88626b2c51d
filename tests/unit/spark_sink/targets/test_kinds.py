"""From the pipeline file to a kind of target, and what Spark is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.spark_sink.process.settings import SinkSettings, settings_from
from shardmerge.spark_sink.process.spark_session import SparkStart
from shardmerge.spark_sink.rebuilding.merge import Merge
from shardmerge.spark_sink.targets.iceberg.maintenance import Maintenance
from shardmerge.spark_sink.targets.iceberg.target import (
    IcebergTarget,
    hidden_conf,
    runtime_of,
    spark_conf,
)
from shardmerge.spark_sink.targets.kinds import open_target
from shardmerge.spark_sink.targets.mysql.target import MySqlTarget

CATALOG = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", "/w")))


def pipeline(target: Target) -> Pipeline:
    return Pipeline("p", Kafka("127.0.0.1:1"), Connect(""), (), (), target, Sink())


def test_the_kind_decides_and_nothing_is_connected_yet() -> None:
    settings = SinkSettings(Path())
    lake = Target("", 0, "", "", kind="iceberg", version="1.12.0", catalog=CATALOG)

    for target, kind in (
        (Target("127.0.0.1", 1, "u", "p"), MySqlTarget),
        (Target("127.0.0.1", 1, "u", "p", kind="mariadb", version="11"), MySqlTarget),
        (lake, IcebergTarget),
    ):
        opened = open_target(settings, Merge(pipeline(target), "p"))
        assert isinstance(opened, kind)
        opened.close()


def test_a_spark_that_others_use_is_stopped_by_none_but_its_owner() -> None:
    class Shared(SparkStart):
        def stop(self) -> None:
            raise AssertionError("others use it")

    lake = pipeline(Target("", 0, "", "", kind="iceberg", version="1.12.0", catalog=CATALOG))
    settings = SinkSettings(Path())
    shared = IcebergTarget(settings, lake, Shared(lambda: None, "nothing"))
    Maintenance(settings, lake, shared).close()
    shared.close()

    stopped: list[str] = []
    own = IcebergTarget(settings, lake)
    own.spark.stop = lambda: stopped.append("own")  # type: ignore[method-assign]
    Maintenance(settings, lake, own).close()
    assert stopped == [], "the target is still its owner's"
    own.close()
    assert stopped == ["own"]


def test_spark_is_told_of_the_catalog_and_reads_no_cached_table() -> None:
    conf = spark_conf(CATALOG, SinkSettings(Path()), "1.12.0")

    fetched = conf["spark.jars.packages"]
    assert fetched == "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
    assert runtime_of("4.0.4", "1.11.0").endswith("runtime-4.0_2.13:1.11.0")
    assert runtime_of("3.5.8", "1.11.0").endswith("runtime-3.5_2.12:1.11.0")
    assert conf["spark.sql.catalog.lake"] == "org.apache.iceberg.spark.SparkCatalog"
    assert conf["spark.sql.catalog.lake.type"] == "hadoop"
    assert conf["spark.sql.catalog.lake.warehouse"] == "/w"
    assert conf["spark.sql.catalog.lake.cache-enabled"] == "false"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    # MERGE runs in that JVM: it needs both of Java's compilers.
    assert "TieredStopAtLevel" not in conf["spark.driver.extraJavaOptions"]


def test_a_catalogs_secrets_are_not_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    given = (("s3.secret-access-key", "env:S3_KEY"), ("type", "rest"), ("warehouse", "file:///w"))
    catalog = SparkCatalog("lake", given)
    monkeypatch.setenv("S3_KEY", "geheim")

    shown = spark_conf(catalog, SinkSettings(Path()), "1.12.0")

    assert not any("secret" in key for key in shown)
    assert shown["spark.sql.catalog.lake.warehouse"] == "file:///w"
    assert hidden_conf(catalog) == {"spark.sql.catalog.lake.s3.secret-access-key": "geheim"}


def test_a_jar_that_is_given_is_not_fetched() -> None:
    arguments = ["--pipeline", "p.toml"]
    settings = settings_from(arguments, {"SHARDMERGE_SPARK_JARS": "/a.jar"})

    conf = spark_conf(CATALOG, settings, "1.12.0")

    assert conf["spark.jars"] == "/a.jar" and "spark.jars.packages" not in conf
    assert settings_from(arguments, {}).jars == ""


def test_fetched_jars_are_kept_where_the_settings_say() -> None:
    arguments = ["--pipeline", "p.toml"]
    settings = settings_from(arguments, {"SHARDMERGE_SPARK_IVY": "/tmp/ivy"})

    conf = spark_conf(CATALOG, settings, "1.12.0")

    assert conf["spark.jars.ivy"] == "/tmp/ivy" and "spark.jars.packages" in conf
    assert "spark.jars.ivy" not in spark_conf(CATALOG, settings_from(arguments, {}), "1.12.0")
