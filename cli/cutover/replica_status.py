"""Whether replication may still bring rows to a server. Pure.

Source: MySQL Reference Manual, "SHOW REPLICA STATUS"; MariaDB, "SHOW ALL SLAVES STATUS". Up to
MySQL 8.0.21, and on MariaDB, the columns say Slave for Replica and Master for Source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def replication_left(channels: Sequence[Mapping[str, object]]) -> tuple[str, str]:
    """Why rows may still come from another server, and a note for the operator; "" for neither.

    Args:
        channels: The rows that ``SHOW REPLICA STATUS`` returned.
    """
    left, notes = [], []
    for channel in channels:
        told = {_newer(name): str(value) for name, value in channel.items()}
        where = f"{told.get('Source_Host', '')}:{told.get('Source_Port', '')}"
        states = (told.get("Replica_IO_Running"), told.get("Replica_SQL_Running"))
        got = (told.get("Source_Log_File"), told.get("Read_Source_Log_Pos"))
        done = (told.get("Relay_Source_Log_File"), told.get("Exec_Source_Log_Pos"))
        if any(state not in ("No", None) for state in states):
            left.append(f"it replicates from {where}")
        elif got[0] and got != done:
            left.append(f"it has not executed everything that it got from {where}")
        else:
            notes.append(
                f"is a stopped replica of {where}: what {where} got after the stop is not merged"
            )
    return "; ".join(left), "; ".join(notes)


def _newer(name: str) -> str:
    return name.replace("Slave", "Replica").replace("Master", "Source")
