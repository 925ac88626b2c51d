"""Between Kafka's bytes and the folds', while the registry comes and goes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from dataclasses import replace

import fastavro
import pytest

from shardmerge.agents.handling.effects import Send, SourceRecord
from shardmerge.agents.runtime import wire_formats
from shardmerge.agents.runtime.wire_formats import canonical, translation, wire
from shardmerge.cli import bundles
from shardmerge.connectors.formats.avro_wire import (
    OWN_JSON,
    JsonOfAvro,
    RegistryUnreachable,
    UndecodableAvro,
)
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.connectors.kafka import record_formats
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Target
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.record_format import RecordFormat
from tests.unit.schemas.records.test_codec_plain import RECORDED

SCHEMA = {
    "type": "record", "name": "SchemaChangeValue", "namespace": "io.debezium.connector.mysql",
    "fields": [
        {"name": "databaseName", "type": ["null", "string"], "default": None},
        {"name": "ddl", "type": ["null", "string"], "default": None},
        {"name": "tableChanges", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip
EVENT = {"databaseName": "a", "ddl": "ALTER TABLE t ADD c INT", "tableChanges": []}
JSON = Pipeline(
    "p", Kafka("127.0.0.1:9092"), Connect("http://127.0.0.1:8083"), (), (), Target("h", 1, "u", "p")
)
AVRO = replace(JSON, kafka=replace(JSON.kafka, row_format="avro", schema_registry="http://r"))
RECORDS = RecordFormat()
STORED = codec.encode(RECORDED[0])


def written() -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(SCHEMA), EVENT)
    return b"\0\0\0\0\5" + body.getvalue()


class Registry:
    """Away as often as it is told."""

    away = 0

    def __init__(self, address: object) -> None:
        self.address = address

    def schema_text(self, number: int) -> str:
        assert number == 5
        if Registry.away:
            Registry.away -= 1
            raise RegistryUnreachable("away")
        return json.dumps(SCHEMA)


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_formats, "SchemaRegistry", Registry)
    monkeypatch.setattr(wire_formats, "PAUSE_S", 0.0)


def test_a_change_in_avro_becomes_json_once_the_registry_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Registry.away = 2
    with caplog.at_level(logging.WARNING):
        read = asyncio.run(translation(AVRO, RECORDS)(SourceRecord("s1", 0, 7, b"k", written())))

    assert json.loads(read.value or b"") == EVENT
    assert (read.topic, read.offset, read.key) == ("s1", 7, b"k")
    assert [r.__dict__["event"] for r in caplog.records] == ["registry_awaited"] * 2


def test_our_own_records_reach_the_folds_as_the_codec_s_and_json_as_it_is() -> None:
    in_json = RecordFormat("json")
    for name in ("p.commands", "p.schema-log"):
        came = SourceRecord(name, 0, 0, None, in_json.write(RECORDED[0]))
        translate = translation(AVRO, in_json) if name == "p.commands" else canonical(in_json)
        assert asyncio.run(translate(came)) == replace(came, value=STORED)
    change = SourceRecord("s1", 0, 7, b"k", b"{}")
    assert asyncio.run(translation(JSON, in_json)(change)) is change


def test_our_own_records_are_sent_in_their_format_and_requests_as_they_are() -> None:
    in_json = RecordFormat("json")
    sent = wire(JSON, in_json)
    assert sent(Send("p.ddl", b"k", STORED)) == in_json.write(RECORDED[0])
    assert sent(Send("p.signals", b"k", b"of Debezium")) == b"of Debezium"
    assert wire(JSON, RECORDS)(Send("p.ddl", b"k", STORED)) == STORED


def test_what_is_no_avro_is_an_error_with_a_hint() -> None:
    with pytest.raises(UndecodableAvro, match="Confluent's framing") as caught:
        asyncio.run(translation(AVRO, RECORDS)(SourceRecord("s1", 0, 7, b"k", b'{"ddl": ""}')))
    assert "row_format" in caught.value.hint


def test_a_bundle_holds_schema_changes_in_json_and_asks_no_registry() -> None:
    record = StoredRecord("s1", 0, 7, b"k", written())

    stored = bundles._to_json(AVRO)(record)

    assert json.loads(stored.value or b"") == EVENT
    assert bundles.without_passwords(AVRO).kafka == JSON.kafka
    assert bundles._to_json(JSON)(record) == record


def test_a_bundle_holds_our_records_as_the_codec_s() -> None:
    in_json = RecordFormat("json")
    canonical = bundles._to_canonical(in_json)
    record = StoredRecord("p.ddl", 0, 7, b"k", in_json.write(RECORDED[0]))
    assert canonical(record) == replace(record, value=STORED)
    tombstone = replace(record, value=None)
    assert canonical(tombstone) == tombstone


def test_what_a_repair_writes_passes_as_it_is():
    value = OWN_JSON + b', "connector": "mysql"}}'
    assert JsonOfAvro(lambda _: "")(value) == value
