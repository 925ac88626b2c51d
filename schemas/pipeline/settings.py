"""What a pipeline file says, as frozen values: servers, routes, target, Kafka, Connect, sink."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import matches

from .connector_properties import Properties
from .lineage.open_lineage import OpenLineage
from .routing import RoutingRule
from .secrets import reference
from .spark_catalog import SparkCatalog
from .tls import Tls
from .web import Web

SNAPSHOT_MODES = frozenset(
    (
        "always",
        "configuration_based",
        "initial",
        "initial_only",
        "never",
        "no_data",
        "recovery",
        "when_needed",
    )
)
"""What Debezium's ``snapshot.mode`` may be."""
MODES_WITHOUT_ROWS = frozenset(("no_data", "never", "recovery"))
"""Those with which a snapshot describes tables and reads no rows."""
MAX_EPOCH = 999_999


SNAPSHOTS = ("debezium", "spark")
"""Who reads a source's first rows: see ``Source.snapshot``."""


CCOMPAT = "/apis/ccompat/"
"""Part of the address of Apicurio's Confluent-compatible interface."""


ROW_FORMATS = ("json", "json-schemas", "avro")
"""Connect's JSON without and with embedded schemas; Avro with a schema registry."""


RECORD_FORMATS = ("avro", "json", "avro-registry")
"""See ``records.record_format``."""


ICEBERG_VERSION = "1.12.0"
"""The default of ``[target] version`` for kind ``iceberg``: the version that the tests run on."""


