"""The broker of the local stack: one KRaft node that is broker and controller."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.local.install.artifacts import Artifacts
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka

from .java_process import java_command, write_properties
from .processes import LOOPBACK, HealthCheck, ProcessSpec, is_listening
from .secured import PLAIN, Secured

_CLUSTER_ID = "c2hhcmRtZXJnZS1sb2NhbA"  # 16 bytes in base64url, as KRaft wants it
_LEVELS = {"kafka.server.KafkaRaftServer": "INFO", "org.apache.kafka.common.utils": "ERROR"}


def kafka_spec(
    artifacts: Artifacts,
    directory: Path,
    port: int,
    controller_port: int,
    heap: str = "512m",
    *,
    secured: Secured = PLAIN,
    host: str = LOOPBACK,
) -> ProcessSpec:
    """The broker's process; formats its log directory first when that is new.

    Clients are told ``host``. If that is not the loopback, the broker listens on every address.
    """
    data = directory / "data"
    properties = write_properties(
        directory / "server.properties",
        {**_properties(data, host, port, controller_port), **secured.kafka},
    )
    if not (data / "meta.properties").exists():
        _format(artifacts, directory, properties, secured.scram)
    arguments = (*secured.kafka_java, "kafka.Kafka", str(properties))
    command = java_command(artifacts, directory, heap, _LEVELS, *arguments)
    return ProcessSpec(
        name="kafka",
        argv=command,
        ports=(port, controller_port),
        health=_health(port, secured.kafka_access(f"127.0.0.1:{port}")),
        start_timeout_s=180,
        stop_timeout_s=30,
    )


def _properties(data: Path, host: str, port: int, controller_port: int) -> dict[str, str | int]:
    listens = host if host == LOOPBACK else "0.0.0.0"  # noqa: S104  # the caller asked for it
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{listens}:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 8,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 8,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # A killed Connect leaves a transaction open; it ends this soon after its timeout.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        "log.retention.hours": -1,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        "num.network.threads": 2,
        "num.io.threads": 4,
    }


def _format(artifacts: Artifacts, directory: Path, properties: Path, scram: Sequence[str]) -> None:
    command = java_command(
        artifacts,
        directory,
        "128m",
        {},
        "kafka.tools.StorageTool",
        "format",
        "-t",
        _CLUSTER_ID,
        "-c",
        str(properties),
        "--ignore-formatted",
        *(part for user in scram for part in ("--add-scram", user)),
    )
    result = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if result.returncode != 0:
        raise StackError(
            f"Kafka's log directory was not formatted: {(result.stdout + result.stderr)[-1000:]}",
            code="SM-4609",
        )


def _health(port: int, access: Kafka) -> HealthCheck:
    def check() -> str | None:
        if not is_listening(port):
            return f"nothing listens on port {port}"
        client = admin_client(access)
        try:
            metadata = client.list_topics(timeout=2)
        except KafkaException as error:
            return f"no metadata: {error}"
        return None if metadata.brokers else "no broker is registered yet"

    return check
