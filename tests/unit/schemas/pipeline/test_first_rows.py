"""Who reads a source's first rows: what the pipeline file says, and what follows if it does not."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.first_rows import not_loaded
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.schemas.pipeline.text import pipeline_text

from .test_file import ENV, GOOD, ICEBERG


def file(*keys: str, of: str = GOOD, route: str = "") -> str:
    """A pipeline file whose source has these keys besides."""
    return of.replace("server_id = 1", "\n".join(["server_id = 1", *keys])) + route


def s1(text: str) -> Source:
    return parse_pipeline(text, ENV).source("s1")


def test_the_sink_reads_the_first_rows() -> None:
    source = s1(file())
    assert source.is_loaded
    assert source.connector_snapshot_mode == "no_data"
    assert (source.load_connections, source.load_rows_per_s) == (4, 0)
    assert s1(file('snapshot = "spark"')) == source


def test_debezium_reads_them_if_the_file_says_so() -> None:
    source = s1(file('snapshot = "debezium"'))
    assert not source.is_loaded
    assert source.connector_snapshot_mode == "initial"


@pytest.mark.parametrize("mode", ["initial", "never"])
def test_a_snapshot_mode_is_debeziums(mode: str) -> None:
    source = s1(file(f'snapshot_mode = "{mode}"'))
    assert not source.is_loaded
    assert source.connector_snapshot_mode == mode


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (('snapshot = "flink"',), "snapshot 'flink' is not known"),
        (('snapshot = ""',), "snapshot '' is not known"),
        (('snapshot = "spark"', 'snapshot_mode = "never"'), "does not go with"),
        (("load_connections = 0",), "at least 1"),
        (("load_rows_per_s = -1",), "at least 0"),
        (("load_snapshot_s = -1",), "at least 0"),
        (("load_port = 3307",), "are of a replica"),
        (('snapshot = "debezium"', 'load_host = "h"'), "goes with snapshot 'spark'"),
        (('load_host = "h"', 'load_password = "env:"'), "no environment variable"),
    ],
)
def test_a_first_load_that_cannot_be_is_refused(keys: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        s1(file(*keys))


def test_first_rows_are_loaded_into_an_iceberg_target() -> None:
    assert s1(file(of=ICEBERG)).is_loaded
    assert s1(file(of=ICEBERG, route='source = "s2"\nignore = ["delete"]\n')).is_loaded


@pytest.mark.parametrize("route", ['on_truncate = "keep"\n', 'ignore = ["delete"]\n'])
def test_they_are_not_where_the_table_keeps_rows_that_shards_have_not(route: str) -> None:
    pipeline = parse_pipeline(file(of=ICEBERG, route=route), ENV)
    assert not pipeline.source("s1").is_loaded
    assert "merged.t, an Iceberg target, ignores" in not_loaded("s1", pipeline.routes, "iceberg")
    assert parse_pipeline(pipeline_text(pipeline), {}) == pipeline
    assert s1(file(route=route)).is_loaded
    with pytest.raises(ConfigError, match="'spark' is not possible: the route to") as raised:
        s1(file('snapshot = "spark"', of=ICEBERG, route=route))
    assert raised.value.code == "SM-5204"
