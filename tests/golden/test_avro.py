"""Records as they stand in topics: the bytes of every contract that was ever written stay readable.

A file of ``avro/`` is one record, written with the contract whose fingerprint its name has. When a
contract changes, add the one before to ``schemas/records/avro/earlier.json`` (its parsing
canonical form) and write the file of the new one with ``--update-golden``; the old file stays.
"""

from __future__ import annotations

import io
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import avro.io
import avro.schema
import pytest

from shardmerge.schemas.model.actions import ColumnRemoval, ColumnRename
from shardmerge.schemas.records import plain
from shardmerge.schemas.records.codec import RECORDS, Record, decode, encode
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.earlier_codes import with_codes
from shardmerge.schemas.records.earlier_statements import with_actions
from tests.unit.schemas.records.test_codec_plain import RECORDED

FOLDER = Path(__file__).parent / "avro"
FILES = sorted(FOLDER.glob("*.json"))
DECISIONS = [file for file in FILES if file.stem.startswith("decision.")]
CONTRACT = resources.files("shardmerge.schemas.records").joinpath("avro")
NAMES = {record_type: name for name, record_type in RECORDS.items()}


@cache
def contract(name: str) -> Any:
    return avro.schema.parse(CONTRACT.joinpath(f"{name}.avsc").read_text(encoding="utf-8"))


def earlier() -> dict[str, list[Any]]:
    kept = json.loads(CONTRACT.joinpath("earlier.json").read_text(encoding="utf-8"))
    return {n: [avro.schema.parse(json.dumps(s)) for s in schemas] for n, schemas in kept.items()}


class _NamedWriter(avro.io.DatumWriter):  # type: ignore[misc]
    """Avro's writer, told by the plain form which record of a union is meant.

    It tries them out by itself, and takes the last one that has the fields.
    """

    def write_union(self, writers_schema: Any, datum: Any, encoder: Any) -> None:
        names = [getattr(schema, "name", "") for schema in writers_schema.schemas]
        if "null" in {schema.type for schema in writers_schema.schemas}:
            super().write_union(writers_schema, datum, encoder)
            return
        ((name, value),) = datum.items()
        encoder.write_long(names.index(name))
        self.write_data(writers_schema.schemas[names.index(name)], value, encoder)


def written_by_avro(schema: Any, value: Any) -> bytes:
    """The bytes by Avro's own library, which is slow and is the reference."""
    buffer = io.BytesIO()
    _NamedWriter(schema).write_data(schema, value, avro.io.BinaryEncoder(buffer))
    fingerprint: bytes = schema.fingerprint()
    return b"\xc3\x01" + fingerprint + buffer.getvalue()


@pytest.mark.parametrize("name", RECORDS)
def test_the_contract_of_now_has_a_record(name: str, update_golden: bool) -> None:
    schema = contract(name)
    file = FOLDER / f"{name}.{schema.fingerprint().hex()}.json"
    if update_golden:
        record = next(r for r in RECORDED if isinstance(r, RECORDS[name]))
        value = plain.to_plain(record)
        kept = {"bytes": written_by_avro(schema, value).hex(), "value": value}
        file.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert file.exists(), f"the contract of {name} changed: see this module's first lines"
    kept = json.loads(file.read_text(encoding="utf-8"))
    record = plain.from_plain(RECORDS[name], kept["value"])
    assert encode(record).hex() == kept["bytes"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_record_of_an_earlier_contract_is_read(file: Path) -> None:
    name, fingerprint = file.stem.split(".")
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept["bytes"].startswith("c301" + fingerprint)
    value = plain.from_plain(RECORDS[name], kept["value"])
    value = with_actions(value)
    if fingerprint != contract(name).fingerprint().hex():
        value = with_codes(value)
    assert decode(bytes.fromhex(kept["bytes"])) == value


@pytest.mark.parametrize("file", DECISIONS, ids=lambda file: file.stem)
def test_a_statement_of_an_earlier_contract_gets_the_actions_of_a_new_one(file: Path) -> None:
    decision = decode(bytes.fromhex(json.loads(file.read_text(encoding="utf-8"))["bytes"]))
    assert isinstance(decision, Decision)
    [statement] = decision.statements
    assert {statement.sql: statement.actions} in (
        {"ALTER TABLE `m`.`t` DROP COLUMN `c`": (ColumnRemoval("c"),)},
        {"ALTER TABLE `m`.`t` RENAME COLUMN `c` TO `d`": (ColumnRename("c", "d"),)},
    )


@pytest.mark.parametrize("record", RECORDED, ids=lambda r: type(r).__name__)
def test_avro_s_own_library_writes_the_same_bytes(record: Record) -> None:
    schema = contract(NAMES[type(record)])
    assert encode(record) == written_by_avro(schema, plain.to_plain(record))


def test_every_earlier_contract_has_a_record_and_every_record_a_contract() -> None:
    known = {
        f"{name}.{schema.fingerprint().hex()}"
        for name, schemas in (*earlier().items(), *((n, [contract(n)]) for n in RECORDS))
        for schema in schemas
    }
    assert known == {file.stem for file in FOLDER.glob("*.json")}
