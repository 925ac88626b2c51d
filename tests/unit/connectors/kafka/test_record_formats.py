"""The ids of our contracts come from the registry when a process starts."""

from __future__ import annotations

import logging

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
    subjects: list[str]

    def __init__(self, address: object) -> None:
        Registry.subjects = []

    def registered(self, subject: str, text: str) -> int:
        if Registry.away:
            Registry.away -= 1
            raise RegistryUnreachable("away")
        Registry.subjects.append(subject)
        return len(Registry.subjects)


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
    assert [r.message for r in caplog.records] == ["registry_awaited SM-9001: away"] * 2
    Registry.away = 1
    with pytest.raises(RegistryUnreachable):
        awaited_record_format(REGISTRY, lambda: True)
