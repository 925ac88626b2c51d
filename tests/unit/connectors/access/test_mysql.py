"""What PyMySQL is told for each mode. With real servers: tests/integration/secure."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import pymysql
import pytest

from shardmerge.connectors.access.mysql import NO_PLUGIN, connect, connection_arguments
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.schemas.pipeline.tls import Tls
from tests.unit.connectors.access.certificates import authority

ROOT = Path(__file__).parents[4]
MADE_BY = {
    r"\bpymysql\.(?:connect\(|connections\b)": "connectors/access/mysql.py",
    r"(?<!\.)\b(?:Consumer|Producer|AdminClient)\(": "connectors/access/kafka.py",
    r"\bHTTPSConnection\(": "connectors/kafka/registry.py",
    r"\brequests\.Session\(": "connectors/access/http.py",
}
OF_THIS_MACHINE = {"local/line.py", "local/servers/processes.py", "local/servers/mysql.py"}
"""They ask what the local stack has started, on 127.0.0.1 alone."""


def source(tls: Tls) -> Source:
    return Source("s1", "db", 3306, "u", "p", 1, tls=tls)


def test_without_a_mode_the_library_decides() -> None:
    found = connection_arguments(source(Tls()))
    assert found == {"host": "db", "port": 3306, "user": "u", "password": "p"}


def test_tls_can_be_off() -> None:
    assert connection_arguments(source(Tls(mode="disabled")))["ssl_disabled"] is True


@pytest.mark.parametrize(
    ("mode", "verified", "checks_names"),
    [
        ("required", ssl.CERT_NONE, False),
        ("verify-ca", ssl.CERT_REQUIRED, False),
        ("verify-identity", ssl.CERT_REQUIRED, True),
    ],
)
def test_each_mode_checks_what_its_name_says(
    tmp_path: Path, mode: str, verified: ssl.VerifyMode, checks_names: bool
) -> None:
    ca = "" if mode == "required" else str(authority(tmp_path).ca)
    context = connection_arguments(source(Tls(mode=mode, ca=ca)))["ssl"]
    assert context.verify_mode == verified
    assert context.check_hostname == checks_names


def test_a_missing_package_is_told_as_a_method_that_the_client_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("'cryptography' package is required for caching_sha2_password")

    monkeypatch.setattr(pymysql.connections.Connection, "connect", refuse)
    with pytest.raises(pymysql.OperationalError, match=r"install PyMySQL\[rsa\]") as raised:
        connect(source(Tls()))
    assert raised.value.args[0] == NO_PLUGIN


def test_connections_that_check_nothing_have_one_context() -> None:
    one, other = (connect(source(Tls()), defer_connect=True) for _ in range(2))
    assert vars(one)["ctx"] is vars(other)["ctx"]
    assert vars(one)["ctx"].verify_mode == ssl.CERT_NONE
    assert vars(one)["_ssl_required"] is False, "a server without TLS is taken"
    checking = connect(source(Tls(mode="verify-identity")), defer_connect=True)
    assert vars(checking)["ctx"].verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize("client", MADE_BY)
def test_clients_are_made_in_one_place(client: str) -> None:
    folders = ("agents", "cli", "connectors", "local", "spark_sink")
    found = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if re.search(client, text := path.read_text(encoding="utf-8"))
        and ("confluent_kafka" in text or "Consumer" not in client)
    }
    assert found - OF_THIS_MACHINE == {MADE_BY[client]}
