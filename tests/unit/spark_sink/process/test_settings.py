from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.spark_sink.process.settings import settings_from

PIPELINE = ["--pipeline", "p.toml"]


def test_metrics_are_off_and_then_on_the_loopback_unless_told_otherwise() -> None:
    settings = settings_from(PIPELINE, {})
    assert (settings.metrics_host, settings.metrics_port) == ("127.0.0.1", 0)
    assert not settings.metrics_per_shard
    assert settings.compiled_code
    assert not settings.standby


def test_options_come_before_the_environment() -> None:
    env = {
        "SHARDMERGE_SINK_METRICS_HOST": "10.0.0.1",
        "SHARDMERGE_SINK_METRICS_PORT": "9401",
        "SHARDMERGE_SINK_METRICS_PER_SHARD": "1",
        "SHARDMERGE_SINK_STANDBY": "1",
    }
    settings = settings_from(PIPELINE, env)
    assert (settings.metrics_host, settings.metrics_port) == ("10.0.0.1", 9401)
    assert settings.metrics_per_shard
    assert settings.standby
    given = [*PIPELINE, "--metrics-host", "::1", "--metrics-port", "9500"]
    settings = settings_from(given, env)
    assert (settings.metrics_host, settings.metrics_port) == ("::1", 9500)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SHARDMERGE_SINK_METRICS_PORT", "metrics"),
        ("SHARDMERGE_SINK_METRICS_PORT", "65536"),
        ("SHARDMERGE_SPARK_UI_PORT", "-1"),
        ("SHARDMERGE_SINK_METRICS_PER_SHARD", "yes"),
        ("SHARDMERGE_SINK_STANDBY", "true"),
    ],
)
def test_a_value_that_is_none_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=value):
        settings_from(PIPELINE, {name: value})


@pytest.mark.parametrize(
    ("words", "env", "master"),
    [
        ([], {}, "local[2]"),
        ([], {"SHARDMERGE_SPARK_MASTER": "spark://m:7077"}, "spark://m:7077"),
        ([], {"PYSPARK_GATEWAY_PORT": "4711"}, ""),
        (["--master", "local[4]"], {"PYSPARK_GATEWAY_PORT": "4711"}, "local[4]"),
    ],
)
def test_the_master_of_spark_submit_counts_unless_another_is_named(
    words: list[str], env: dict[str, str], master: str
) -> None:
    assert settings_from([*PIPELINE, *words], env).master == master


@pytest.mark.parametrize(
    ("words", "at_once"),
    [
        ((), True),
        (("--standby",), True),
        (("--master", "spark://m:7077"), True),
        (("--master", "spark://m:7077", "--standby"), False),
        (("--master", "", "--standby"), False),
    ],
)
def test_a_standby_takes_no_cores_of_a_cluster(words: tuple[str, ...], at_once: bool) -> None:
    settings = settings_from(["--pipeline", "p", *words], {})
    assert settings.starts_spark_at_once is at_once
