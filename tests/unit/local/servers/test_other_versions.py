"""Other servers than the stack's: where they come from, and what is told when they can't be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.local.install import debs
from shardmerge.local.install.debs import Wanted, loader_command, source_lists, unpack_package
from shardmerge.local.servers.other_versions import running_server
from shardmerge.schemas.model.errors import StackError

DEBIAN = ("debian", "bookworm")
OWN = "http://archive.example/debian/|bookworm|main"


def test_the_wanted_suite_is_read_from_the_archive_of_the_machine() -> None:
    assert source_lists("sid", DEBIAN, [OWN], "/keys.gpg") == [
        "deb [signed-by=/keys.gpg] http://archive.example/debian/ sid main\n"
    ]


def test_without_a_keyring_the_keys_that_apt_trusts_must_do() -> None:
    assert source_lists("sid", DEBIAN, [OWN], "") == [
        "deb http://archive.example/debian/ sid main\n"
    ]


def test_an_archive_is_tried_once_and_other_archives_never() -> None:
    targets = [
        "http://tools.example/apt/|tools-bookworm|main",
        "http://security.example/|bookworm-security|main",
        OWN,
        OWN,
        "http://archive.example/debian/|bookworm|contrib",
        "http://other.example/debian/|stable|main",
    ]
    lists = source_lists("sid", DEBIAN, targets, "")
    assert [line.split()[1] for line in lists] == [
        "http://archive.example/debian/",
        "http://other.example/debian/",
    ]


def test_elsewhere_the_sources_of_the_machine_are_used() -> None:
    assert source_lists("sid", ("ubuntu", "noble"), [OWN], "/keys.gpg") == [""]


def test_a_debian_without_an_archive_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debs, "index_targets", list)
    monkeypatch.setattr(debs, "_distribution", lambda _: DEBIAN)
    with pytest.raises(StackError, match="apt has no sources") as caught:
        unpack_package(Wanted(("server",), "sid"), tmp_path / "home", print)
    assert "network" in caught.value.hint


def test_a_machine_without_apt_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match="apt-get") as caught:
        unpack_package(Wanted(("server",), "sid"), tmp_path / "home", print)
    assert "Debian or Ubuntu" in caught.value.hint


def test_a_machine_that_is_no_debian_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debs, "_OS_RELEASE", tmp_path / "none")
    monkeypatch.setattr(debs, "index_targets", list)
    with pytest.raises(StackError, match="none cannot be read"):
        unpack_package(Wanted(("server",), "sid"), tmp_path / "home", print)


def test_a_program_starts_through_the_loader_and_libraries_that_came_with_it(
    tmp_path: Path,
) -> None:
    for name in ("usr/sbin/mysqld", "usr/lib64/ld-linux-x86-64.so.2"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    (tmp_path / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    assert loader_command(tmp_path, "usr/sbin/mysqld") == (
        f"{tmp_path}/usr/lib64/ld-linux-x86-64.so.2",
        "--inhibit-cache",
        "--library-path",
        f"{tmp_path}/usr/lib/x86_64-linux-gnu",
        f"{tmp_path}/usr/sbin/mysqld",
    )


def test_a_package_without_the_program_says_so(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="holds no loader"):
        loader_command(tmp_path, "usr/sbin/mysqld")


def test_a_server_of_no_known_name_lists_those_there_are(tmp_path: Path) -> None:
    with (
        pytest.raises(StackError, match="oracle") as caught,
        running_server("oracle", tmp_path, 1),
    ):
        pass
    assert "mysql97" in caught.value.hint
