"""The Kafka Connect worker of the local stack: distributed, exactly-once sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.install.artifacts import Artifacts
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Connect

from .java_process import java_command, write_properties
from .processes import LOOPBACK, HealthCheck, ProcessSpec
from .secured import PLAIN, Secured, environment_of

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
    secured: Secured = PLAIN,
    jars: Sequence[Path] = (),
    host: str = LOOPBACK,
) -> ProcessSpec:
    """The worker's process.

    Args:
        artifacts: What to run.
        directory: Of its files.
        port: On 127.0.0.1; on every address if ``host`` is another one.
        bootstrap_servers: Of Kafka.
        plugins: Folders of plugins, by default Debezium's alone.
        heap: Java's.
        secured: Its secure connections.
        jars: Folders of jars that it has on its class path besides Kafka's.
        host: Where other workers, and clients, reach it.
    """
    properties = write_properties(
        directory / "worker.properties",
        {
            **_properties(plugins or (artifacts.plugin_path,), host, port, bootstrap_servers),
            **secured.connect,
        },
    )
    url = secured.connect["listeners"] if secured.is_on else f"http://{host}:{port}"
    main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
    return ProcessSpec(
        name="connect",
        argv=java_command(
            artifacts,
            directory,
            heap,
            _LEVELS,
            *secured.connect_java,
            main_class,
            str(properties),
            jars=jars,
        ),
        ports=(port,),
        env=environment_of(directory.parent, "connect"),
        # Before it has joined its group a worker answers with an error.
        health=_health(secured.connect_access(url)),
        start_timeout_s=240,
        stop_timeout_s=30,
    )


def _health(access: Connect) -> HealthCheck:
    """Healthy when the worker answers what connectors there are."""

    def check() -> str | None:
        rest = ConnectRest.of(access, patience_s=0.0)
        try:
            rest.connectors()
        except StackError as error:
            return str(error)
        finally:
            rest.close()
        return None

    return check


def _properties(
    plugins: Sequence[Path], host: str, port: int, bootstrap_servers: str
) -> dict[str, str | int]:
    listens = host if host == LOOPBACK else "0.0.0.0"  # noqa: S104  # the caller asked for it
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "shardmerge-connect",
        "listeners": f"http://{listens}:{port}",
        "rest.advertised.host.name": host,
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
        # A worker that comes back waits until the group has given up the one that was killed. The
        # shortest that brokers take unless they are told otherwise.
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1000,
        "offset.flush.interval.ms": 1000,
        "task.shutdown.graceful.timeout.ms": 3000,
    }
