"""Iceberg tables through the JVM of Spark: load, compare-and-set of the metadata, stage, publish.

Theory of operation. A table is one metadata file: schema, properties, snapshots. The catalog
replaces the file by one that was built from it, or refuses if it is no longer the current file
(``TableOperations.commit``): a compare-and-set of everything at once. When Iceberg's own updates
(``table.updateProperties()``, ALTER TABLE) are refused, they repeat themselves on newer metadata.
That would write the sink's old state over what another writer has committed meanwhile. So the sink
makes its commits here: it reads the metadata, builds new metadata from it, and commits once. If
``Moved`` is raised, the table has to be read again.

Rows are written in two steps. MERGE stages a snapshot that no reader sees (Iceberg's
write-audit-publish: ``spark.wap.id``). Then ``commit`` makes it the current snapshot, and stores
the sink's state with it. A crash between the two leaves a staged snapshot, which is removed when
snapshots expire.

Source: Iceberg specification, "Optimistic Concurrency", "Commit Conflict Resolution"; Iceberg's
Java API, ``TableOperations``, ``TableMetadata.Builder``; measured with the Hadoop catalog.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from shardmerge.schemas.model.errors import TargetError, TargetLost
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.spark_sink.targets.iceberg.texts.history import STAGED_AS, History, history_of
from shardmerge.spark_sink.targets.iceberg.texts.layout import Layout, layout_of, schema_json

_MAIN = "main"
_SESSION_CLASS = "org.apache.spark.sql.classic.SparkSession"
_PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.wap.enabled": "true",
}
"""The properties that make ``MERGE`` merge-on-read, and let it be staged."""
_PROPERTIES_OF_NEW = {
    # A batch writes two metadata files, which are not needed for long.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}
CONFLICTS_OF_MERGE = frozenset({"ValidationException"})
"""The exceptions of a MERGE when rows were changed, or files rewritten, since it began."""
_CONFLICTS = frozenset({"CommitFailedException", "AlreadyExistsException"})
_FINAL = frozenset(
    {"ValidationException", "IllegalArgumentException", "BadRequestException", "AnalysisException"}
)
_MISSING = frozenset({"NoSuchTableException"})


class Moved(Exception):
    """Somebody has committed to the table since its metadata was read; nothing was changed."""


class Uncertain(Exception):
    """The commit's acknowledgement was lost: the table's state shows whether it took effect."""


class MissingTable(TargetLost):
    """There is no such table."""


class IcebergTable:
    """One reading of a table's metadata; ``commit`` succeeds only if it is still current.

    Attributes:
        name: The table's.
        jvm: Spark's.
        java_table: Iceberg's table.
    """

    def __init__(self, jvm: Any, name: TargetTable, table: Any) -> None:
        self.name = name
        self.jvm = jvm
        self.java_table = table
        self._operations = table.operations()
        self._base = self._operations.current()
        if self._base is None:
            raise MissingTable(f"there is no table {name}", code="SM-3106")

    def refreshed(self) -> IcebergTable:
        """A new reading. It costs much less than ``IcebergCatalog.load`` if nothing has changed.

        Raises:
            MissingTable: There is none any more.
            TargetError: The catalog is away (retryable).
        """
        with translated(f"reading {self.name}"):
            self.java_table.refresh()
            return IcebergTable(self.jvm, self.name, self.java_table)

    @property
    def layout(self) -> Layout:
        """The table's columns."""
        text = self.jvm.org.apache.iceberg.SchemaParser.toJson(self._base.schema())
        return layout_of(text, self._base.lastColumnId())

    @property
    def snapshot_id(self) -> int | None:
        """Id of the current snapshot; None before the first."""
        snapshot = self._base.currentSnapshot()
        return None if snapshot is None else int(snapshot.snapshotId())

    @property
    def location(self) -> str:
        """Where this metadata is stored: every commit stores it in another place."""
        return str(self._base.metadataFileLocation())

    @property
    def sequence(self) -> int:
        """The highest sequence number that a snapshot ever had."""
        return int(self._base.lastSequenceNumber())

    @property
    def history(self) -> History:
        """The table's snapshots."""
        return history_of(self._metadata())

    @property
    def data_folder(self) -> str:
        """Where its data files are."""
        given = self._base.properties().get("write.data.path")
        return f"{self.java_table.location()}/data" if given is None else str(given)

    @property
    def format_version(self) -> int:
        """The version of the format."""
        return int(self._base.formatVersion())

    @property
    def is_partitioned(self) -> bool:
        """Whether somebody has partitioned it."""
        return bool(self._base.spec().isPartitioned())

    def property(self, key: str) -> str | None:
        """A table property's value."""
        value = self._base.properties().get(key)
        return None if value is None else str(value)

    def properties(self) -> dict[str, str]:
        """All of the table's properties; each call of ``property`` asks for one."""
        found: dict[str, str] = json.loads(self._metadata())["properties"]
        return found

    def _metadata(self) -> str:
        return str(self.jvm.org.apache.iceberg.TableMetadataParser.toJson(self._base))

    def staged(self, staged_as: str) -> tuple[int, int | None] | None:
        """Ids of the snapshot that was staged under an id, and of its parent; None without one."""
        snapshots = self._base.snapshots()
        for number in reversed(range(snapshots.size())):
            snapshot = snapshots.get(number)
            if snapshot.summary().get(STAGED_AS) == staged_as:
                parent = snapshot.parentId()
                return int(snapshot.snapshotId()), None if parent is None else int(parent)
        return None

    def commit(
        self,
        properties: Mapping[str, str],
        *,
        layout: Layout | None = None,
        publish: Any = None,
        tag: tuple[str, int] | None = None,
        untag: str = "",
    ) -> None:
        """Commit properties, and with them a schema or a staged snapshot, on top of this reading.

        Args:
            properties: Those that change.
            layout: The columns.
            publish: The snapshot to make the current one: the id of a staged one, or one of Iceberg
                that is new.
            tag: The name of a tag, and the snapshot that it is to name.
            untag: The name of a tag that goes.

        Raises:
            Moved: The table has changed since this reading.
            Uncertain: It is not known whether the commit took effect.
            TargetError: The catalog refuses it, or is away (retryable).
        """
        needed = {k: v for k, v in _PROPERTIES.items() if k != "format-version"}
        changed = {
            key: value
            for key, value in {**needed, **properties}.items()
            if self.property(key) != value
        }
        with translated(f"committing to {self.name}"):
            builder = self.jvm.org.apache.iceberg.TableMetadata.buildFrom(self._base)
            if layout is not None:
                schema = self.jvm.org.apache.iceberg.SchemaParser.fromJson(schema_json(layout))
                builder = builder.setCurrentSchema(schema, layout.last_id)
                if publish is not None:
                    publish = self._with_schema(publish, builder.build().currentSchemaId())
            if publish is not None:
                builder = builder.setBranchSnapshot(publish, _MAIN)
            if tag is not None:
                name, snapshot = tag
                reference = self.jvm.org.apache.iceberg.SnapshotRef.tagBuilder(snapshot).build()
                builder = builder.setRef(name, reference)
            if untag:
                builder = builder.removeRef(untag)
            builder = builder.setProperties(_java_map(self.jvm, changed))
            self._operations.commit(self._base, builder.build())

    def _with_schema(self, snapshot: Any, schema: int) -> Any:
        """A new snapshot whose columns are those of the schema that is committed with it."""
        parser = self.jvm.org.apache.iceberg.SnapshotParser
        document = json.loads(str(parser.toJson(snapshot)))
        return parser.fromJson(json.dumps({**document, "schema-id": schema}))


