"""TLS in Python, against a server of HTTPS: Connect's client and the registry's use it."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from shardmerge.connectors.access.tls_context import client_context, tls_fault
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.formats.avro_wire import RegistryUnreachable
from shardmerge.connectors.kafka.registry import RegistryAddress, SchemaRegistry
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.pipeline.settings import Connect
from shardmerge.schemas.pipeline.tls import Tls
from tests.unit.connectors.access.certificates import answering, authority


def rest(port: int, tls: Tls, host: str = "127.0.0.1") -> ConnectRest:
    return ConnectRest.of(Connect(f"https://{host}:{port}", tls=tls), patience_s=0.0)


def test_a_server_of_the_own_ca_is_trusted(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    with answering(ours.issue("worker")) as port:
        assert rest(port, Tls(ca=str(ours.ca))).connectors() == ()


def test_a_server_may_want_a_certificate(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    us = ours.issue("us")
    shown = Tls(ca=str(ours.ca), certificate=str(us.certificate), key=str(us.key))
    with answering(ours.issue("worker"), ours.ca) as port:
        assert rest(port, shown).connectors() == ()
        # The server's alert is read, or the end of the connection.
        with pytest.raises(StackError, match=r"cannot be reached: .*(TLS|EOF|reset|broken)"):
            rest(port, Tls(ca=str(ours.ca))).connectors()


@pytest.mark.parametrize("wrong", ["unknown CA", "expired", "system's CAs"])
def test_a_certificate_that_is_not_accepted_is_one_clear_error(tmp_path: Path, wrong: str) -> None:
    ours, other = authority(tmp_path / "ours"), authority(tmp_path / "other", "another CA")
    trusted = {"unknown CA": Tls(ca=str(other.ca)), "expired": Tls(ca=str(ours.ca))}
    tls = trusted.get(wrong, Tls())
    said = "certificate has expired" if wrong == "expired" else "unable to get local issuer"
    with answering(ours.issue("worker", expired=wrong == "expired")) as port:
        with pytest.raises(StackError, match=f"certificate is not accepted: {said}") as refused:
            rest(port, tls).connectors()
        registry = SchemaRegistry(RegistryAddress(f"https://127.0.0.1:{port}", tls=tls))
        with pytest.raises(RegistryUnreachable, match=f"is not accepted: {said}"):
            registry.schema_text(1)
    assert "[connect.tls]" in refused.value.hint
    assert "_ssl.c" not in str(refused.value)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    one, two = ours.issue("one"), ours.issue("two")
    with pytest.raises(ConfigError, match=r"CA file .*missing.pem cannot be used"):
        client_context(Tls(ca=str(tmp_path / "missing.pem")))
    with pytest.raises(ConfigError, match=r"certificate .*one.pem with key .*two.key"):
        client_context(Tls(certificate=str(one.certificate), key=str(two.key)))


def test_only_tls_is_a_fault_of_tls() -> None:
    lost = OSError("connection reset")
    assert tls_fault(lost) == ""
    lost.__cause__ = ssl.SSLError(1, "wrong version number (_ssl.c:1000)")
    assert tls_fault(lost) == "TLS failed: wrong version number"


def test_a_server_that_dies_in_a_handshake_has_no_fault_of_tls() -> None:
    lost = OSError("connection reset")
    lost.__cause__ = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
    assert tls_fault(lost) == ""


def test_causes_in_a_circle_are_followed_once() -> None:
    one, two = OSError(1, "one"), OSError(2, "two")
    one.__cause__, two.__cause__ = two, one
    assert tls_fault(one) == ""
