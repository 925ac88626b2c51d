"""A TiDB that takes encrypted connections only, from users with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError, TargetLost
from shardmerge.schemas.pipeline.tls import Tls
from shardmerge.spark_sink.planning.ranges import RangeResult
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.authority import Authority
from tests.integration.spark.rig import Rig

from .running import SERVER, running_tidb
from .test_apply import PLAIN, expected, run, spread

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="needs the server of make tidb")
PASSWORD = "a word"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "-")


@pytest.fixture(scope="module")
def address(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlAddress]:
    """Where the server is, with what its user needs."""
    server, user = authority.issue("tidb"), authority.issue("sink")
    security = (
        f'[security]\nssl-ca = "{authority.ca}"\nssl-cert = "{server.certificate}"\n'
        f'ssl-key = "{server.key}"\n'
    )
    tls = Tls("verify-identity", str(authority.ca), str(user.certificate), str(user.key))
    with running_tidb(tmp_path_factory.mktemp("tidb"), security) as plain:
        with closing(MySqlSession(replace(plain, tls=tls))) as session:
            session.execute(f"CREATE USER sink IDENTIFIED BY '{PASSWORD}' REQUIRE X509")
            session.execute("GRANT ALL ON *.* TO sink")
            session.execute("SET GLOBAL require_secure_transport = ON")
        yield replace(plain, user="sink", password=PASSWORD, tls=tls)


def test_tasks_write_by_several_encrypted_connections(
    stack: LocalStack, address: MySqlAddress
) -> None:
    with closing(Rig.make(stack, address)) as rig:
        rig.create(PLAIN)

        results = run(rig, spread(rig))

        assert all(isinstance(result, RangeResult) for result in results), results
        assert rig.rows() == expected()
        [(_, cipher)] = rig.session.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        assert cipher


def test_a_large_load_is_encrypted_too(address: MySqlAddress) -> None:
    with closing(MySqlSession(address)) as session:
        session.execute("CREATE DATABASE loaded")
        session.execute("CREATE TABLE loaded.t (a INT PRIMARY KEY)")
        rows = b"".join(b"%d\n" % number for number in range(100_000))
        load = "LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded.t (a)"
        assert session.load(load, rows) == 100_000
        [(_, cipher)] = session.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        assert cipher


def test_a_wrong_ca_no_certificate_and_no_encryption_are_refused(
    address: MySqlAddress, tmp_path: Path
) -> None:
    def said(tls: Tls) -> TargetError:
        session = MySqlSession(replace(address, tls=tls))
        with closing(session), pytest.raises(TargetError) as refused:
            session.query("SELECT 1")
        return refused.value

    stranger = Authority(tmp_path, "-", "stranger")
    wrong = said(replace(address.tls, ca=str(stranger.ca)))
    assert isinstance(wrong, TargetLost)
    assert "certificate is not accepted" in str(wrong)
    assert not wrong.retryable
    unknown = said(replace(address.tls, certificate="", key=""))
    assert "Access denied" in str(unknown)
    plain = said(Tls("disabled"))
    assert "secure" in str(plain).lower()
