"""A target's route in the text of a pipeline file. Pure."""

from __future__ import annotations

from typing import Any

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import Origin, OriginPart


def with_where(text: str, target: TargetTable, where: str) -> str:
    """The text of a pipeline file with another condition in the route of a target.

    Everything else stays as it is written, comments included.

    Args:
        text: Of the file.
        target: The target.
        where: The condition; "" for all rows.

    Raises:
        ConfigError: The text has not one route to this target.
    """
    document, found = _route(text, target, line_of(where), "SM-6522")
    if where:
        found["where"] = where
    else:
        found.pop("where", None)
    return tomlkit.dumps(document)


def with_origin(text: str, target: TargetTable, origin: Origin) -> str:
    """The text of a pipeline file with other origin columns in the route of a target.

    Args:
        text: Of the file.
        target: The target.
        origin: The origin columns.

    Raises:
        ConfigError: The text has not one route to this target.
    """
    document, found = _route(text, target, origin_line(origin), "SM-6528")
    written = found.get("origin", {})
    if written == _plain(origin):
        return text
    found.pop("origin", None)
    if origin.columns:
        found["origin"] = _inline(_plain(origin))
    return tomlkit.dumps(document)


def with_origin_of(text: str, target: TargetTable, value: str) -> str:
    """As ``with_origin``; the columns are given as TOML.

    Args:
        text: Of the file.
        target: The target.
        value: What stands behind ``origin =`` in a pipeline file; "" for no origin columns.

    Raises:
        ConfigError: The value is no TOML, or the text has not one route to this target.
    """
    try:
        given = tomlkit.parse(f"origin = {value}").unwrap() if value else {}
    except TOMLKitError as error:
        raise ConfigError(f"--with origin: {error}", code="SM-5001") from None
    document, found = _route(text, target, f"origin = {value}", "SM-6528")
    found.pop("origin", None)
    if given:
        told = given["origin"]
        found["origin"] = _inline(told) if isinstance(told, dict) else told
    return tomlkit.dumps(document)


def _route(text: str, target: TargetTable, line: str, code: str) -> tuple[TOMLDocument, Any]:
    """The document, and the one table of a route to the target.

    Args:
        text: Of the file.
        target: The target.
        line: What to write by hand if that is not possible here.
        code: Of the error.

    Raises:
        ConfigError: The text has not one such table.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"the pipeline file cannot be read: {error}", code="SM-5001") from None
    found = [table for table in document.get("routes", ()) if table.get("target") == str(target)]
    if len(found) != 1:
        raise ConfigError(
            f"the pipeline file has {len(found)} tables [[routes]] with target {str(target)!r}",
            hint=f"write into the route of {target}: {line}",
            code=code,
        )
    return document, found[0]


def line_of(where: str) -> str:
    """The condition as a line of the file."""
    return f"where = {tomlkit.item(where).as_string()}"


def origin_line(origin: Origin) -> str:
    """Origin columns as a line of the file."""
    return f"origin = {_inline(_plain(origin)).as_string()}"


def _plain(origin: Origin) -> dict[str, Any]:
    """Origin columns as a route writes them."""
    written: dict[str, Any] = {}
    for column in origin.columns:
        if column.part is OriginPart.GROUP:
            groups = written.setdefault("groups", {})
            groups[column.group] = {"name": column.name, "type": column.type}
        else:
            written[column.part.value] = column.name
    return {**written, "in_keys": True} if origin.in_keys else written


def _inline(value: dict[str, Any]) -> InlineTable:
    made = tomlkit.inline_table()
    for name, each in value.items():
        made[name] = _inline(each) if isinstance(each, dict) else each
    return made
