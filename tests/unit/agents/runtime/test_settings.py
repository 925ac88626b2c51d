from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.agents.app import _parser, _settings
from shardmerge.agents.runtime.settings import AgentSettings, from_env
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Source


def test_the_defaults_listen_on_the_loopback_only():
    settings = from_env({"PATH": "/bin", "SHARDMERGE_PIPELINE": "x"})
    assert (settings.web_host, settings.web_port) == ("127.0.0.1", 6066)


def test_the_environment_is_read_by_field():
    env = {"SHARDMERGE_AGENTS_WEB_PORT": "7000", "SHARDMERGE_AGENTS_DATA_DIRECTORY": "/var/x"}
    assert from_env(env) == AgentSettings(data_directory=Path("/var/x"), web_port=7000)


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("SHARDMERGE_AGENTS_WEB_PROT", "1", "is not known"),
        ("SHARDMERGE_AGENTS_WEB_PORT", "x", "'x' is not a whole number"),
    ],
)
def test_a_wrong_setting_is_an_error(name, text, what):
    with pytest.raises(ConfigError, match=what):
        from_env({name: text})


def test_an_argument_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("SHARDMERGE_AGENTS_WEB_PORT", "7000")
    arguments = ["--pipeline", "p.toml", "--web-port", "7001", "--datadir", "data"]
    settings = _settings(_parser().parse_args(arguments))
    assert settings.web_port == 7001
    assert settings.data_directory == Path.cwd() / "data"


def test_a_source_tells_how_its_server_reads_statements():
    source = Source(
        "s", "h", 1, "u", "p", 1,
        flavour="mariadb", version="10.11.6", sql_mode="ansi_quotes, STRICT_ALL_TABLES",
    )  # fmt: skip
    context = server_context(source)
    assert context.version == (10, 11, 6)
    assert context.is_mariadb and context.ansi_quotes


def test_a_version_with_letters_is_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"8\.0\.x") as caught:
        server_context(Source("s", "h", 1, "u", "p", 1, version="8.0.x"))
    assert "VERSION()" in caught.value.hint
