"""The compiled code is there, is what it should be, and is left alone if it is not."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.spark_sink.targets.mysql.lines import library as loading
from shardmerge.spark_sink.targets.mysql.lines import sources


@pytest.fixture
def anew() -> Iterator[None]:
    """What is found in the test is found for the test alone."""
    loading.library.cache_clear()
    yield
    loading.library.cache_clear()


def test_this_machine_has_the_compiled_code() -> None:
    assert platform.machine() in sources.MACHINES
    assert loading.library() is not None


def test_a_wheel_has_the_code_for_every_kind_of_processor() -> None:
    for machine in sources.MACHINES:
        assert sources.library_path(machine).read_bytes().startswith(b"\x7fELF")


@pytest.mark.usefixtures("anew")
def test_a_machine_without_compiled_code_goes_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with caplog.at_level("INFO"):
        assert loading.library() is None
    assert "compiled_code_missing" in caplog.text
    assert "librecord_lines-riscv64.so.1" in caplog.text


@pytest.mark.usefixtures("anew")
def test_code_that_was_compiled_from_other_sources_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sources, "digest", lambda: "another")
    with caplog.at_level("INFO"):
        assert loading.library() is None
    assert "compiled from other code" in caplog.text


@pytest.mark.usefixtures("anew")
def test_a_file_that_is_no_library_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "PLACE", tmp_path)
    sources.library_path(platform.machine()).write_text("no library")
    assert loading.library() is None


def test_the_digest_is_that_of_all_the_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in sources.PLACE.glob("*.[ch]"):
        shutil.copy(path, tmp_path)
    before = sources.digest()
    monkeypatch.setattr(sources, "PLACE", tmp_path)
    assert sources.digest() == before
    with (tmp_path / "json.h").open("a") as file:
        file.write("\n")
    assert sources.digest() != before