@dataclass(frozen=True, slots=True)
class Source:
    """One MySQL server and the connector that reads it.

    Attributes:
        name: The connector's ``topic.prefix``: letters, digits, ``_`` and ``-``.
        host: Name or address of the server.
        port: Its port.
        user: The connector's user. It needs SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE and
            REPLICATION CLIENT, and CREATE, SELECT, INSERT and DELETE on ``shardmerge_`` databases.
        password: Its password, or where it is: ``env:NAME`` or ``file:PATH``.
        server_id: The connector's own replication server id, unique among all replicas.
        databases: Regular expression of the databases that are captured.
        tables: Regular expression of the tables that are captured, as ``database.table``; "" is
            every table of the databases.
        flavour: ``mysql`` or ``mariadb``. With ``version``, ``sql_mode`` and ``charset`` it tells
            the DDL grammar how the server reads a statement.
        version: The numbers with points that ``SELECT VERSION()`` begins with.
        sql_mode: The server's SQL modes, separated by commas. Modes that change how a statement is
            read, such as ``ANSI_QUOTES``, must be listed here.
        charset: The server's ``character_set_server``.
        lower_case_table_names: The server's ``lower_case_table_names``. With 1 or 2 names of
            databases and tables are read in lower case, and routes have to write them so.
        explicit_defaults_for_timestamp: The server's variable of that name, ``ON`` or ``OFF``; ""
            for the default of its version. Where it is OFF, the server makes TIMESTAMP columns NOT
            NULL that do not say otherwise.
        snapshot_mode: Debezium's ``snapshot.mode``, for a source whose first rows Debezium reads.
        snapshot: Who reads the rows that tables have at the beginning: ``debezium``, or ``spark``.
            With ``spark`` the sink reads them itself, several parts of tables at once, and they
            do not go through Connect and Kafka. Without this key it is ``debezium`` for a source
            that has ``snapshot_mode``, or whose rows the sink cannot load (into an Iceberg target
            whose route ignores operations, or keeps truncated rows).
        load_connections: With ``spark``: how many chunks of tables are read at once, at most.
        load_rows_per_s: With ``spark``: how many rows a second are read, at most; 0 for no
            limit.
        load_snapshot_s: With ``spark``: how many seconds a transaction may stay open that reads a
            whole table as of one moment; 0 for no limit.
        load_host: With ``spark``: name or address of a replica of the source, from which chunks of
            tables are read; "" is the source itself.
        load_port: The replica's port; 0 is that of the source.
        load_user: The user on the replica; "" is that of the source.
        load_password: Its password, or where it is; "" is that of the source.
        epoch: Raise it by one whenever you point the connector to another server, or the server's
            binlog starts anew: positions of two binlogs have no order of their own.
        connect_password: What the connector's configuration has instead of ``password``: a
            reference that Connect's workers look up, such as ``${vault:secret/s1:password}``.
        tls: How the connections to the server are encrypted and checked.
        connector: Properties that the source's connector gets besides its own; they win over those
            of ``[connect]``. Some are refused, see docs/reference/connector-properties.md.
    """

    name: str
    host: str
    port: int
    user: str
    password: str
    server_id: int
    databases: str = ".*"
    tables: str = ""
    flavour: str = "mysql"
    version: str = "8.0"
    sql_mode: str = ""
    charset: str = "utf8mb4"
    lower_case_table_names: int = 0
    explicit_defaults_for_timestamp: str = ""
    snapshot_mode: str = "initial"
    snapshot: str = "spark"
    load_connections: int = 4
    load_rows_per_s: int = 0
    load_snapshot_s: int = 3600
    load_host: str = ""
    load_port: int = 0
    load_user: str = ""
    load_password: str = ""
    epoch: int = 0
    connect_password: str = ""
    tls: Tls = field(default_factory=Tls)
    connector: Properties = ()

    def __post_init__(self) -> None:
        if self.snapshot_mode not in SNAPSHOT_MODES:
            raise ConfigError(
                f"source {self.name}: snapshot_mode {self.snapshot_mode!r} is not known",
                hint=f"known: {', '.join(sorted(SNAPSHOT_MODES))}",
                code="SM-5005",
            )
        if self.lower_case_table_names not in (0, 1, 2):
            raise ConfigError(
                f"source {self.name}: lower_case_table_names must be 0, 1 or 2, not "
                f"{self.lower_case_table_names}",
                hint="SELECT @@lower_case_table_names tells it",
                code="SM-5004",
            )
        if self.explicit_defaults_for_timestamp not in ("", "ON", "OFF"):
            raise ConfigError(
                f"source {self.name}: explicit_defaults_for_timestamp must be 'ON' or 'OFF', not "
                f"{self.explicit_defaults_for_timestamp!r}",
                hint="SELECT @@explicit_defaults_for_timestamp tells it: 1 is ON",
                code="SM-5004",
            )
        if not 0 <= self.epoch <= MAX_EPOCH:
            raise ConfigError(
                f"source {self.name}: epoch must be 0 to {MAX_EPOCH}, not {self.epoch}",
                code="SM-5004",
            )
        reference(self.load_password)
        if not self.load_host and (self.load_port or self.load_user or self.load_password):
            raise ConfigError(
                f"source {self.name}: load_port, load_user and load_password are of a replica",
                hint="name the replica in load_host",
                code="SM-5204",
            )
        if self.load_host and not self.is_loaded:
            raise ConfigError(
                f"source {self.name}: load_host goes with snapshot 'spark'",
                hint="leave load_host out, or give the source snapshot = 'spark'",
                code="SM-5204",
            )

    @property
    def is_loaded(self) -> bool:
        """Whether the sink reads the first rows itself (``snapshot``)."""
        return self.snapshot == "spark"

    @property
    def connector_snapshot_mode(self) -> str:
        """The connector's ``snapshot.mode``: it only describes the tables that the sink loads."""
        return "no_data" if self.is_loaded else self.snapshot_mode

    def reads_database(self, database: str) -> bool:
        """Whether the connector captures tables of a database; like Debezium, whatever the case."""
        return matches(self.databases, database)

    def reads_table(self, database: str, table: str) -> bool:
        """Whether the connector captures a table."""
        name = f"{database}.{table}"
        listed = not self.tables or matches(self.tables, name)
        return listed and self.reads_database(database)


