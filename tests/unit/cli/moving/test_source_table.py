"""The text of a pipeline file, when one source's server changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.moving.source_table import (
    changed_keys,
    lines_of,
    next_epoch,
    parts_to_restart,
    with_source,
)
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.lineage.open_lineage import OpenLineage
from shardmerge.schemas.pipeline.settings import Source
from tests.recorded import pipeline

TEXT = """# ours
[pipeline]
name = "p"

[[sources]]  # the first
name = "s1"
host = "old"  # until the move
port = 3306

[[sources]]
name = "s2"
host = "other"  # stays
[sources.tls]
mode = "required"
"""
OLD = Source("s1", "old", 3306, "u", "env:P", 9001)
NEW = replace(OLD, host="new")
AT_OLD = {"database.hostname": "old", "database.port": "3306"}
AT_NEW = {"database.hostname": "new", "database.port": "3306"}
EPOCH = "transforms.epoch.static.value"


def test_only_that_sources_lines_change() -> None:
    found = with_source(TEXT, "s1", {"host": "new", "epoch": 1})
    assert found == TEXT.replace('"old"', '"new"').replace("3306\n", "3306\nepoch = 1\n")


def test_a_table_with_tables_of_its_own_gets_a_new_key_before_them() -> None:
    found = with_source(TEXT, "s2", {"host": "new", "epoch": 1})
    assert found == TEXT.replace('"other"  # stays', '"new"  # stays\nepoch = 1\n')


def test_sources_may_be_an_array_of_inline_tables() -> None:
    text = 'sources = [{ name = "s1", host = "old" }]\n'
    expected = 'sources = [{ name = "s1", host = "new" }]\n'
    assert with_source(text, "s1", {"host": "new"}) == expected


def test_a_source_that_the_file_has_not_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no table of source 's9'"):
        with_source(TEXT, "s9", {"host": "new"})


def test_the_epoch_is_higher_than_all_before() -> None:
    assert next_epoch(OLD, NEW, AT_OLD) == 1
    assert next_epoch(replace(OLD, epoch=4), NEW, AT_OLD) == 5
    assert next_epoch(OLD, NEW, AT_OLD | {EPOCH: "7"}) == 8


def test_a_repeated_call_finds_the_epoch_of_the_first() -> None:
    edited = replace(NEW, epoch=1)
    assert next_epoch(edited, NEW, AT_OLD) == 1, "killed behind the file"
    assert next_epoch(edited, NEW, AT_NEW | {EPOCH: "1"}) == 1, "killed behind the connector"
    assert next_epoch(OLD, NEW, AT_NEW | {EPOCH: "1"}) == 1, "another copy of the file"


def test_a_file_that_somebody_edited_without_an_epoch_gets_one() -> None:
    assert next_epoch(NEW, NEW, AT_OLD) == 1
    assert next_epoch(replace(NEW, epoch=2), NEW, AT_OLD | {EPOCH: "2"}) == 3


def test_what_changes_is_told_as_lines() -> None:
    keys = changed_keys(OLD, replace(NEW, port=3307, epoch=1))
    assert lines_of(keys) == ('host = "new"', "port = 3307", "epoch = 1")


def test_the_sink_starts_again_only_if_it_uses_the_sources_address() -> None:
    streamed, loaded = replace(OLD, snapshot="debezium"), replace(OLD, snapshot="spark")
    named = replace(pipeline(), lineage=OpenLineage("file", path="events.jsonl"))
    assert parts_to_restart(pipeline(), streamed) == ("validator",)
    assert parts_to_restart(pipeline(), loaded) == ("sink", "validator")
    assert parts_to_restart(named, streamed) == ("sink", "validator"), "its events name the server"
