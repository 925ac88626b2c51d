"""``shardmerge init``: the file can be read, nothing is overwritten, no server is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shardmerge.cli.deployment import init as module
from shardmerge.cli.deployment.first_file import Address, Seen
from shardmerge.cli.main import main
from shardmerge.cli.views.call_shapes import AskedServer, WrittenFile
from shardmerge.schemas.model.server_facts import server_facts
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.records.plain import from_plain

SOURCE, TARGET = "s1=debezium@db1:3307", "shardmerge@merged"


def init(output: Path, *words: str, env: dict[str, str] | None = None) -> Result:
    arguments = ["init", "--output", str(output), "--name", "shop", "--source", SOURCE]
    arguments += ["--target", TARGET, *words]
    return CliRunner().invoke(main, arguments, env=env)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """Servers that answer; the addresses that were asked for."""
    asked: list[Address] = []

    def look_at(address: Address, env: object, *, tables: bool) -> Seen:
        asked.append(address)
        found = (("app", "t_1"), ("app", "t_2")) if tables else ()
        return Seen(server_facts("8.0.36", {}, {}), found)

    monkeypatch.setattr(module, "look_at", look_at)
    return asked


def test_a_file_is_written_that_check_accepts(tmp_path: Path, told: list[Address]) -> None:
    file = tmp_path / "shop.toml"
    found = init(file, env={"S1_PASSWORD": "x"})
    assert found.exit_code == 0, found.output
    assert told == [
        Address("s1", "debezium", "db1", 3307),
        Address("target", "shardmerge", "merged", 3306),
    ]
    assert "s1 (db1:3307): mysql 8.0.36, 2 tables" in found.stdout
    assert "export TARGET_PASSWORD=" in found.stdout
    assert "export S1_PASSWORD=" not in found.stdout, "it is set already"
    checked = CliRunner().invoke(
        main,
        ["check", "--offline", "--pipeline", str(file)],
        env={"S1_PASSWORD": "x", "TARGET_PASSWORD": "y"},
    )
    assert (checked.exit_code, "1 routing rules" in checked.stdout) == (0, True), checked.output


def test_what_was_seen_and_what_comes_next_is_told_as_json(
    tmp_path: Path, told: list[Address]
) -> None:
    file = tmp_path / "my shop.toml"
    found = init(file, "--json", env={"S1_PASSWORD": "x"})
    assert from_plain(WrittenFile, json.loads(found.stdout)) == WrittenFile(
        file=str(file),
        servers=(
            AskedServer("s1", "db1:3307", "mysql", "8.0.36", ("app.t_1", "app.t_2")),
            AskedServer("target", "merged:3306", "mysql", "8.0.36", ()),
        ),
        missing=("TARGET_PASSWORD",),
        then=(
            f"shardmerge check --pipeline '{file}'",
            f"shardmerge run --pipeline '{file}'",
        ),
    )
    unread = init(tmp_path / "other.toml", "--json", "--offline")
    servers = from_plain(WrittenFile, json.loads(unread.stdout)).servers
    assert {server.why for server in servers} == {"`shardmerge init --offline` asks no server"}


def test_a_file_that_exists_stays(tmp_path: Path, told: list[Address]) -> None:
    file = tmp_path / "shop.toml"
    file.write_text("mine")
    found = init(file)
    assert (found.exit_code, "exists" in found.stderr) == (2, True)
    assert (file.read_text(), told) == ("mine", [])


def test_a_server_whose_password_is_not_known_is_not_asked(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    found = init(file, env={"S1_PASSWORD": "", "TARGET_PASSWORD": None})  # type: ignore[dict-item]
    assert found.exit_code == 0, found.output
    assert "target (merged:3306): not read: the environment has no TARGET_PASSWORD" in found.stderr


def test_no_server_is_asked_offline(tmp_path: Path, told: list[Address]) -> None:
    file = tmp_path / "shop.toml"
    assert init(file, "--offline").exit_code == 0
    assert told == []
    parse_pipeline(file.read_text(), {"S1_PASSWORD": "x", "TARGET_PASSWORD": "y"})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--source", "db2"], "is not written as NAME=USER@HOST:PORT"),
        (["--source", "root@db2"], "is not written as NAME=USER@HOST:PORT"),
        (["--source", "s1=root@db2", "--offline"], "two sources have the same name"),
        (["--name", "no name", "--offline"], "name"),
    ],
)
def test_a_wrong_call_writes_nothing(tmp_path: Path, words: list[str], told: str) -> None:
    file = tmp_path / "shop.toml"
    found = init(file, *words)
    assert (found.exit_code, told in found.stderr) == (2, True), found.output
    assert not file.exists()
