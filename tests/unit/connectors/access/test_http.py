"""Sessions for Connect's REST interface. With a server: test_tls_context and test_connect_rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from requests.auth import HTTPBasicAuth

from shardmerge.connectors.access.http import session
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.settings import Connect
from shardmerge.schemas.pipeline.tls import Tls
from tests.unit.connectors.access.certificates import authority


def test_only_this_machines_own_addresses_are_asked_without_a_proxy() -> None:
    for host, asks_the_environment in (("127.0.0.1", False), ("connect", True)):
        with session(Connect(f"http://{host}:8083")) as made:
            assert made.trust_env == asks_the_environment
            assert made.auth is None


def test_a_user_has_a_password_from_where_the_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = Connect("http://connect", user="me", password="env:A_PASSWORD")
    monkeypatch.setenv("A_PASSWORD", "p")
    with session(connect) as made:
        assert made.auth == HTTPBasicAuth(b"me", b"p")
    monkeypatch.delenv("A_PASSWORD")
    with pytest.raises(ConfigError, match="A_PASSWORD is not set"):
        session(connect)


def test_the_own_ca_is_trusted_and_no_other(tmp_path: Path) -> None:
    ca = str(authority(tmp_path).ca)
    with session(Connect("https://connect", tls=Tls(ca=ca))) as made:
        assert made.verify == ca