class IcebergCatalog:
    """The tables of one Spark catalog; belongs to the thread that makes it.

    Args:
        session: Spark's, with the catalog configured and its cache off (``target.spark_conf``).
        name: The catalog's name.
    """

    def __init__(self, session: Any, name: str) -> None:
        self.name = name
        self._session = session
        self._jvm = session.sparkContext._jvm
        with translated(f"opening catalog {name}"):
            # Iceberg takes a catalog's configuration from the JVM thread's active session.
            getattr(self._jvm, _SESSION_CLASS).setActiveSession(session._jsparkSession)
            self._catalog = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(
                session._jsparkSession, name
            )

    def sql_name(self, table: TargetTable) -> str:
        """The table's quoted name in Spark SQL."""
        return f"{quote_identifier(self.name)}.{table.sql}"

    def new_session(self) -> Any:
        """A Spark session with settings of its own, because staging changes a setting."""
        return self._session.newSession()

    def load(self, table: TargetTable) -> IcebergTable:
        """Read a table's metadata.

        Raises:
            MissingTable: There is none.
            TargetError: The catalog is away (retryable).
        """
        with translated(f"reading {table}"):
            return IcebergTable(self._jvm, table, self._catalog.loadTable(self._identifier(table)))

    def find(self, table: TargetTable) -> IcebergTable | None:
        """As ``load``; None when there is none."""
        try:
            return self.load(table)
        except MissingTable:
            return None

    def create(self, table: TargetTable, layout: Layout, properties: Mapping[str, str]) -> None:
        """Make a table.

        Raises:
            Moved: There is one already.
            TargetError: See ``IcebergTable.commit``.
        """
        with translated(f"creating {table}"):
            self.make_namespace(table.database)
            schema = self._jvm.org.apache.iceberg.SchemaParser.fromJson(schema_json(layout))
            (
                self._catalog.buildTable(self._identifier(table), schema)
                .withProperties(
                    _java_map(self._jvm, {**_PROPERTIES, **_PROPERTIES_OF_NEW, **properties})
                )
                .create()
            )

    def drop(self, table: TargetTable, *, with_files: bool) -> None:
        """Drop a table, unless there is none.

        Args:
            table: The table.
            with_files: Whether its data files go, too; only if no other table has them.

        Raises:
            TargetError: The catalog refuses it, or is away (retryable).
        """
        with translated(f"dropping {table}"):
            self._catalog.dropTable(self._identifier(table), with_files)

    def drop_namespace(self, name: str) -> None:
        """Drop a database, unless somebody has put a table there, or there is none.

        Without the right to drop it, an empty database stays. It does no harm.
        """
        quoted = f"{quote_identifier(self.name)}.{quote_identifier(name)}"
        try:
            with translated(f"dropping database {name}"):
                self._session.sql(f"DROP NAMESPACE IF EXISTS {quoted}")
        except TargetLost:
            raise
        except TargetError:
            return

    def make_namespace(self, name: str) -> None:
        """Make a database where it is missing."""
        quoted = f"{quote_identifier(self.name)}.{quote_identifier(name)}"
        with translated(f"creating database {name}"):
            self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted}")

    def _identifier(self, table: TargetTable) -> Any:
        api = self._jvm.org.apache.iceberg.catalog
        # A parameter with varargs: py4j needs a Java array for it.
        levels = self._session.sparkContext._gateway.new_array(self._jvm.java.lang.String, 1)
        levels[0] = table.database
        return api.TableIdentifier.of(api.Namespace.of(levels), table.table)


