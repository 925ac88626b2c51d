"""What a server's replication may still bring."""

from __future__ import annotations

import pytest

from shardmerge.cli.cutover.replica_status import replication_left


def channel(running: str, read: int, executed: int, *, old: bool) -> dict[str, object]:
    told: dict[str, object] = {
        "Source_Host": "primary",
        "Source_Port": 3306,
        "Replica_IO_Running": running,
        "Replica_SQL_Running": "No",
        "Source_Log_File": "f.1" if read else "",
        "Read_Source_Log_Pos": read or 4,
        "Relay_Source_Log_File": "f.1" if read else "",
        "Exec_Source_Log_Pos": executed,
    }
    if not old:
        return told
    return {
        name.replace("Source", "Master").replace("Replica", "Slave"): value
        for name, value in told.items()
    }


@pytest.mark.parametrize("old", [True, False])
def test_a_replica_counts_until_it_is_stopped_and_has_executed_everything(old: bool) -> None:
    assert replication_left([]) == ("", "")
    running, _ = replication_left([channel("Connecting", 9, 9, old=old)])
    assert running == "it replicates from primary:3306"
    behind, _ = replication_left([channel("No", 9, 8, old=old)])
    assert behind == "it has not executed everything that it got from primary:3306"
    left, note = replication_left([channel("No", 9, 9, old=old), channel("No", 0, 0, old=old)])
    assert left == ""
    assert note.count("is a stopped replica of primary:3306") == 2
