"""The ids of our contracts come from the registry when a process starts."""

from __future__ import annotations

import json
import logging
from typing import ClassVar

import pytest

from shardmerge.connectors.formats.avro_wire import RegistryUnreachable
from shardmerge.connectors.kafka import record_formats
from shardmerge.connectors.kafka.record_formats import awaited_record_format, record_format
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.record_format import RecordFormat

REGISTRY = Kafka("k:9092", record_format="avro-registry", schema_registry="http://r")


class Registry:
    """Numbers what it is given; away as often as it is told."""

    away = 0
    earlier: ClassVar[dict[int, str]] = {}
    subjects: list[str]

    def __init__(self, address: object) -> None:
        Registry.subjects = []

    def registered(self, subject: str, text: str) -> int:
        if Registry.away:
            Registry.away -= 1
            raise RegistryUnreachable("away")
        Registry.subjects.append(subject)
        return len(Registry.subjects)

    def schemas_of(self, subject: str) -> dict[int, str]:
        return Registry.earlier if subject == "shardmerge.Decision" else {}


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_formats, "SchemaRegistry", Registry)
    monkeypatch.setattr(record_formats, "_PAUSE_S", 0.0)


def test_only_a_registry_s_format_asks_the_registry() -> None:
    Registry.away = 99
    for kafka in (
        Kafka("k:9092"),
        Kafka("k:9092", record_format="json"),
        Kafka("k:9092", row_format="avro", schema_registry="http://r"),
    ):
        assert record_format(kafka) == RecordFormat(kafka.record_format)
    Registry.away = 0
    found = record_format(REGISTRY)
    assert found == RecordFormat(
        "avro-registry",
        {header: number for number, (_, header, _) in enumerate(codec.contracts(), 1)},
    )
    assert Registry.subjects == [name for name, _, _ in codec.contracts()]


def test_a_registry_that_does_not_answer_is_awaited_until_told_to_stop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Registry.away = 2
    with caplog.at_level(logging.WARNING):
        assert awaited_record_format(REGISTRY).name == "avro-registry"
    assert [r.__dict__["event"] for r in caplog.records] == ["registry_awaited"] * 2
    assert caplog.records[0].__dict__["fields"]["error"] == "away"
    Registry.away = 1
    with pytest.raises(RegistryUnreachable):
        awaited_record_format(REGISTRY, lambda: True)


def test_records_of_a_schema_with_other_descriptions_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A registry gives the same contract another id when a description in it was rewritten."""
    header, text = next(
        (header, text)
        for name, header, text in reversed(codec.contracts())
        if name == "shardmerge.Decision"
    )
    other = json.dumps(json.loads(text) | {"doc": "Said otherwise."})
    monkeypatch.setattr(Registry, "earlier", {900: other, 901: '"string"', 902: "no schema"})

    found = record_format(REGISTRY)

    assert found.all_ids == {900: header}
    assert found.ids[header] != 900
    assert found.to_canonical(b"\0" + (900).to_bytes(4, "big") + b"body") == header + b"body"