@dataclass(frozen=True, slots=True)
class Target:
    """The server of the target tables.

    Attributes:
        host: Name or address of the server.
        port: Its port.
        user: The sink's user.
        password: Its password, or where it is: ``env:NAME`` or ``file:PATH``.
        control_database: The database in which the sink stores offsets, DDL journal and writer
            epoch; the sink creates it if it is missing. For Iceberg it is a namespace.
        kind: ``mysql``, ``mariadb``, ``tidb`` or ``iceberg``. With ``version`` it says which DDL
            the target takes: what the target lacks is replaced, left out, or refused with a reason.
        version: One to three numbers, as ``SELECT VERSION()`` begins. The default is the oldest
            MySQL that the tests run on. A newer one can have more: CHECK constraints from 8.0.16
            on. For Iceberg it is the version of the library.
        catalog: The catalog of Iceberg tables; with it there are no host, port, user, password
            and tls.
        tls: How the connections to the server are encrypted and checked.
    """

    host: str
    port: int
    user: str
    password: str
    control_database: str = "shardmerge"
    kind: str = "mysql"
    version: str = "8.0.15"
    catalog: SparkCatalog | None = None
    tls: Tls = field(default_factory=Tls)


@dataclass(frozen=True, slots=True)
class Kafka:
    """Broker addresses, and settings of our own topics.

    Attributes:
        bootstrap_servers: Brokers to connect to first: ``host:port``, separated by commas.
        log_partitions: Partitions of schema-log. All records of a target are in one partition, so
            they have one total order.
        replication: Replication factor of our topics.
        row_format: How the connectors write rows and schema changes: ``json``, ``json-schemas``
            (with Connect's embedded schemas) or ``avro`` (with a schema registry).
        record_format: How our own records are written: ``avro`` (single-object encoding),
            ``json``, or ``avro-registry`` (Confluent's framing, with a schema registry).
        schema_registry: Address of the registry's Confluent interface, if one of the formats needs
            a registry.
        avro_converter: Connect's converter: ``apicurio`` or ``confluent``. The default is
            Apicurio's if the registry's address contains ``/apis/ccompat/``, else Confluent's.
        schema_registry_user: User for HTTP's basic authentication; "" is none.
        schema_registry_password: That user's password, or where it is: ``env:NAME`` or
            ``file:PATH``.
        schema_registry_tls: Which certificates are used and trusted with the registry.
        client: How clients connect to the brokers, in librdkafka's words.
    """

    bootstrap_servers: str
    log_partitions: int = 4
    replication: int = 1
    row_format: str = "json"
    record_format: str = "avro"
    schema_registry: str = ""
    avro_converter: str = ""
    schema_registry_user: str = ""
    schema_registry_password: str = ""
    schema_registry_tls: Tls = field(default_factory=Tls)
    client: Properties = ()


@dataclass(frozen=True, slots=True)
class Connect:
    """Kafka Connect's REST address.

    Attributes:
        url: Address of the REST interface, or addresses of several workers with commas between
            them: when one does not answer, the next is asked.
        row_partitions: Partitions of the row topics that Connect creates.
        replication: Their replication factor.
        exact_values: Whether its workers have the converter of ``connectors/java``. It gives the
            exact values that Debezium alone would change.
        user: User for HTTP's basic authentication; "" is none.
        password: That user's password, or where it is: ``env:NAME`` or ``file:PATH``.
        tls: Which certificates are used and trusted with the REST interface.
        client: What Debezium's own clients for schema history and signals are told, in the words of
            Kafka's Java clients, besides or instead of what ``[kafka.client]`` says.
        connector: Properties that all connectors get besides their own. Some are refused:
            docs/reference/connector-properties.md.
    """

    url: str
    row_partitions: int = 1
    replication: int = 1
    exact_values: bool = True
    user: str = ""
    password: str = ""
    tls: Tls = field(default_factory=Tls)
    client: Properties = ()
    connector: Properties = ()

    @property
    def urls(self) -> tuple[str, ...]:
        """The workers' addresses, each without a slash at its end; at least one."""
        return tuple(each.strip().rstrip("/") for each in self.url.split(","))


