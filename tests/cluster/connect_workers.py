"""A worker of Kafka Connect on a machine of the network, beside the line's own."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace

from aiokafka.admin import AIOKafkaAdminClient

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.install.artifacts import resolve
from shardmerge.local.install.exact_values import with_exact_values
from shardmerge.local.servers.connect import connect_spec

from .conftest import ClusterLine
from .machines import Machine
from .parts import MachinePart
from .spark_cluster import ROOT
from .traffic import until

OWN = "connect"
"""The line's worker, on this machine."""
GROUP = "shardmerge-connect"
_PORT = 8083


class OtherWorker(MachinePart):
    """A worker of the line's group.

    Args:
        line: Its pipeline file names both workers from now on.
        machine: Where the worker runs.
    """

    def __init__(self, line: ClusterLine, machine: Machine) -> None:
        super().__init__(line, machine, "connect")
        own = line.stack.connect_url
        self.connect = replace(line.pipeline.connect, url=f"http://{machine.address}:{_PORT},{own}")
        line.tell(own, self.connect.url)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        cache = ROOT / ".local" / "cache"
        artifacts = resolve(cache)
        spec = connect_spec(
            artifacts,
            self.machine.folder / OWN,
            _PORT,
            self._line.stack.bootstrap_servers,
            plugins=[with_exact_values(artifacts.plugin_path, cache, artifacts.java)],
            host=self.machine.address,
        )
        argv = self.machine.command(*spec.argv)
        self._line.stack.add(replace(spec, name=self._name, argv=argv, ports=()))

    def end(self) -> None:
        """End it, and let the pipeline file name the line's own worker alone."""
        self._line.stack.stop(self._name)
        self._line.tell(self.connect.url, self._line.stack.connect_url)

    def change_connectors(self, **changed: str) -> None:
        """Change the configuration of each connector."""
        with closing(ConnectRest.of(self.connect)) as rest:
            for name in self._connectors():
                config = rest.config(name)
                assert config is not None
                rest.create_or_update(
                    name, {**config, **{k.replace("_", "."): v for k, v in changed.items()}}
                )

    def until_they_run(self) -> None:
        """Wait until each connector runs."""
        with closing(ConnectRest.of(self.connect)) as rest:

            def run() -> bool:
                found = [rest.status(name) for name in self._connectors()]
                return all(each is not None and each.is_running for each in found)

            until(run, "connectors that run")

    def members(self) -> int:
        """How many workers the group has, as Kafka sees it."""
        return asyncio.run(_members(self._line.stack.bootstrap_servers))

    def _connectors(self) -> list[str]:
        pipeline = self._line.pipeline
        return [connector_name(pipeline, source) for source in pipeline.sources]


async def _members(servers: str) -> int:
    # The client of the other tests describes groups of consumers alone.
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        (answer,) = await admin.describe_consumer_groups([GROUP])
    finally:
        await admin.close()
    ((error, _, _, _, _, members, *_),) = answer.groups
    assert error == 0
    return len(members)
