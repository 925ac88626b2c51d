"""Staged snapshots: no reader sees one until a commit makes it the table's current snapshot.

This is Iceberg's write-audit-publish: while ``spark.wap.id`` is set, a write only makes a snapshot
with that id. A MERGE always does so. A DELETE of whole files does not, because Iceberg's
``SparkTable.deleteWhere`` commits by itself; so the sink uses no DELETE.

Source: Iceberg documentation, "Branching and Tagging" (write-audit-publish).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias
from uuid import uuid4

from shardmerge.spark_sink.targets.iceberg.texts.history import OURS, STAGED_AS

from .tables import CONFLICTS_OF_MERGE, IcebergTable, Moved, Uncertain, translated

_WAP_ID = "spark.wap.id"
_ATTEMPTS = 10
Wanted: TypeAlias = tuple[IcebergTable, Mapping[str, str]] | bool
"""A table as it was just read, with the properties to commit; or there is nothing to commit, and
whether that is because it is committed already."""


def new_id() -> str:
    """An id to stage under."""
    return f"{OURS}{uuid4()}"


def stage(session: Any, staged_as: str, sql: str, what: str) -> None:
    """Run a MERGE that stages a snapshot under an id; if it changes nothing, there may be none.

    Args:
        session: Spark's; nothing else writes through it meanwhile.
        staged_as: The id.
        sql: The MERGE.
        what: What is being done, for error messages.

    Raises:
        Moved: Somebody else changed the same rows.
        TargetError: Spark refuses it, or it cannot be executed now (``retryable``).
    """
    session.conf.set(_WAP_ID, staged_as)
    try:
        with translated(what, conflicts=CONFLICTS_OF_MERGE):
            session.sql(sql)
    finally:
        session.conf.unset(_WAP_ID)


def snapshot_of_files(table: IcebergTable, other: IcebergTable, made_as: str) -> Any:
    """Write a snapshot that has the files of another table, and none of the table's own.

    Nothing is committed. The files stay where they are. Columns of the same name must have the same
    ids in both tables.

    Args:
        table: A reading of the table, which is not partitioned.
        other: A reading of the other one.
        made_as: The id that the snapshot's summary keeps, as if it had been staged under it.

    Returns:
        Iceberg's snapshot, for ``IcebergTable.commit`` of this reading.

    Raises:
        TargetError: The catalog refuses it, or is away (``retryable``).
    """
    api, spec = table.jvm.org.apache.iceberg, table.java_table.spec()
    with translated(f"giving {table.name} the files of {other.name}"):
        change = table.java_table.newRowDelta()
        for file in _files(table, "data"):
            change.removeRows(file)
        for file in _files(table, "deletes"):
            change.removeDeletes(file)
        for file in _files(other, "data"):
            change.addRows(api.DataFiles.builder(spec).copy(file).build())
        for file in _files(other, "deletes"):
            change.addDeletes(api.FileMetadata.deleteFileBuilder(spec).copy(file).build())
        change.set(STAGED_AS, made_as)
        return change.apply()


def discard(table: IcebergTable, snapshot: Any) -> None:
    """Remove what ``snapshot_of_files`` wrote for a snapshot that was not committed.

    Raises:
        TargetError: The catalog is away (``retryable``).
    """
    files = table.java_table.io()
    with translated(f"discarding a snapshot of {table.name}"):
        for manifest in snapshot.allManifests(files):
            if manifest.snapshotId() == snapshot.snapshotId():
                files.deleteFile(manifest.path())
        files.deleteFile(snapshot.manifestListLocation())


def _files(table: IcebergTable, what: str) -> Iterator[Any]:
    """The live data files (``data``) or delete files (``deletes``) of the current snapshot."""
    java, readers = table.java_table, table.jvm.org.apache.iceberg.ManifestFiles
    snapshot = java.currentSnapshot()
    if snapshot is None:
        return
    read = readers.read if what == "data" else readers.readDeleteManifest
    for manifest in snapshot.allManifests(java.io()):
        if str(manifest.content()).lower() != what:
            continue
        reader = read(manifest, java.io(), java.specs())
        try:
            yield from reader.iterator()
        finally:
            reader.close()


def publishable(table: IcebergTable, staged_as: str) -> int | None:
    """The snapshot that was staged under an id; None when there is none.

    Raises:
        Moved: Its parent is not the table's current snapshot.
    """
    staged = table.staged(staged_as)
    if staged is None:
        return None
    snapshot, parent = staged
    if parent != table.snapshot_id:
        raise Moved
    return snapshot


def publish(staged_as: str, wanted: Callable[[bool], Wanted]) -> bool:
    """Make a staged snapshot the current one, and set the table's properties, in one commit.

    Args:
        staged_as: The id under which it was staged.
        wanted: Reads the table anew before each attempt. It is told whether an earlier commit may
            have taken effect.

    Returns:
        Whether that is committed; False if it is not wanted any more.

    Raises:
        Moved: The snapshot's parent is no longer the current snapshot.
        Uncertain: It is not known whether the commit took effect.
    """
    uncertain = False
    for _ in range(_ATTEMPTS):
        found = wanted(uncertain)
        if isinstance(found, bool):
            return found
        table, properties = found
        snapshot = publishable(table, staged_as)
        try:
            table.commit(properties, publish=snapshot)
        except Moved:
            continue
        except Uncertain:
            uncertain = True
            continue
        return True
    raise Uncertain if uncertain else Moved
