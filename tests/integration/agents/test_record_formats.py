"""Our own records as JSON on a real broker: the same decisions, for any JSON tool."""

from __future__ import annotations

import json

import pytest

from shardmerge.schemas.pipeline import topics

from .line import Line
from .test_replay import exported, play, run


@pytest.mark.parametrize("line", ["json"], indirect=True)
def test_a_line_in_json_decides_and_replays_the_same(line: Line) -> None:
    play(line, seed=24)
    shard = f"{line.sources[0]}/shop.tbl00"
    paused = run("command", "pause", "--shard", shard, "--pipeline", line.pipeline_file)
    assert paused.exit_code == 0, paused.output

    line.check_outputs()
    kinds = {
        topics.commands(line.pipeline).name: {"OperatorCommand"},
        topics.schema_log(line.pipeline).name: {"SchemaChange", "OperatorCommand"},
        topics.ddl(line.pipeline).name: {"Decision"},
        topics.joined_schemas(line.pipeline).name: {"JoinedSchema"},
    }
    for topic, expected in kinds.items():
        written = [json.loads(r.value) for r in line.written_as_they_are(topic)]
        assert {value["record"] for value in written} == expected
    words = ["--verify", "--from-sources"]
    live = run("replay", "--pipeline", line.pipeline_file, *words)
    assert (live.exit_code, live.stdout.splitlines()[-1]) == (0, "equal"), live.output
    # A bundle tells the same where no broker is.
    assert run("replay", "--file", exported(line), *words).stdout == live.stdout
