"""Workers whose tables are copies of each other: equal to the changelogs, whoever is killed."""

from __future__ import annotations

import rocksdict
from faust.stores.rocksdb import Store

from shardmerge.agents.handling.stored_table import COORDINATOR_TABLE, TRACKER_TABLE, changelog

from .chaos import Chaos
from .line import Line, wait_for
from .sharing import wait_shared

WORKERS = "abc"


def stored(line: Line, name: str, table: str, partition: int) -> dict[bytes, bytes]:
    """A worker's rows of a table's partition as they are on its disk, the offset among them."""
    (folder,) = line.data(name).glob(f"**/{table}-{partition}.db")
    found = rocksdict.Rdict(
        str(folder),
        options=rocksdict.Options(raw_mode=True),
        access_type=rocksdict.AccessType.read_only(),
    )
    try:
        return dict(found.items())
    finally:
        found.close()


def in_changelog(line: Line, table: str) -> dict[int, dict[bytes, bytes]]:
    """The rows of each partition of a table by its changelog, and its last record's offset."""
    found: dict[int, dict[bytes, bytes]] = {}
    for record in line.written_as_they_are(changelog(line.pipeline, table)):
        rows = found.setdefault(record.partition, {})
        if not record.value:  # a deletion
            rows.pop(record.key, None)
        else:
            rows[record.key] = record.value
        rows[Store.offset_key] = b"%d" % record.offset
    return found


def differing(line: Line) -> list[str]:
    """The tables' partitions on the workers' disks that are not as their changelogs say."""
    return [
        f"{table}-{partition} of {name}"
        for table in (TRACKER_TABLE, COORDINATOR_TABLE)
        for partition, rows in in_changelog(line, table).items()
        for name in WORKERS
        if stored(line, name, table, partition) != rows
    ]


def test_the_copies_of_killed_workers_equal_the_changelogs_and_serve_a_takeover(line: Line) -> None:
    chaos = Chaos(line, seed=4)
    for name in WORKERS:
        line.start(name)
    wait_shared(line, WORKERS)
    chaos.feed(12)
    for victim, lose_data in zip(WORKERS, (False, True, False), strict=True):
        # In the middle of records, of its own partitions and of those that it copies.
        chaos.feed(6)
        wait_for(lambda: line.decided() >= line.events() - 4, "a decision")
        line.kill(victim, lose_data=lose_data)
        chaos.feed(4)
        line.wait_decided(line.events())
        copied = line.log(victim).count("tables_copied")
        line.start(victim)
        wait_for(lambda v=victim, c=copied: line.log(v).count("tables_copied") > c, "copies")  # type: ignore[misc]
        assert all(map(line.runs, WORKERS))
    chaos.feed(6)
    line.wait_decided(line.events())

    wait_for(lambda: differing(line) == [], "copies that are equal to the changelogs")
    for name in WORKERS:
        line.kill(name)
    assert differing(line) == []
    line.check_outputs()
