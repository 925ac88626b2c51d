"""The settings that a server needs as a source or a target, judged by what it reports. Pure.

A fault would lose rows, stop the pipeline or make it read DDL wrongly. A warning is something that
the operator should know.

Source: Debezium's MySQL connector documentation, "Setting up MySQL"; MySQL Reference Manual,
"Binary Logging Options and Variables".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardmerge.connectors.debezium.unread_types import LOST_ROWS, UNCOMPRESSED_BINLOG
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import Keyless
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.server_facts import ServerFacts, server_facts
from shardmerge.schemas.pipeline.routing import RoutingRule, route, rule_of
from shardmerge.schemas.pipeline.server_differences import (
    source_differences,
    target_differences,
    version_numbers,
)
from shardmerge.schemas.pipeline.settings import Source, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.pipeline.topics import RowTopics, row_topic

from .findings import Finding, SourceTable, TargetFacts

_DAY_S = 86_400
_GENERATED_KEYS = "sql_generate_invisible_primary_key"
_SHOWN_KEYS = "show_gipk_in_create_table_and_information_schema"
_MIN_PACKET = 16 << 20
_MIN_QUOTA = 512 << 20
"""Several times the memory that a transaction of the sink's largest round takes in TiDB."""


def source_findings(source: Source, variables: Mapping[str, str]) -> list[Finding]:
    """What is wrong with a source's server.

    Args:
        source: As the pipeline file describes it.
        variables: ``SHOW GLOBAL VARIABLES``, names in lower case.
    """
    where = f"source {source.name}"
    found = []
    for name, wanted in (("log_bin", "ON"), ("binlog_format", "ROW"), ("binlog_row_image", "FULL")):
        value = variables.get(name, "")
        if value.upper() != wanted:
            found.append(
                Finding(
                    where, f"{name} is {value or 'not set'}, it must be {wanted}", code="SM-6102"
                )
            )
    if "PARTIAL_JSON" in variables.get("binlog_row_value_options", "").upper():
        found.append(
            Finding(
                where,
                "binlog_row_value_options is PARTIAL_JSON: rows without their JSON values would "
                "come; set it to ''",
                code="SM-6102",
            )
        )
    if variables.get("gtid_mode", "ON").upper() != "ON":
        found.append(
            Finding(
                where,
                f"gtid_mode is {variables['gtid_mode']}: if a Connect worker is killed right after "
                "a DDL statement, its connector can read older rows with the columns that the "
                "statement made (Debezium 3.6.1), and their shard is held. Before you switch "
                "gtid_mode ON, let the connector read everything, or rows are passed over",
                fault=False,
                code="SM-6103",
            )
        )
    if source.flavour == "mariadb" and variables.get("log_bin_compress", "").upper() == "ON":
        text = f"{LOST_ROWS}; {UNCOMPRESSED_BINLOG}"
        found.append(Finding(where, text, code="SM-6114"))
    if source.flavour == "mariadb" and variables.get("gtid_domain_id") == "0":
        found.append(
            Finding(
                where,
                "gtid_domain_id is 0, the default: a replica that shall take over must have "
                "another one (SET GLOBAL gtid_domain_id, before it takes its first write), or the "
                "connector cannot go on there",
                fault=False,
                code="SM-6110",
            )
        )
    if variables.get(_SHOWN_KEYS, "ON").upper() != "ON":
        found.append(
            Finding(
                where,
                f"{_SHOWN_KEYS} is OFF: the connector's snapshot and shardmerge do not see the "
                "invisible primary keys that the server generated, and the binlog's rows have one "
                "value more than such a table seems to have columns; SET GLOBAL it to ON",
                fault=False,
                code="SM-6116",
            )
        )
    if variables.get("server_id") == str(source.server_id):
        found.append(
            Finding(
                where,
                f"server_id {source.server_id} is the server's own: the connector, which reads as "
                "a replica, needs another one",
                code="SM-6104",
            )
        )
    real = variables.get("version", "")
    reading = ("sql_mode", "lower_case_table_names", "explicit_defaults_for_timestamp")
    differences = source_differences(source, real, *(variables.get(n, "") for n in reading))
    found += [Finding(where, str(each), fault=each.fault, code=each.code) for each in differences]
    charset = variables.get("character_set_server", "")
    if charset and _charset(charset) != _charset(source.charset):
        found.append(
            Finding(
                where,
                f"character_set_server is {charset}, the pipeline file says {source.charset}: "
                "columns of new databases would be read with the wrong charset",
                code="SM-6107",
            )
        )
    found += _collation_findings(where, source, server_facts(real, variables, {}))
    kept = _binlog_kept_s(variables)
    if kept is not None and kept < _DAY_S:
        found.append(
            Finding(
                where,
                f"its binlog is kept for {kept / 3600:.1f} hours: a connector that is away for "
                "longer needs a new snapshot",
                fault=False,
                code="SM-6108",
            )
        )
    return found


