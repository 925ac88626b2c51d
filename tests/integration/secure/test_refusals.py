"""A wrong CA, an expired certificate, a wrong password: one clear error from each program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.servers import server_findings
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.sources.signal_table import prepare_signal_table
from shardmerge.local.install.artifacts import resolve
from shardmerge.local.servers.mysql import PASSWORD, USER, mysql_spec, prepare_data
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import StackError, TargetLost
from shardmerge.schemas.pipeline.settings import Pipeline, Source, Target
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from .accounts import CANARY, WRONG
from .conftest import Played
from .server_settings import mysql_options

S = TypeVar("S", Source, Target)
CASES = ("wrong CA", "expired certificate", "wrong password")
PROGRAMS = ("agents", "sink", "command", "watchdog")
_KAFKA_SAYS = {
    "wrong CA": ("no TLS connection", "is not accepted: unable to get local issuer certificate"),
    "expired certificate": ("no TLS connection", "is not accepted: certificate has expired"),
    "wrong password": ("do not accept the user", "uthentication failed"),
}
_MYSQL_SAYS = {
    # A server of MySQL sends its CA, too.
    "wrong CA": "certificate is not accepted: (unable to get local issuer|self.signed) certificate",
    "expired certificate": "certificate is not accepted: certificate has expired",
    "wrong password": "Access denied",
}


@dataclass(frozen=True)
class Said:
    """What a program said, and how it ended."""

    code: int
    text: str


@pytest.fixture(scope="module")
def said(played: Played, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Said]:
    """Every program with every fault of Kafka's connection, two at a time."""
    folder = tmp_path_factory.mktemp("refusals")
    runs = {
        (case, program): partial(_run, _wrong_kafka(played, case), program, case, folder)
        for case in CASES
        for program in PROGRAMS
    }
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = pool.map(lambda run: run(), runs.values())
        return dict(zip(runs, found, strict=True))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("case", CASES)
def test_kafka_refuses_and_the_program_says_why(
    said: dict[tuple[str, str], Said], case: str, program: str
) -> None:
    found = said[case, program]
    assert found.code == (2 if program in ("agents", "command") else 1), found.text
    telling = [
        line for line in found.text.splitlines() if all(w in line for w in _KAFKA_SAYS[case])
    ]
    assert len(telling) == 1, found.text
    assert "Traceback" not in found.text, found.text
    assert CANARY not in found.text


@pytest.mark.parametrize("case", CASES)
def test_check_says_what_kafka_refuses(played: Played, tmp_path: Path, case: str) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(pipeline_text(_wrong_kafka(played, case)))
    env = {"KAFKA_PASSWORD": WRONG} if case == "wrong password" else None
    done = CliRunner(env=env).invoke(main, ["check", "--pipeline", str(path)])
    assert done.exit_code == 1
    assert all(word in done.output for word in _KAFKA_SAYS[case]), done.output
    assert CANARY not in done.output


@pytest.fixture(scope="module")
def expired_port(played: Played) -> Iterator[int]:
    """A MySQL server whose certificate has expired."""
    secured = played.secured
    stack = LocalStack(secured.line.directory)
    data = secured.line.directory / "expired"
    artifacts = resolve()
    prepare_data(artifacts, data)
    identity = secured.authority.issue("mysql", expired=True)
    port = secured.expired_mysql
    stack.add(
        mysql_spec(
            artifacts,
            "expired",
            data,
            port,
            999,
            binlog=False,
            further=mysql_options(secured, identity),
        )
    )
    try:
        yield port
    finally:
        stack.stop("expired")


@pytest.mark.parametrize("case", CASES)
def test_mysql_refuses_and_the_sink_says_why(played: Played, expired_port: int, case: str) -> None:
    found = _wrong_server(played, played.secured.line.pipeline.target, case, expired_port)
    address = MySqlAddress.of(found)
    with pytest.raises(TargetLost, match=_MYSQL_SAYS[case]) as refused:
        MySqlSession(address).query("SELECT 1")
    assert not refused.value.retryable
    assert "[target]" in refused.value.hint
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("case", CASES)
def test_mysql_refuses_and_check_and_watchdog_say_why(
    played: Played, expired_port: int, case: str
) -> None:
    pipeline = played.secured.line.pipeline
    source = _wrong_server(played, pipeline.sources[0], case, expired_port)
    findings = [str(f) for f in server_findings(replace(pipeline, sources=(source,)))]
    assert any(re.search(_MYSQL_SAYS[case], finding) for finding in findings), findings
    with pytest.raises(StackError, match=_MYSQL_SAYS[case]) as refused:
        prepare_signal_table(pipeline, source)
    assert CANARY not in str(refused.value) + str(findings)


