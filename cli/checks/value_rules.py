"""Which values of a source's tables arrive changed, judged by their columns. Pure.

The limits are in ``connectors.debezium.value_limits``; this module finds the shards that have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from shardmerge.connectors.debezium.unread_types import (
    COMPRESSED,
    NO_END,
    OTHER_TYPE,
    UNCOMPRESSED,
    UNVERSIONED,
    VERSIONED,
    Unread,
)
from shardmerge.connectors.debezium.value_limits import LIMITS, ValueLimit
from shardmerge.connectors.debezium.year_columns import COUNTS_YEARS, is_misread, may_misread
from shardmerge.schemas.lattice.left_out_columns import is_left_out
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule, route, rule_of
from shardmerge.schemas.pipeline.server_differences import version_numbers
from shardmerge.schemas.pipeline.settings import Source

from .findings import Finding, SourceColumn, SourceTable

_NO_ZERO_DATES = ("NO_ZERO_DATE", "NO_ZERO_IN_DATE")
_STRICT = {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"}
_INVALID = "ALLOW_INVALID_DATES"
_Concerns: TypeAlias = Callable[[SourceColumn], bool]


def value_findings(
    source: Source, sql_mode: str, tables: Sequence[SourceTable], rules: Sequence[RoutingRule]
) -> list[Finding]:
    """A warning for each limit that columns of the source's shards have.

    Args:
        source: Whose tables.
        sql_mode: Of its server.
        tables: The captured tables.
        rules: The routing rules.
    """
    modes = {mode.strip().upper() for mode in sql_mode.split(",")}
    lacking = [mode for mode in _NO_ZERO_DATES if mode not in modes]
    # Without a strict mode, the other modes only warn.
    if not modes & _STRICT:
        lacking.append("STRICT_TRANS_TABLES")
    where = f"source {source.name}"
    found = []
    for limit in LIMITS:
        if limit.flavour not in ("", source.flavour) or (limit.zero_dates and not lacking):
            continue
        shards = _shards(source, tables, rules, partial(_has, limit))
        if shards:
            mode = f"sql_mode lacks {', '.join(lacking)}: " if limit.zero_dates else ""
            text = f"{mode}{limit.sentence} (shards {_some(shards)})"
            found.append(Finding(where, text, fault=False, code="SM-6109"))
    return [*found, *_stopping(source, modes, tables, rules)]


def _stopping(
    source: Source, modes: set[str], tables: Sequence[SourceTable], rules: Sequence[RoutingRule]
) -> Iterator[Finding]:
    """Values that stop the connector.

    Source: Debezium 3.6.1 with Connector/J 9.1. Measured for DECIMAL ZEROFILL, which ends in
    NegativeArraySizeException. For invalid dates read in the source code: DateTimeException.
    """
    where = f"source {source.name}"
    padded = _shards(source, tables, rules, lambda c: c.type.name == "decimal" and c.type.zerofill)
    if padded:
        yield Finding(
            where,
            "DECIMAL ZEROFILL: MySQL's driver cannot read it, and a snapshot fails there; leave "
            f"ZEROFILL out (shards {_some(padded)})",
            code="SM-6109",
        )
    dated = _shards(source, tables, rules, lambda c: c.type.name in ("date", "datetime"))
    if _INVALID in modes and dated:
        yield Finding(
            where,
            f"sql_mode has {_INVALID}: at a date such as 2026-02-31 the connector stops (shards "
            f"{_some(dated)})",
            fault=False,
            code="SM-6109",
        )


def _has(limit: ValueLimit, column: SourceColumn) -> bool:
    return limit.concerns(column.type, column.nullable)


def _shards(
    source: Source,
    tables: Sequence[SourceTable],
    rules: Sequence[RoutingRule],
    concerns: _Concerns,
) -> list[str]:
    """The routed tables that have such a column."""
    found = []
    for table in tables:
        shard = ShardId(source.name, table.database, table.table)
        if route(rules, shard):
            rule = rule_of(rules, shard)
            left_out = rule.leave_out if rule is not None else ""
            merged = (c for c in table.columns if not is_left_out(c.name, left_out))
            if any(map(concerns, merged)):
                found.append(str(shard))
    return found


def year_findings(
    source: Source, version: str, types: Mapping[tuple[str, str], Sequence[str]]
) -> list[Finding]:
    """Whether a source has tables whose rows stop its connector, if its workers lack our jar.

    Args:
        source: Whose server.
        version: What the server says of itself.
        types: The types of the columns of every table of the server, captured or not, by database
            and table.
    """
    if not may_misread(source.flavour, version_numbers(version)):
        return []
    tables = [".".join(key) for key, names in sorted(types.items()) if is_misread(names)]
    if not tables:
        return []
    known = ".".join(map(str, COUNTS_YEARS))
    return [
        Finding(
            f"source {source.name}",
            f"a row of {_some(tables)} would stop its connector, even where the table is not "
            f"captured: Debezium by itself misreads what MySQL before {known} writes about tables "
            "with YEAR and so many numeric columns (EOFException at a TABLE_MAP); the jar of exact "
            "values reads it: put it beside Debezium's connector on every worker, or make the "
            "YEAR column a SMALLINT",
            fault=False,
            code="SM-6109",
        )
    ]


def unread_findings(source: Source, unread: Unread) -> list[Finding]:
    """The tables of a source that stop its connector, or its first snapshot."""
    found = []
    if unread.columns:
        later = "and rows of later tables are held"
        found.append(f"{_some(unread.columns)}: {NO_END}, {later}; {OTHER_TYPE}")
    if unread.versioned:
        found.append(f"{_some(unread.versioned)} {VERSIONED}; {UNVERSIONED}")
    if unread.compressed:
        found.append(f"{_some(unread.compressed)} {COMPRESSED}; {UNCOMPRESSED}")
    return [Finding(f"source {source.name}", text, code="SM-6109") for text in found]


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
