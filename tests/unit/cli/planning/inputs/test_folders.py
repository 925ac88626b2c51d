"""Files and folders of SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.cli.planning.inputs.folders import databases_below, migration_files, sql_files
from shardmerge.schemas.model.errors import ConfigError


def test_a_folders_sql_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_bytes(b"\xef\xbb\xbfx")
    (tmp_path / "b.txt").write_text("never")
    assert sql_files(tmp_path) == {"a.sql": "x"}
    assert sql_files(tmp_path / "a.sql") == {"a.sql": "x"}


def test_files_that_would_be_passed_over_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "a.sql").write_text("x")
    with pytest.raises(ConfigError, match="has SQL files in subfolders"):
        sql_files(tmp_path)


def test_flyways_files_are_read_in_subfolders_too(tmp_path: Path) -> None:
    (tmp_path / "v2" / "deeper").mkdir(parents=True)
    (tmp_path / "V1__a.sql").write_text("a")
    (tmp_path / "v2" / "deeper" / "V2__b.sql").write_text("b")
    assert migration_files(tmp_path) == {"V1__a.sql": "a", "v2/deeper/V2__b.sql": "b"}
    (tmp_path / "v2" / "z.sql").write_text("c")
    with pytest.raises(ConfigError, match=r"of Flyway in subfolders, but .*z\.sql is not one"):
        migration_files(tmp_path)


def test_other_tools_files_are_read_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text("a")
    assert migration_files(tmp_path) == {"1.sql": "a"}
    assert migration_files(tmp_path / "1.sql") == {"1.sql": "a"}
    with pytest.raises(ConfigError, match="cannot be read"):
        migration_files(tmp_path / "none")


def test_what_is_not_utf8_or_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_bytes(b"ab\xff")
    with pytest.raises(ConfigError, match=r"is not UTF-8 \(byte 3\)"):
        sql_files(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        sql_files(tmp_path / "none.sql")


def test_databases_are_folders_in_folders_of_sources(tmp_path: Path) -> None:
    for name in ("s2/b", "s1/a", "s1/.git", ".git/x"):
        (tmp_path / name).mkdir(parents=True)
    found = [(source, database) for source, database, _ in databases_below(tmp_path)]
    assert found == [("s1", "a"), ("s2", "b")]
