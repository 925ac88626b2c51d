"""Texts arrive as they are, whichever statement gave them their character set."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.servers.source_servers import source_spec
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.server_differences import server_context
from tests.breadth import further, with_further
from tests.charsets import CASES, COMMENTS, TEXT
from tests.charsets import play as play_case

from .conftest import CACHE, Play, make_play, other_worker
from .test_connectors import wait_for_snapshot

SNAPSHOT = tuple(f"{name}_app" for name in ("a", "m", "types", "zz"))
"""Databases of another character set than the server's, which the snapshot describes."""


@pytest.fixture(params=with_further("mysql", "mariadb1011"))
def made(request: pytest.FixtureRequest, stack: LocalStack) -> Iterator[Play]:
    """A pipeline whose source reads all databases that begin with its own one's name."""
    if request.param == "mysql":
        yield _of_several(make_play(stack, stack.ports.source1))
        return
    port = Ports.free().source1
    spec = source_spec(
        request.param, "charsets", stack.directory / "charsets", port, 111, cache=CACHE
    )
    stack.add(spec)
    yield _of_several(make_play(stack, port, "mariadb", "10.11.0"))
    stack.stop("charsets")


def _of_several(play: Play) -> Play:
    source = dataclasses.replace(play.pipeline.sources[0], databases=rf"\w*{play.database}_\w+")
    pipeline = dataclasses.replace(play.pipeline, sources=(source,))
    return dataclasses.replace(play, pipeline=pipeline)


def test_every_text_arrives_whichever_statement_gave_it_its_charset(
    made: Play, rest: ConnectRest
) -> None:
    name = connector_name(made.pipeline, made.pipeline.sources[0])
    with made.sql() as run:
        for word in SNAPSHOT:
            database = f"{word}{made.database}_old"
            run(f"CREATE DATABASE {database} CHARACTER SET latin1 COLLATE latin1_bin")
            run(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v VARCHAR(9))")
            run(f"INSERT INTO {database}.t VALUES (1, '{TEXT}')")
        deploy_connectors(made.pipeline, rest)
        wait_for_snapshot(made)
        for case in CASES:
            play_case(run, f"{made.database}_", case)
        garbled = {case: found for case in CASES if (found := _garbled(made, case, 0))}
        assert garbled == {}

        # A restarted connector learns the tables and the databases from its schema history.
        rest.restart(name)
        rest.wait_running(name, 180)
        for case in CASES:
            run(f"ALTER TABLE {made.database}_{case}.t ADD later VARCHAR(9)")
            run(f"UPDATE {made.database}_{case}.t SET later = '{TEXT}'")
        garbled = {case: found for case in CASES if (found := _garbled(made, case, 1))}
        assert garbled == {}
    assert _held(made) == {}


@further
def test_without_the_jar_shards_with_garbled_texts_are_held(
    play: Play, stack: LocalStack, tmp_path: Path
) -> None:
    with other_worker(stack, tmp_path, "bare_charsets") as rest, play.sql() as run:
        connect = dataclasses.replace(play.pipeline.connect, url=rest.url, exact_values=False)
        bare = _of_several(play)
        bare = dataclasses.replace(
            bare, pipeline=dataclasses.replace(bare.pipeline, connect=connect)
        )
        deploy_connectors(bare.pipeline, rest)
        wait_for_snapshot(bare)
        for case in CASES:
            play_case(run, f"{bare.database}_", case)
        garbled = {case for case in CASES if _garbled(bare, case, 0)}
        held = _held(bare)
        rest.delete(connector_name(bare.pipeline, bare.pipeline.sources[0]))

    assert len(garbled) >= 5 and garbled - COMMENTS <= set(held)
    assert set(held.values()) == {"SM-1115"}


def _held(made: Play) -> dict[str, str]:
    """The cases whose shards the tracker holds, with the code of the first reason."""
    context = server_context(made.pipeline.sources[0])
    rules = (RoutingRule(".*", r"\w+", "[ot]", "merged", "t"),)
    tracked: dict[ShardId, Tracked] = {}
    held: dict[str, str] = {}
    last: LastStatement | None = None
    with made.reader(made.source) as changes:
        end = changes.high_watermark()
        for offset in itertools.count():
            if (value := changes.next_before(end)) is None:
                return held
            event = schema_change_event(made.source, offset, None, json.dumps(value).encode())
            result = track(tracked, event, rules, context, last)
            last = result.last
            tracked |= {s: v for s, v in result.puts.items() if v is not None}
            for gone in [s for s, v in result.puts.items() if v is None]:
                tracked.pop(gone, None)
            for change in result.changes:
                case = change.shard.database.removeprefix(f"{made.database}_")
                if change.error:
                    held.setdefault(case, change.code)
    raise AssertionError("the topic has no end")


def _garbled(made: Play, case: str, number: int) -> dict[str, object]:
    """The values of a record of a case's table that are not the text."""
    with made.reader(f"{made.source}.{made.database}_{case}.t") as rows:
        after = [rows.next() for _ in range(number + 1)][-1]["after"]
    return {name: value for name, value in after.items() if name != "id" and value != TEXT}
