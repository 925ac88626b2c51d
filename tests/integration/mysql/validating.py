"""A comparison that a test kills. Arguments: the port of the server, the file of its state."""

from __future__ import annotations

import sys
from pathlib import Path

from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.cli.validation.inputs.table_facts import TableFacts
from shardmerge.cli.validation.saved_state import StateFile
from shardmerge.cli.validation.target_run import Limits, TargetRun, Watcher
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.unit.spark_sink.validation.facts import shard, target

from .compared_line import S1, ToyLine, pipeline

OWN = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"
FACTS = TableFacts(1, True, target(OWN), (shard(S1, OWN),))
RATE = 200


class Quiet:
    """Tells nothing."""

    def progressed(self, validation: TableValidation) -> None:
        """See ``target_run.Watcher``."""


def run_of(
    port: int, servers: ServerRows, state: StateFile, watcher: Watcher, rate: int | None
) -> TargetRun:
    """The comparison of one shard with its target, in ranges of 50 rows."""
    return TargetRun(
        lambda: FACTS,
        (),
        servers=servers,
        passing=lambda _: ToyLine(port),
        limits=Limits(rows_per_s=rate, rows_a_range=50, patience_s=5),
        state=state,
        watcher=watcher,
    )


def main(port: int, path: Path) -> None:
    """Compare as slowly as a test needs to kill the process meanwhile."""
    servers = ServerRows(pipeline(port, port))
    run_of(port, servers, StateFile(path, "compare", ()), Quiet(), RATE).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
