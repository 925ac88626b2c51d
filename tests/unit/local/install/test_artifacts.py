"""Checksums, pins and the Java check; the resolution itself is part of every set-up."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from shardmerge.local.install.artifacts import find_java, read_checksums, verify_checksums
from shardmerge.local.install.system_libraries import provide_libraries
from shardmerge.schemas.model.errors import StackError

HERE = Path(__file__).resolve().parents[4] / "local" / "install"
CHECKSUMS = read_checksums((HERE / "checksums.txt").read_text())


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_every_pinned_artifact_has_its_checksum() -> None:
    dependencies = ET.parse(HERE / "ivy.xml").getroot().iter("dependency")
    pinned = [f"{d.get('name')}-{d.get('rev')}" for d in dependencies]

    assert len(pinned) >= 7
    for name in pinned:
        assert any(Path(file).name.startswith(name) for file in CHECKSUMS), name


def test_every_checksum_is_a_sha256() -> None:
    assert len(CHECKSUMS) > 80
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in CHECKSUMS.values())
    assert {Path(name).parts[0] for name in CHECKSUMS} == {"kafka", "debezium", "mysql"}


def test_no_repository_is_named() -> None:
    text = (HERE / "ivy.xml").read_text()

    assert re.findall(r"https?://[^\s\"]+", text) == ["http://ant.apache.org/ivy/maven"]


def test_equal_files_pass(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "a.jar").write_bytes(b"a")

    verify_checksums(tmp_path, {"kafka/a.jar": hashlib.sha256(b"a").hexdigest()})


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"a.jar": "0" * 64}, r"a\.jar: expected sha256 0000"),
        ({}, r"a\.jar: expected sha256 \(no such file\)"),
        ({"b.jar": "0" * 64, "a.jar": hashlib.sha256(b"a").hexdigest()}, r"b\.jar: .*\(no file\)"),
    ],
)
def test_a_different_extra_or_missing_file_is_named(
    tmp_path: Path, expected: dict[str, str], words: str
) -> None:
    (tmp_path / "a.jar").write_bytes(b"a")

    with pytest.raises(StackError, match=words):
        verify_checksums(tmp_path, expected)


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "java", "echo 'openjdk version \"11.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(StackError, match=r"is not Java 17 or newer.*11\.0\.2"):
        find_java()


def test_a_new_enough_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = program(tmp_path / "bin" / "java", "echo 'openjdk version \"21\" 2023-09-19' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert find_java() == java


def test_a_missing_java_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(StackError, match="no Java found") as caught:
        find_java()

    assert "install Java 17" in caught.value.hint


def test_nothing_is_fetched_for_a_binary_that_runs(tmp_path: Path) -> None:
    said: list[str] = []

    provide_libraries(program(tmp_path / "ok", "exit 0"), tmp_path / "libraries", said.append)

    assert said == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "echo 'x: error while loading shared libraries: libodd.so.9: no' >&2; exit 127",
            r"needs the shared library libodd\.so\.9: no package is known",
        ),
        ("echo 'cannot execute binary file' >&2; exit 126", "does not run here: cannot execute"),
    ],
)
def test_a_binary_that_cannot_run_here_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StackError, match=words):
        provide_libraries(program(tmp_path / "x", text), tmp_path / "libraries", lambda _: None)


def test_a_binary_of_another_machine_is_told(tmp_path: Path) -> None:
    binary = tmp_path / "mysqld"
    binary.write_bytes(b"\xcf\xfa\xed\xfe")
    binary.chmod(0o755)

    with pytest.raises(StackError, match=r"does not run here: .*Exec format error") as caught:
        provide_libraries(binary, tmp_path / "libraries", lambda _: None)

    assert "x86-64 Linux" in caught.value.hint


def test_a_package_that_cannot_be_had_is_told_with_the_command_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "echo 'x: error while loading shared libraries: libaio.so.1: no' >&2; exit 127"
    binary = program(tmp_path / "mysqld", text)
    program(tmp_path / "bin" / "apt-get", "echo 'E: no network' >&2; exit 100")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")

    with pytest.raises(StackError, match=r"libaio\.so\.1: apt-get update: E: no network") as caught:
        provide_libraries(binary, tmp_path / "libraries", lambda _: None)

    assert caught.value.hint == "install it: apt-get install libaio1"
