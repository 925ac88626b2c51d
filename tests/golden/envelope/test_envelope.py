"""Real schema-change records in, our events and the tracker's answers out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardmerge.agents.tracking.tracked import Tracked
from shardmerge.agents.tracking.tracker import TrackResult, track
from shardmerge.connectors.debezium.envelope import SchemaChangeEvent, schema_change_event
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.plain import to_plain

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.iterdir() if (path / "records.jsonl").is_file())
RULES = (
    RoutingRule(".*", "shop", r"tbl\d\d", "merged", "tbl"),
    RoutingRule(".*", "chaos1", r"k\d", "merged", "keyless"),
)


def events(case: Path) -> list[SchemaChangeEvent]:
    lines = (case / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [
        schema_change_event("source1", r["offset"], r["key"].encode(), r["value"].encode())
        for r in records
    ]


def compare(path: Path, text: str, update: bool) -> None:
    if update:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_real_records_are_read_into_events(case, update_golden):
    text = json.dumps(to_plain(events(case)), indent=1, ensure_ascii=False) + "\n"
    compare(case / "events.json", text, update_golden)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_real_records_are_tracked(case, update_golden):
    version = tuple(int(n) for n in case.name.rpartition("-")[2].split("."))
    context = ServerContext(version=version)
    schemas: dict[ShardId, Tracked] = {}
    lines = []
    for event in events(case):
        result = track(schemas, event, RULES, context)
        for shard, value in result.puts.items():
            if value is None:
                schemas.pop(shard, None)
            else:
                schemas[shard] = value
        lines += described(event, result)
    compare(case / "changes.txt", "\n".join(lines) + "\n", update_golden)


def described(event: SchemaChangeEvent, result: TrackResult) -> list[str]:
    lines = [f"{event.offset} {' '.join(event.ddl.split())}"]
    if result.ignored is not None:
        lines.append(f"    ignored: {result.ignored.reason}")
    for change in result.changes:
        columns = [c.name for c in change.after.columns] if change.after else "gone"
        actions = "; ".join(change.actions)
        lines.append(
            f"    {change.id} of {change.id.count} {change.shard}: {change.error or actions} "
            f"→ {columns}"
        )
    return lines
