"""Passwords from the environment and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.connectors.access.secrets import resolved
from shardmerge.schemas.model.errors import ConfigError


def test_a_value_is_itself() -> None:
    assert resolved("geheim") == "geheim"


def test_a_variable_is_looked_up_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("first", "second"):
        monkeypatch.setenv("A_PASSWORD", value)
        assert resolved("env:A_PASSWORD") == value


def test_a_variable_that_is_not_set_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_PASSWORD", raising=False)
    with pytest.raises(ConfigError, match="variable A_PASSWORD is not set"):
        resolved("env:A_PASSWORD")


def test_a_file_is_read_without_the_line_ends_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("two words\r\n\n")
    assert resolved(f"file:{file}") == "two words"


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"file {file} cannot be read"):
        resolved(f"file:{file}")