def database_findings(
    source: Source, charsets: Mapping[str, str], tables: Sequence[SourceTable], server: str
) -> list[Finding]:
    """Databases whose new tables would get a wrong charset.

    A snapshot describes only databases that have tables. For any other database Debezium, and so
    everything behind it, assumes the server's charset.

    Args:
        source: Whose databases.
        charsets: Captured database → its default charset.
        tables: The captured tables.
        server: ``character_set_server``.
    """
    described = {table.database for table in tables}
    return [
        Finding(
            f"source {source.name}",
            f"database {database} has no table, and its charset is {charset}, not the server's "
            f"{server}: rows of new tables would be read with the wrong charset; make a table in "
            "it first, or give it the server's charset",
            code="SM-6107",
        )
        for database, charset in sorted(charsets.items())
        if database not in described and _charset(charset) != _charset(server)
    ]


def shard_findings(
    sources: Sequence[Source],
    tables: Mapping[str, Sequence[SourceTable]],
    rules: Sequence[RoutingRule],
    *,
    needs_keys: bool = False,
) -> list[Finding]:
    """What is wrong with the shards that the routing rules find.

    Args:
        sources: Of the pipeline.
        tables: The tables of each source that its connector captures, by the source's name.
        rules: The routing rules.
        needs_keys: Whether the target finds a row by its primary key alone.
    """
    found = []
    row_topics = RowTopics(rules)
    topics: dict[str, ShardId] = {}
    routed: dict[str, int] = {}
    for source in sources:
        for table in tables.get(source.name, ()):
            shard = ShardId(source.name, table.database, table.table)
            targets = route(rules, shard)
            if not targets:
                continue
            routed[source.name] = routed.get(source.name, 0) + 1
            where = f"shard {shard}"
            if len(targets) > 1:
                names = ", ".join(map(str, targets))
                found.append(Finding(where, f"routing rules send it to {names}", code="SM-1109"))
            rule = rule_of(rules, shard)
            if rule is not None and (fault := rule.group_fault(shard)):
                found.append(Finding(where, f"it would be held: {fault}", code="SM-1114"))
            if row_topics.misses(shard):
                found.append(Finding(where, _missed(row_topics, shard), code="SM-6202"))
            other = topics.setdefault(row_topic(shard), shard)
            if other != shard and not row_topics.is_shared(shard):
                text = f"its row topic {row_topic(shard)} is that of {other} too: rename one"
                found.append(Finding(where, text, code="SM-6202"))
            if not table.has_key and needs_keys:
                found.append(
                    Finding(
                        where,
                        "it has no primary key, by which this kind of target finds a row: add one, "
                        "or leave the table out of the routes",
                        code="SM-6203",
                    )
                )
            elif not table.has_key and _refuses_keyless(rules, shard):
                found.append(
                    Finding(
                        where,
                        "it has no primary key, which its route asks for (keyless = 'refuse'): it "
                        "would be held; add one, or take such tables in with keyless = 'count'",
                        code="SM-6203",
                    )
                )
    found += [
        Finding(f"source {s.name}", "no table of it is routed", fault=False, code="SM-6201")
        for s in sources
        if s.name in tables and not routed.get(s.name)
    ]
    return found


def _refuses_keyless(rules: Sequence[RoutingRule], shard: ShardId) -> bool:
    rule = rule_of(rules, shard)
    return rule is not None and rule.policies.keyless is Keyless.REFUSE


def _missed(topics: RowTopics, shard: ShardId) -> str:
    return (
        f"its route expects its rows in topic {topics.topic_of(shard)}, but Debezium would write "
        "them to another topic: it matches the routes' expressions with the topic name "
        f"{row_topic(shard)}, not with the table's name. Write the routes that have a row_topic so "
        "that their expressions match topic names as they match table names"
    )


