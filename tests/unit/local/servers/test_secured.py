"""Settings of a secured stack: kept for those who find the stack by its directory."""

from __future__ import annotations

from pathlib import Path

from shardmerge.local.servers.secured import PLAIN, Secured, environment_of, saved_secured
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.settings import Connect, Kafka
from shardmerge.schemas.pipeline.tls import Tls

SECURED = Secured(
    kafka={"listeners": "SSL://127.0.0.1:1"},
    scram=("SCRAM-SHA-512=[name=a]",),
    kafka_client=(("security.protocol", "ssl"),),
    mysql=("--require-secure-transport=ON",),
    connect={"listeners": "https://127.0.0.1:2"},
    connect_java=("-Dx=y",),
    connect_user="u",
    connect_password="file:/p",
    kafka_java=("-Dx=z",),
    connect_tls=Tls(ca="/ca.pem"),
)


def test_what_was_saved_is_found_again(tmp_path: Path) -> None:
    SECURED.save(tmp_path)
    assert saved_secured(tmp_path) == SECURED
    assert LocalStack(tmp_path).connect_url.startswith("https://")
    assert LocalStack(tmp_path).kafka.client == SECURED.kafka_client


def test_a_plain_stack_saves_nothing(tmp_path: Path) -> None:
    PLAIN.save(tmp_path)
    assert not list(tmp_path.iterdir())
    assert not saved_secured(tmp_path).is_on
    assert LocalStack(tmp_path).connect_url.startswith("http://")


def test_the_stack_itself_connects_as_its_settings_say() -> None:
    client = (("security.protocol", "ssl"),)
    assert SECURED.kafka_access("k:1") == Kafka("k:1", client=client)
    access = SECURED.connect_access("https://c")
    assert access == Connect("https://c", user="u", password="file:/p", tls=Tls(ca="/ca.pem"))
    assert PLAIN.connect_access("http://c") == Connect("http://c")


def test_a_part_has_the_variables_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "sink.env").write_text("A=1\nB=x=y\n")
    assert environment_of(tmp_path, "sink") == {"A": "1", "B": "x=y"}
    assert environment_of(tmp_path, "agents") == {}
