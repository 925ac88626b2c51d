"""The GTID that a record of a connector names."""

from __future__ import annotations

import json

import pytest

from shardmerge.cli.moving.last_records import gtid_of
from shardmerge.schemas.model.errors import ContractError


def value(**source: object) -> bytes:
    return json.dumps({"op": "c", "source": source}).encode()


def test_a_row_names_its_transaction() -> None:
    assert gtid_of(value(name="s1", gtid="u:7"), "s1") == "u:7"
    wrapped = json.dumps({"schema": {}, "payload": json.loads(value(name="s1", gtid="u:7"))})
    assert gtid_of(wrapped.encode(), "s1") == "u:7"


@pytest.mark.parametrize(
    "of", [None, value(name="s2", gtid="u:7"), value(name="s1"), value(name="s1", gtid=None), b"{}"]
)
def test_other_records_name_none(of: bytes | None) -> None:
    assert gtid_of(of, "s1") == ""


@pytest.mark.parametrize("of", [b"x", b"[]"])
def test_what_is_no_record_of_a_connector_is_an_error(of: bytes) -> None:
    with pytest.raises(ContractError, match="source s1 cannot be read"):
        gtid_of(of, "s1")