def target_findings(target: Target, variables: Mapping[str, str]) -> list[Finding]:
    """What is wrong with the target's server; arguments as for ``source_findings``."""
    where = "target"
    real = variables.get("version", "")
    differences = target_differences(target, real)
    found = [Finding(where, str(each), fault=each.fault, code=each.code) for each in differences]
    if variables.get("read_only", "OFF").upper() not in ("OFF", "0"):
        found.append(Finding(where, "it is read-only", code="SM-6301"))
    if variables.get("local_infile", "OFF").upper() not in ("ON", "1"):
        text = "local_infile is OFF: rows are written by INSERT, several times slower"
        found.append(Finding(where, text, fault=False, code="SM-6302"))
    if variables.get(_GENERATED_KEYS, "OFF").upper() == "ON":
        text = (
            f"{_GENERATED_KEYS} is ON: a target without a primary key gets a column my_row_id, and "
            "the server refuses the primary key that its shards get later; set it OFF"
        )
        found.append(Finding(where, text, fault=False, code="SM-6306"))
    packet = int(variables.get("max_allowed_packet", _MIN_PACKET))
    if packet < _MIN_PACKET:
        text = f"max_allowed_packet is {packet} bytes: longer rows are refused"
        found.append(Finding(where, text, fault=False, code="SM-6302"))
    return [*found, *_tidb_findings(where, server_facts(real, variables, {}))]


def _tidb_findings(where: str, facts: ServerFacts) -> list[Finding]:
    """Findings about a TiDB server; none about other servers.

    Its transaction mode and its default collation do not matter: the sink's sessions set theirs.
    """
    found = [
        Finding(where, f"{name} is ON: it is read-only", code="SM-6301")
        for name in ("tidb_super_read_only", "tidb_restricted_read_only")
        if facts.variable(name) in ("ON", "1")
    ]
    quota = int(facts.variable("tidb_mem_quota_query") or 0)
    if 0 < quota < _MIN_QUOTA:
        text = f"tidb_mem_quota_query is {quota} bytes: rows are written in smaller transactions"
        found.append(Finding(where, text, fault=False, code="SM-6302"))
    return found


def catalog_finding(catalog: SparkCatalog) -> Finding:
    """A warning about a target that is no server."""
    kind = dict(catalog.properties).get("type", "of its own class")
    return Finding(
        "target",
        f"catalog {catalog.name} ({kind}) was not checked, because that takes Spark: the sink says "
        "at its start whether it can use it",
        fault=False,
        code="SM-6304",
    )


def table_findings(facts: TargetFacts) -> list[Finding]:
    """What is wrong with a table that exists under a target's name."""
    where = f"target {facts.table}"
    found = []
    if facts.of_others:
        text = (
            "it exists, and this pipeline's sink has not made it: rows that are in it stay, "
            "whether a shard has them or not"
        )
        found.append(Finding(where, text, fault=False, code="SM-6305"))
    if facts.engine and facts.engine.upper() != "INNODB":
        found.append(
            Finding(
                where,
                f"its engine {facts.engine} has no transactions: ALTER … ENGINE=InnoDB",
                code="SM-6303",
            )
        )
    found += [
        Finding(
            where, f"trigger {name} runs for every row that is merged", fault=False, code="SM-6303"
        )
        for name in facts.triggers
    ]
    found += [
        Finding(
            where,
            f"foreign key {name}: rows of two tables come in no common order, so it would refuse "
            "some; drop it",
            code="SM-6303",
        )
        for name in facts.foreign_keys
    ]
    return found


def _collation_findings(where: str, source: Source, facts: ServerFacts) -> list[Finding]:
    """A warning if the server's default collation of utf8mb4 was changed.

    Statements do not tell it, so the default of the server's version is assumed.
    """
    told = dict(facts.default_collations).get("utf8mb4")
    server = ServerContext(source.flavour, version_numbers(source.version))
    taken = server.default_collation("utf8mb4")
    if told in (None, taken):
        return []
    return [
        Finding(
            where,
            f"utf8mb4 without a collation is {told} here, and is taken for {taken}, its version's "
            "default: write the collation in the DDL of tables that are merged, or set the "
            "server's default back",
            fault=False,
            code="SM-6107",
        )
    ]


def _charset(name: str) -> str:
    return "utf8mb3" if name.lower() == "utf8" else name.lower()


def _binlog_kept_s(variables: Mapping[str, str]) -> float | None:
    """For how long the server keeps its binlog, in seconds; None: without end, or not reported."""
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    days = float(variables.get("expire_logs_days") or 0)
    return seconds or days * _DAY_S or None
