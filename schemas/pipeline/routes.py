"""The ``[[routes]]`` entries of the pipeline file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.mysql_facts import MAX_NAME_CHARACTERS
from shardmerge.schemas.model.origin import (
    DEFAULT_GROUP_TYPE,
    Origin,
    OriginColumn,
    OriginPart,
    group_type,
)
from shardmerge.schemas.model.policies import (
    CHOICES,
    DEFAULT_POLICIES,
    ExistingRows,
    Keyless,
    Mode,
    RoutePolicies,
    RowOperation,
    RowsPolicy,
)

from .routing import TOOLS_TABLES, RoutingRule
from .row_conditions import check_condition

E = TypeVar("E", bound=StrEnum)

_REQUIRED = ("database", "table", "target")
_KEYS = (
    "source", *_REQUIRED, "skip", "where", "leave_out", "on_truncate", "ignore", "row_topic",
    *(field.name for field in fields(RoutePolicies)),
)  # fmt: skip
_IN_KEYS = "in_keys"
_GROUPS = "groups"
_ROW_LIFE = (RowOperation.INSERT, RowOperation.UPDATE, RowOperation.DELETE)
_MAX_TOPIC = 249
"""Kafka's limit for the characters of a topic's name."""


def routing_rule(entry: Mapping[str, Any], where: str, mode: Mode) -> RoutingRule:
    """Read one entry.

    Args:
        entry: A table of the pipeline file.
        where: How error messages name the entry.
        mode: The pipeline's mode, for a route that has none of its own.

    Raises:
        ConfigError: A key is unknown, missing or of the wrong type.
    """
    check_keys(entry, _KEYS, where)
    for key in _REQUIRED:
        if key not in entry:
            raise ConfigError(f"{where}: {key} is missing", code="SM-5003")
    target = _text(entry, "target", "", where)
    if target.count(".") != 1:
        raise ConfigError(
            f"{where}: target must be 'database.table', not {target!r}", code="SM-5004"
        )
    database, table = target.split(".")
    ignored = _ignored(entry, where)
    default = RowsPolicy.KEEP if RowOperation.TRUNCATE in ignored else RowsPolicy.DELETE
    rule = RoutingRule(
        source=_text(entry, "source", ".*", where),
        database=_text(entry, "database", "", where),
        table=_text(entry, "table", "", where),
        target_database=database,
        target_table=table,
        skip=_text(entry, "skip", TOOLS_TABLES, where),
        where=_condition(entry, where),
        leave_out=_text(entry, "leave_out", "", where),
        on_truncate=one_of(RowsPolicy, "on_truncate", entry.get("on_truncate", default), where),
        ignore=ignored,
        policies=_policies(entry, where, mode),
        row_topic=_row_topic(entry, target, where),
    )
    for column in rule.policies.origin.columns:
        if column.group and column.group not in rule.groups:
            raise ConfigError(
                f"{where} origin: no expression of the route has the group {column.group!r}",
                hint=f"write (?P<{column.group}>…) in source, database or table",
                code="SM-5305",
            )
    return rule


def _ignored(entry: Mapping[str, Any], where: str) -> tuple[RowOperation, ...]:
    """The operations that a route ignores, each once, in the order of ``RowOperation``."""
    words = entry.get("ignore", [])
    if not isinstance(words, list):
        raise ConfigError(
            f"{where}: ignore must be a list, not {words!r}",
            hint=f"a list of {', '.join(RowOperation)}",
            code="SM-5004",
        )
    found = {one_of(RowOperation, "ignore", word, where) for word in words}
    if RowOperation.TRUNCATE in found and entry.get("on_truncate") == RowsPolicy.DELETE:
        raise ConfigError(
            f"{where}: on_truncate = 'delete' and ignore = ['truncate'] contradict each other",
            hint="leave one of them out",
            code="SM-5308",
        )
    again = found & {RowOperation.INSERT, RowOperation.UPDATE}
    if again and entry.get("existing_rows", ExistingRows.REREAD) == ExistingRows.REREAD:
        raise ConfigError(
            f"{where}: ignore names {min(again)}, and existing_rows = 'reread' lets a table be "
            "read again: that would bring the rows as the ignored operations left them",
            hint="existing_rows = 'accept', or 'hold' to decide each time",
            code="SM-5308",
        )
    _check_keyless(found, entry, where)
    return tuple(operation for operation in RowOperation if operation in found)


def _check_keyless(found: set[RowOperation], entry: Mapping[str, Any], where: str) -> None:
    """Raise when rows without a key would have to be removed that were never added."""
    if entry.get("keyless", Keyless.COUNT) != Keyless.COUNT:
        return
    for ignored, *later in (_ROW_LIFE, _ROW_LIFE[1:]):
        if ignored in found and (missing := [o for o in later if o not in found]):
            raise ConfigError(
                f"{where}: ignore names {ignored} and not {missing[0]}: of a table without a "
                f"primary key the {missing[0]} could not be followed, since it names the row as "
                f"the {ignored} left it",
                hint=f"add {missing[0]!r} to ignore, or keyless = 'refuse'",
                code="SM-5308",
            )


def _policies(entry: Mapping[str, Any], where: str, mode: Mode) -> RoutePolicies:
    of_pipeline = replace(DEFAULT_POLICIES, mode=mode)
    chosen: dict[str, Any] = {
        name: one_of(kind, name, entry.get(name, getattr(of_pipeline, name)), where)
        for name, kind in CHOICES.items()
    }
    policies = RoutePolicies(**chosen, origin=_origin(entry.get("origin", {}), f"{where} origin"))
    if policies.on_drop is RowsPolicy.DELETE and not policies.origin.tells_shards_apart:
        raise ConfigError(
            f"{where}: on_drop = 'delete' needs origin columns that tell every shard from every "
            "other",
            hint="origin = { shard = 'a_name' }, or source, database and table, all three",
            code="SM-5304",
        )
    if policies.keyless is Keyless.REFUSE and policies.origin.position is not None:
        raise ConfigError(
            f"{where}: origin's position is the key of rows without a primary key, and "
            "keyless = 'refuse' lets no such row in",
            hint="leave one of them out",
            code="SM-5304",
        )
    return policies


def check_routes(rules: Sequence[RoutingRule]) -> None:
    """Raise ``ConfigError`` when routes of one target, or one topic, contradict each other."""
    known: dict[tuple[str, str], RoutingRule] = {}
    topics: dict[str, tuple[str, str]] = {}
    for rule in rules:
        target = (rule.target_database, rule.target_table)
        if any("\\g<" in name for name in target):
            continue  # a template: its targets are known only from the shards' names
        if rule.row_topic and (other := topics.setdefault(rule.row_topic, target)) != target:
            raise ConfigError(
                f"[[routes]]: row_topic {rule.row_topic!r} is that of {'.'.join(other)} and of "
                f"{'.'.join(target)}",
                hint="a topic of several shards holds the rows of one target",
                code="SM-5303",
            )
        first, here = known.setdefault(target, rule).policies, rule.policies
        if first.mode is not here.mode:
            raise ConfigError(
                f"[[routes]]: {'.'.join(target)} has two modes",
                hint="write the same mode in all routes to the target",
                code="SM-5306",
            )
        if first.types is not here.types:
            raise ConfigError(
                f"[[routes]]: {'.'.join(target)} has two values of types",
                hint="write the same value of types in all routes to the target",
                code="SM-5306",
            )
        if first.origin != here.origin:
            raise ConfigError(
                f"[[routes]]: {'.'.join(target)} has two origins: {first.origin}; {here.origin}",
                hint="write the same origin in all routes to the target",
                code="SM-5306",
            )


def one_of(kind: type[E], key: str, value: object, where: str) -> E:
    """The enum member with this value; raises ``ConfigError`` when there is none."""
    if not isinstance(value, str) or value not in tuple(kind):
        raise ConfigError(
            f"{where}: {key} {value!r} is not known",
            hint=f"known: {', '.join(kind)}",
            code="SM-5005",
        )
    return kind(value)


def _condition(entry: Mapping[str, Any], where: str) -> str:
    text = _text(entry, "where", "", where)
    if text:
        check_condition(text, where)
    return text


def _row_topic(entry: Mapping[str, Any], target: str, where: str) -> str:
    name = _text(entry, "row_topic", "", where)
    if not name:
        return ""
    if "\\g<" in name:
        raise ConfigError(
            f"{where}: row_topic {name!r} has a reference to a group, and is one topic",
            hint="write a route, with a topic, for each of these topics",
            code="SM-5303",
        )
    if not re.fullmatch(r"(?!__)[A-Za-z0-9._-]+", name) or len(name) > _MAX_TOPIC:
        raise ConfigError(
            f"{where}: row_topic must be letters, digits, '.', '_' or '-', {_MAX_TOPIC} at most, "
            f"and not begin with '__', not {name!r}",
            code="SM-5004",
        )
    if "\\g<" in target:
        raise ConfigError(
            f"{where}: row_topic is one topic, and target {target!r} stands for many",
            hint="write a route, with a topic, for each of these targets",
            code="SM-5303",
        )
    return name


def _origin(entry: object, where: str) -> Origin:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} must be a table, not {entry!r}", code="SM-5004")
    parts = [part for part in OriginPart if part is not OriginPart.GROUP]
    check_keys(entry, (*parts, _GROUPS, _IN_KEYS), where)
    in_keys = entry.get(_IN_KEYS, False)
    if not isinstance(in_keys, bool):
        raise ConfigError(
            f"{where}: {_IN_KEYS} must be true or false, not {in_keys!r}", code="SM-5004"
        )
    columns = []
    for key in entry:
        if key == _IN_KEYS:
            continue
        if key == _GROUPS:
            columns += _group_columns(entry[key], f"{where} {_GROUPS}")
            continue
        name = _text(entry, key, "", where)
        if not 0 < len(name) <= MAX_NAME_CHARACTERS:
            raise ConfigError(f"{where}: {key} must name a column, not {name!r}", code="SM-5004")
        columns.append(OriginColumn(OriginPart(key), name))
    if len({column.name.lower() for column in columns}) < len(columns):
        raise ConfigError(f"{where}: two columns have the same name", code="SM-5305")
    origin = Origin(tuple(columns), in_keys)
    if in_keys and not origin.of_shard:
        raise ConfigError(
            f"{where}: {_IN_KEYS} without a column that names the shard", code="SM-5305"
        )
    return origin


def _group_columns(entry: object, where: str) -> list[OriginColumn]:
    """The origin columns of groups: group → name, or name and type."""
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} must be a table, not {entry!r}", code="SM-5004")
    found = []
    for group, told in entry.items():
        column = {"name": told} if isinstance(told, str) else told
        if not isinstance(column, dict):
            raise ConfigError(f"{where}: {group} must name a column, not {told!r}", code="SM-5004")
        check_keys(column, ("name", "type"), f"{where} {group}")
        name = _text(column, "name", "", f"{where} {group}")
        if not 0 < len(name) <= MAX_NAME_CHARACTERS:
            raise ConfigError(f"{where}: {group} must name a column, not {name!r}", code="SM-5004")
        kind = _text(column, "type", DEFAULT_GROUP_TYPE, f"{where} {group}").strip().lower()
        try:
            group_type(kind)
        except ValueError as error:
            raise ConfigError(f"{where}: the type of {group}: {error}", code="SM-5004") from None
        found.append(OriginColumn(OriginPart.GROUP, name, group, kind))
    return found


def check_keys(entry: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raise ``ConfigError`` when a table of the pipeline file has a key that is not known."""
    if unknown := sorted(set(entry) - set(known)):
        raise ConfigError(
            f"{where}: unknown key {unknown[0]!r}",
            hint=f"known: {', '.join(known)}",
            code="SM-5002",
        )


def _text(entry: Mapping[str, Any], key: str, default: str, where: str) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {key} must be of type str, not {value!r}", code="SM-5004")
    return value
