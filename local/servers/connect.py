"""The Kafka Connect worker of the local stack: distributed, exactly-once sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shardmerge.local.install.artifacts import Artifacts

from .java_process import java_command, write_properties
from .processes import ProcessSpec, http_answers

_LEVELS = {
    "org.apache.kafka.connect.runtime": "INFO",
    "io.debezium": "INFO",
    # Otherwise there is a warning for each unused configuration key and each plugin class.
    "org.apache.kafka.clients.admin.AdminClientConfig": "ERROR",
    "org.apache.kafka.connect.runtime.isolation": "WARN",
    # One line per request otherwise.
    "org.apache.kafka.connect.runtime.rest.RestServer": "WARN",
    "org.reflections": "ERROR",
}


def connect_spec(
    artifacts: Artifacts,
    directory: Path,
    port: int,
    bootstrap_servers: str,
    *,
    plugins: Sequence[Path] = (),
    heap: str = "768m",
) -> ProcessSpec:
    """The worker's process; ``plugins``: folders of plugins, by default Debezium's alone."""
    properties = write_properties(
        directory / "worker.properties",
        _properties(plugins or (artifacts.plugin_path,), port, bootstrap_servers),
    )
    main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
    return ProcessSpec(
        name="connect",
        argv=java_command(artifacts, directory, heap, _LEVELS, main_class, str(properties)),
        ports=(port,),
        # Before it has joined its group a worker answers with an error.
        health=http_answers(f"http://127.0.0.1:{port}/connectors"),
        start_timeout_s=240,
        stop_timeout_s=30,
    )


def _properties(plugins: Sequence[Path], port: int, bootstrap_servers: str) -> dict[str, str | int]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "shardmerge-connect",
        "listeners": f"http://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "plugin.path": ",".join(map(str, plugins)),
        # Every plugin here has a manifest, so the worker can start sooner, without a scan.
        "plugin.discovery": "service_load",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "config.storage.topic": "connect-configs",
        "config.storage.replication.factor": 1,
        "offset.storage.topic": "connect-offsets",
        "offset.storage.replication.factor": 1,
        "offset.storage.partitions": 4,
        "status.storage.topic": "connect-status",
        "status.storage.replication.factor": 1,
        "status.storage.partitions": 2,
        "exactly.once.source.support": "enabled",
        "connector.client.config.override.policy": "All",
        # A worker that comes back gets its tasks at once instead of after five minutes.
        "scheduled.rebalance.max.delay.ms": 0,
        "session.timeout.ms": 10000,
        "heartbeat.interval.ms": 1000,
        "offset.flush.interval.ms": 1000,
        "task.shutdown.graceful.timeout.ms": 3000,
    }
