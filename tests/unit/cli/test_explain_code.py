"""``shardmerge explain-code``: a code's meaning, however the code is written."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.schemas.codes.registry import Code, codes
from shardmerge.schemas.records.plain import from_plain


@pytest.mark.parametrize("text", ["SM-1203", "sm-1203", "1203", "SM-1203:"])
def test_a_code_is_explained(text: str) -> None:
    found = CliRunner().invoke(main, ["explain-code", text])
    assert found.exit_code == 0
    assert found.output.startswith("SM-1203: The defaults of a column differ\n\nSeen: ")
    assert "Remedy: Make the default agree on all shards" in found.output


@pytest.mark.parametrize("text", ["SM-0001", "SM-12", "twelve"])
def test_a_code_that_does_not_exist_is_an_error(text: str) -> None:
    found = CliRunner().invoke(main, ["explain-code", text])
    assert found.exit_code == 2
    assert f"{text} is no code of this version" in found.output


def test_a_code_is_explained_as_json() -> None:
    found = CliRunner().invoke(main, ["explain-code", "1203", "--json"])
    assert from_plain(Code, json.loads(found.stdout)) == codes()["SM-1203"]