@dataclass(frozen=True, slots=True)
class Sink:
    """How the sink batches.

    Attributes:
        max_batch_records: Most row records of one micro-batch, over all partitions.
        max_batch_mb: About how many megabytes of records one batch may have. Earlier batches tell
            how many records that is.
        max_batch_s: About how many seconds one batch may take. Earlier batches tell how many
            records that is.
        spark_min_records: A batch with fewer records runs in the driver: a Spark job would cost
            more processor time than it saves.
        poll_interval_ms: Longest pause after a batch that found nothing to do. Rows and decisions
            that arrive end it.
        gather_ms: While many rows come, a batch waits up to this long for more, so that batches
            get larger. When few rows come, no batch waits. 0 turns this off.
        retry_interval_s: Pause before a statement that the target refused is tried again.
        statement_connections: How many targets have statements executed at the same time, at most;
            each takes a connection. A statement that copies a large table keeps its place until it
            ends, and further targets wait. The statements of one target run one after another.
        lock_wait_timeout_s: Longest time that a DDL statement waits for metadata locks.
        online_ddl: Whether DDL that would lock out the target's readers or writers is refused.
        drift_interval_s: Pause between two looks at the definitions of the target's tables, which
            somebody may have changed by hand; 0 for no looks.
        drift_ignore: A regular expression. A difference that does no harm to rows is not reported
            if the expression matches its whole subject, such as ``index:by_name``; "" ignores none.
    """

    max_batch_records: int = 500_000
    max_batch_mb: int = 1_024
    max_batch_s: int = 20
    spark_min_records: int = 20_000
    poll_interval_ms: int = 500
    gather_ms: int = 200
    retry_interval_s: int = 10
    statement_connections: int = 16
    lock_wait_timeout_s: int = 30
    online_ddl: bool = False
    drift_interval_s: int = 60
    drift_ignore: str = ""

    def __post_init__(self) -> None:
        for name in (
            "max_batch_records",
            "max_batch_mb",
            "max_batch_s",
            "retry_interval_s",
            "statement_connections",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"[sink]: {name} must be 1 or more, not {getattr(self, name)}", code="SM-5004"
                )
        if self.gather_ms < 0:
            raise ConfigError(
                f"[sink]: gather_ms must be 0 or more, not {self.gather_ms}", code="SM-5004"
            )
        if self.drift_interval_s < 0:
            raise ConfigError(
                f"[sink]: drift_interval_s must be 0 or more, not {self.drift_interval_s}",
                code="SM-5004",
            )
        try:
            re.compile(self.drift_ignore)
        except re.error as error:
            raise ConfigError(
                f"[sink]: drift_ignore {self.drift_ignore!r} is no regular expression: {error}",
                code="SM-5004",
            ) from None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A whole pipeline file: everything that the agents and the sink must agree on.

    Attributes:
        name: Prefix of our own topics, and key in the sink's control tables.
        routes: The routing rules. Each has a mode: its own, or else the pipeline's.
    """

    name: str
    kafka: Kafka
    connect: Connect
    sources: tuple[Source, ...]
    routes: tuple[RoutingRule, ...]
    target: Target
    sink: Sink = field(default_factory=Sink)
    web: Web = field(default_factory=Web)
    lineage: OpenLineage = field(default_factory=OpenLineage)

    def source(self, name: str) -> Source:
        """The source with that name; raises ``ConfigError`` when there is none."""
        for source in self.sources:
            if source.name == name:
                return source
        raise ConfigError(f"no source {name!r} in pipeline {self.name!r}", code="SM-5103")