@contextmanager
def translated(what: str, *, conflicts: frozenset[str] = frozenset()) -> Iterator[None]:
    """Translate exceptions of Java and Spark into ours.

    Args:
        what: What is being done, for error messages.
        conflicts: Further Java exception classes that mean here that somebody else committed.

    Raises:
        Moved, Uncertain: See these classes.
        MissingTable: A table does not exist.
        TargetLost: Spark's JVM does not answer.
        TargetError: ``retryable``, unless the request itself is refused.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        # Spark turns some Java exceptions into its own, which keep the original one.
        java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        names = set(_names(java))
        if names & (conflicts | _CONFLICTS):
            raise Moved from error
        if "CommitStateUnknownException" in names:
            raise Uncertain from error
        message = f"{what}: {_first_line(java) if java is not None else error}"
        if names & _MISSING:
            raise MissingTable(
                message, hint="restore it: somebody dropped it", code="SM-3106"
            ) from error
        raise TargetError(
            message, statement=what, retryable=not names & _FINAL, code="SM-3110"
        ) from error
    except (Py4JError, ConnectionError) as error:
        raise TargetLost(
            f"{what}: Spark's JVM does not answer: {error}",
            hint="start the sink again",
            code="SM-3104",
        ) from error


def _names(java: Any) -> Iterator[str]:
    """The simple names of the classes of an exception and of its causes."""
    while java is not None:
        kind = java.getClass()
        while kind is not None:
            yield kind.getSimpleName()
            kind = kind.getSuperclass()
        java = java.getCause()


def _first_line(java: Any) -> str:
    while java.getCause() is not None:
        java = java.getCause()
    text = java.getMessage()
    kind = java.getClass().getSimpleName()
    return f"{kind}: {text.splitlines()[0]}" if text else str(kind)


def _java_map(jvm: Any, values: Mapping[str, str]) -> Any:
    found = jvm.java.util.HashMap()
    for key, value in values.items():
        found.put(key, value)
    return found
