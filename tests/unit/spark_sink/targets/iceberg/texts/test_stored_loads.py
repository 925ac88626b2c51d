from __future__ import annotations

import json
from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.loading.load_estimate import rows_of
from shardmerge.spark_sink.loading.load_state import Attempt, ChunkState, Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult
from shardmerge.spark_sink.targets.iceberg.texts.stored_loads import (
    accepts,
    finished,
    is_done,
    latest_loads,
    load_key,
    load_of,
    load_text,
    loads_in,
    stepped,
)
from tests.unit.spark_sink.loading.loads import SHARD, at, done, load

LOAD = load(LoadKind.CHUNKS, "5", "9")


def read(number: int, rows: int = 3) -> ChunkResult:
    return ChunkResult(SHARD, number, ChunkEnd.DONE, rows, 30, at(70))


def test_what_is_stored_is_read_again() -> None:
    some = done(LOAD, 1).begin(2)
    assert load_of(load_text(some)) == some


def test_a_load_of_a_version_without_attempts_is_read() -> None:
    plain = json.loads(load_text(done(LOAD, 1).begin(2)))
    del plain["attempts"]
    for chunk in plain["chunks"]:
        del chunk["attempt"]
    stored = load_of(json.dumps(plain))
    again = stored.give_all_back().begin(2)
    assert [chunk.given for chunk in again.running] == [Attempt(2, 1, 1)]
    assert stored.chunks[1].state is ChunkState.DONE


def test_a_complete_load_keeps_one_chunk_for_all() -> None:
    complete = done(done(LOAD, 0, 2), 1, before=300).proven()
    stored = load_of(load_text(complete))
    assert stored.is_complete and stored.is_read
    assert (len(stored.chunks), rows_of(stored)) == (1, 30)
    assert stored.chunks[0].read_before == at(300)
    assert load_of(load_text(stored)) == stored


def test_a_load_whose_table_was_dropped_stays_as_it_is() -> None:
    void = done(LOAD, 0).end_void(2, at(50))
    assert load_of(load_text(void)) == void


def test_only_the_properties_of_the_pipelines_loads_are_read() -> None:
    other = replace(LOAD, shard=ShardId("s1", "a.b", "c"))
    properties = {
        load_key("p", LOAD.shard): load_text(LOAD),
        load_key("p", other.shard): load_text(other),
        load_key("p2", LOAD.shard): load_text(LOAD),
        "shardmerge.p.state": "{}",
        "format-version": "2",
    }
    assert loads_in("p", properties) == [LOAD, other]
    assert load_key("p", other.shard) != load_key("p", ShardId("s1", "a", "b.c"))


def test_a_load_in_its_table_counts_more_than_the_same_in_the_control_table() -> None:
    begun, later = LOAD.begin(0), replace(LOAD, version=4)
    other = Load(ShardId("s1", "app", "u"), TargetTable("merged", "t"), 1, LoadKind.SNAPSHOT, 1)
    assert latest_loads([LOAD, other], [begun]) == [begun, other]
    assert latest_loads([LOAD], [later]) == [later]
    assert latest_loads([later], [LOAD]) == [later]


def test_a_step_leaves_chunks_that_were_finished_meanwhile() -> None:
    known = LOAD.begin(0).begin(1)
    stored = done(known, 1)
    after = stepped(stored, known, known.begin(2))
    assert [chunk.state for chunk in after.chunks] == [
        ChunkState.RUNNING,
        ChunkState.DONE,
        ChunkState.RUNNING,
    ]


def test_a_step_that_plans_a_chunk_again_counts() -> None:
    known = LOAD.begin(0)
    after = stepped(done(known, 0), known, known.give_back(0))
    assert after.chunks[0].state is ChunkState.PLANNED


def test_a_new_load_takes_the_place_of_the_one_before() -> None:
    complete = done(LOAD, 0, 1, 2).proven()
    later = replace(LOAD, version=4, base=4)
    assert stepped(complete, None, later) == later
    assert stepped(complete, later, later.begin(0)) == later.begin(0)


def test_a_chunk_is_finished_once_and_only_as_it_was_given_out() -> None:
    running = LOAD.begin(0)
    given, attempt = replace(running, chunks=()), running.chunks[0].given
    after = finished(running, given, read(0), attempt)
    assert after == running.finish(0, 3, 30, at(70))
    assert is_done(after, given, attempt) and not is_done(running, given, attempt)
    refused = (
        None,
        after,  # done already
        LOAD,  # given back
        running.move(2, at(10)),
        replace(running, version=4),
        running.end_void(2, at(50)),
        running.give_back(0).begin(0),
    )
    for stored in refused:
        assert finished(stored, given, read(0), attempt) is None
        assert not accepts(stored, given, attempt)
    assert not is_done(None, given, attempt)
    assert not is_done(replace(after, version=4), given, attempt)
    assert not is_done(after, given, Attempt(7, 1, 1))
    # Another attempt has done it, after this one's answer was lost.
    assert not is_done(done(running.give_back(0), 0), given, attempt)
    # The chunk was given out again behind a later gate.
    again = running.move(2, at(10)).begin(0)
    assert finished(again, given, read(0), attempt) is None
    assert finished(again, given, read(0), again.chunks[0].given) is not None
