"""The formats of our own records: each is read back, and the stored form is the same in all."""

from __future__ import annotations

import json

import pytest

from shardmerge.schemas.model.errors import ContractError, UnknownSchemaVersion
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.record_format import AVRO, RecordFormat
from tests.unit.schemas.records.test_codec_plain import RECORDED

IDS = {header: number for number, (_, header, _) in enumerate(codec.contracts(), 7)}
REGISTRY = RecordFormat("avro-registry", IDS)
JSON = RecordFormat("json")


@pytest.mark.parametrize("record", RECORDED, ids=lambda r: type(r).__name__)
def test_every_format_keeps_a_record_and_its_stored_form(record: codec.Record) -> None:
    stored = codec.encode(record)
    for format_ in (AVRO, JSON, REGISTRY):
        value = format_.write(record)
        assert value == format_.of_canonical(stored)
        assert format_.to_canonical(value) == stored
        assert format_.read(value) == record
        # Whatever was written before the format was changed stays readable.
        assert REGISTRY.read(value) == record
    assert AVRO.write(record) == stored
    plain = json.loads(JSON.write(record))
    assert plain["record"] == type(record).__name__


def test_confluent_s_frame_is_a_zero_the_schema_s_id_and_the_same_avro() -> None:
    stored = codec.encode(RECORDED[0])
    framed = REGISTRY.write(RECORDED[0])
    number = IDS[stored[:10]]
    assert framed == b"\x00" + number.to_bytes(4, "big") + stored[10:]


def test_contracts_are_named_in_full_with_the_newest_last() -> None:
    names = [name for name, _, _ in codec.contracts()]
    assert set(names) == {f"shardmerge.{t.__name__}" for t in codec.RECORDS.values()}
    last = {name: header for name, header, _ in codec.contracts()}
    for record in RECORDED:
        assert codec.encode(record).startswith(last[f"shardmerge.{type(record).__name__}"])


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        (b"", ContractError, "begins with nothing"),
        (b"\x07abc", ContractError, "begins with 07616263"),
        (b"\x00\x00", ContractError, "begins with 0000"),
        (b"\x00\x00\x00\x03\xe7x", UnknownSchemaVersion, "schema 999 of the registry"),
        (b"{", ContractError, "not a record of shardmerge"),
        (b"{}", ContractError, "unknown type None"),
        (b'{"record": "Other"}', ContractError, "unknown type 'Other'"),
        (b'{"record": "Decision", "x": 1}', ContractError, "no field 'x'"),
        (b"\xc3\x01 of no contract", UnknownSchemaVersion, "unknown schema fingerprint"),
    ],
)
def test_what_is_of_no_format_is_an_error(
    value: bytes, kind: type[ContractError], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        REGISTRY.read(value)


def test_a_registry_s_frame_needs_the_registry() -> None:
    with pytest.raises(ContractError, match="none is asked") as error:
        AVRO.read(REGISTRY.write(RECORDED[0]))
    assert "avro-registry" in error.value.hint
