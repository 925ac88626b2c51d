"""The first source of a line, with a replica by GTID that takes over when the primary is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing

from shardmerge.cli.moving.move_shapes import MovedSource
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.source_servers import source_spec
from shardmerge.local.servers.stack import Ports
from shardmerge.schemas.records.plain import from_plain

from .line_in_twos import ENVIRONMENT, ROOT, LineInTwos
from .line_writers import BOUND_S, At

REPLICA_ID = 77


class ReplicatedSource:
    """Two servers, of which one is the line's first source and the other one follows it.

    Attributes:
        primary: The source.
        replica: The other one, which becomes the source.
        writer: Writes to the source.
    """

    def __init__(self, made: LineInTwos) -> None:
        self._made, self.writer = made, made.writers[0]
        self.primary, self.replica = self.writer.at, At(Ports.free().source1)
        directory, cache = made.stack.directory / "replica", ROOT / ".local" / "cache"
        made.stack.add(
            source_spec("mysql80", "replica", directory, self.replica.port, REPLICA_ID, cache=cache)
        )
        self._names = {self.primary: "source1", self.replica: "replica"}

    def follow(self) -> None:
        """Make the replica follow the primary, and wait until it has everything."""
        self.replica.run(
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {self.primary.port},"
            f" MASTER_USER = '{USER}', MASTER_PASSWORD = '{PASSWORD}', MASTER_AUTO_POSITION = 1",
            "START SLAVE",
        )
        self.rest()
        self.writer.go_on()

    def rest(self) -> None:
        """Let the writer pause, and wait until the replica has everything.

        Without that a replica that is not synchronous can lack what the connector has read.
        """
        self.writer.rest()
        self._catch_up()

    def stop_connector(self) -> None:
        """Stop the connector, and wait until the replica has all that it can have read.

        So the writer need not pause: what the replica lacks in the end, nobody has read.
        """
        pipeline = self._made.line.pipeline
        with closing(ConnectRest.of(pipeline.connect)) as rest:
            rest.stop(connector_name(pipeline, pipeline.sources[0]))
        self._catch_up()

    def kill_primary(self) -> float:
        """``kill -9``; returns when, by a monotonic clock."""
        return self._made.kill(self._names[self.primary])

    def promote(self) -> None:
        """Let the replica execute what it has got, and write to it from now on."""
        self.replica.run("STOP SLAVE IO_THREAD")
        self._execute(self.replica.row("SHOW SLAVE STATUS")["Retrieved_Gtid_Set"])
        self.replica.run("STOP SLAVE", "RESET SLAVE ALL")
        self.primary, self.replica = self.replica, self.primary
        self.writer.at = self.primary
        self.writer.go_on()

    def move(self) -> MovedSource:
        """``shardmerge source move`` to the server that has taken over."""
        command = [sys.executable, "-m", "shardmerge.cli.main", "source", "move", "s1", "--json"]
        where = ["--host", self.primary.host, "--port", str(self.primary.port)]
        file = ["--pipeline", str(self._made.line.pipeline_path)]
        environment = {**os.environ, **ENVIRONMENT}
        said = subprocess.run(
            [*command, *file, *where], check=False, capture_output=True, text=True, env=environment
        )
        assert said.returncode in (0, 1), said.stdout + said.stderr
        return from_plain(MovedSource, json.loads(said.stdout))

    def start_again(self) -> None:
        """Start the server that was killed."""
        self._made.stack.start(self._names[self.replica])

    def _catch_up(self) -> None:
        self._execute(self.primary.row("SELECT @@GLOBAL.gtid_executed AS there")["there"])

    def _execute(self, gtids: str) -> None:
        wait = f"WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {BOUND_S:.0f})"
        assert self.replica.row(f"SELECT {wait} AS late")["late"] == 0
