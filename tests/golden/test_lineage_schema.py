"""The specification that lineage events are held against is the one that was published."""

from __future__ import annotations

from hashlib import sha256

from tests.lineage_schema import FOLDER, faults


def test_the_schemas_are_unchanged() -> None:
    listed = {
        name: digest
        for digest, name in map(str.split, (FOLDER / "checksums.txt").read_text().splitlines())
    }
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("*.json")}
    assert found == listed


def test_an_event_without_a_run_is_no_event() -> None:
    event = {
        "eventTime": "2026-11-26T10:00:00Z", "producer": "urn:x:1", "inputs": [], "outputs": [],
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "job": {"namespace": "n", "name": "j"}, "run": {"runId": "no uuid"},
    }  # fmt: skip
    assert any("uuid" in fault for fault in faults(event))
