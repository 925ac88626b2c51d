"""The Spark catalog of Iceberg targets: the pipeline file's table ``[target.catalog]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.model.errors import ConfigError

_WHERE = "[target.catalog]"


@dataclass(frozen=True, slots=True)
class SparkCatalog:
    """A catalog of Iceberg tables.

    Attributes:
        name: First part of the tables' names in Spark: ``name.database.table``.
        properties: Pairs of key and value, sorted; each is a Spark setting
            ``spark.sql.catalog.<name>.<key>``. The value of one with
            ``secret``, ``password``, ``token``, ``credential`` or ``access-key`` in its name may be
            ``env:NAME`` or ``file:PATH``.

    Source: Iceberg documentation, "Spark Configuration", "Catalog configuration".
    """

    name: str
    properties: tuple[tuple[str, str], ...]


def parse_catalog(entry: object) -> SparkCatalog:
    """Read the table ``[target.catalog]``.

    Raises:
        ConfigError: The table is missing, or a key is missing or has a wrong type.
    """
    if not isinstance(entry, Mapping):
        raise ConfigError(
            f"pipeline file: table {_WHERE} is missing, kind 'iceberg' needs it",
            hint='for example: type = "hadoop", warehouse = "/data/warehouse"',
            code="SM-5003",
        )
    name = entry.get("name", "lake")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ConfigError(
            f"{_WHERE}: name must be letters, digits or '_', not {name!r}", code="SM-5004"
        )
    properties = {key: _text(key, value) for key, value in entry.items() if key != "name"}
    if "type" not in properties and "catalog-impl" not in properties:
        raise ConfigError(
            f"{_WHERE}: key 'type' is missing",
            hint="hadoop, hive, rest, jdbc, glue or nessie",
            code="SM-5003",
        )
    if properties.get("type") == "hadoop" and not properties.get("warehouse"):
        raise ConfigError(
            f"{_WHERE}: key 'warehouse' is missing",
            hint="where the tables' files go",
            code="SM-5003",
        )
    return SparkCatalog(name, tuple(sorted(properties.items())))


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    hint = f'write a key with dots in quotes: "{key}.…" = "…"' if isinstance(value, dict) else ""
    raise ConfigError(f"{_WHERE}: {key} must be a text, not {value!r}", hint=hint, code="SM-5004")