@pytest.mark.parametrize("case", CASES)
def test_a_connector_is_refused_with_the_reason(
    played: Played, expired_port: int, case: str
) -> None:
    """Connect's worker tries the server before it takes a configuration."""
    pipeline = played.secured.line.pipeline
    source = _wrong_server(played, pipeline.sources[0], case, expired_port)
    config = connector_config(pipeline, replace(source, name="other"))
    with (
        closing(ConnectRest.of(pipeline.connect)) as rest,
        pytest.raises(StackError, match="connector other is refused") as refused,
    ):
        rest.create_or_update("other", config)
    told = "Access denied" if case == "wrong password" else "truststore"
    assert told in f"{refused.value} {refused.value.hint}"
    assert CANARY not in str(refused.value)


def test_connect_refuses_a_wrong_password_and_its_certificate_a_wrong_ca(played: Played) -> None:
    connect = played.secured.line.pipeline.connect
    with (
        closing(ConnectRest.of(replace(connect, password=WRONG))) as rest,
        pytest.raises(StackError, match="401") as refused,
    ):
        rest.connectors()
    assert "user and password under [connect]" in refused.value.hint
    assert CANARY not in str(refused.value)
    stranger = replace(connect.tls, ca=str(played.secured.stranger.ca))
    with (
        closing(ConnectRest.of(replace(connect, tls=stranger))) as rest,
        pytest.raises(StackError, match="certificate is not accepted: "),
    ):
        rest.connectors()


def _wrong_kafka(played: Played, case: str) -> Pipeline:
    pipeline, secured = played.secured.line.pipeline, played.secured
    client = dict(pipeline.kafka.client)
    servers = pipeline.kafka.bootstrap_servers
    if case == "wrong CA":
        client["ssl.ca.location"] = str(secured.stranger.ca)
    elif case == "expired certificate":
        servers = f"127.0.0.1:{secured.expired}"
        client = {"security.protocol": "ssl", "ssl.ca.location": str(secured.authority.ca)}
    changed = replace(
        pipeline.kafka, bootstrap_servers=servers, client=tuple(sorted(client.items()))
    )
    return replace(pipeline, kafka=changed)


def _wrong_server(played: Played, server: S, case: str, expired_port: int) -> S:
    stranger = played.secured.stranger
    if case == "wrong CA":
        stores = {"ca": str(stranger.ca)}
        if server.tls.truststore:
            stores["truststore"] = str(stranger.truststore)
        return replace(server, tls=replace(server.tls, **stores))
    if case == "expired certificate":
        return replace(server, port=expired_port, user=USER, password=PASSWORD)
    return replace(server, password=WRONG)


def _run(pipeline: Pipeline, program: str, case: str, folder: Path) -> Said:
    path = folder / f"{program}-{case.replace(' ', '-')}.toml"
    path.write_text(pipeline_text(pipeline))
    given = ["--pipeline", str(path)]
    shard = ["--shard", "s1/app.tbl00"]
    commands = {
        "agents": ["shardmerge.agents.app", *given, "--datadir", str(folder / "agents")],
        "sink": ["shardmerge.spark_sink.job", *given],
        "command": ["shardmerge.cli.main", "command", "resume", *given, *shard],
        "watchdog": ["shardmerge.connectors.watchdog", *given, "--create"],
    }
    env = {**os.environ, "PYTHONSAFEPATH": "1"}
    if case == "wrong password":
        env["KAFKA_PASSWORD"] = WRONG
    done = subprocess.run(
        [sys.executable, "-m", *commands[program]],
        capture_output=True,
        text=True,
        env=env,
        timeout=100,
        check=False,
    )
    return Said(done.returncode, done.stdout + done.stderr)
