"""A table's columns, read from and written to Iceberg's JSON form of a schema. Pure.

A column is identified by its id. A renamed column keeps its id, and the id of a dropped column is
never used again. So older data files need no rewrite.

Source: Iceberg specification, "Schemas and Data Types", "Appendix C: JSON serialization".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.target.dialects.spark_types import can_widen

_OF_SPARK = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_OF_ICEBERG = {iceberg: spark for spark, iceberg in _OF_SPARK.items()}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)\Z")


@dataclass(frozen=True, slots=True)
class Field:
    """One column.

    Attributes:
        id: Given to one column only, never again.
        type: Iceberg's name of a primitive type; the JSON text of any other type.
        doc: The column's comment, "" without one.
        rest: All other entries of the JSON form, such as defaults in later formats.
    """

    id: int
    name: str
    type: str
    required: bool = False
    doc: str = ""
    rest: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.type}{' NOT NULL' if self.required else ''}"


@dataclass(frozen=True, slots=True)
class Layout:
    """A table's columns.

    Attributes:
        last_id: The highest id that was ever given.
        identifiers: Ids of the table's identifier fields.
    """

    fields: tuple[Field, ...]
    last_id: int
    identifiers: tuple[int, ...] = ()

    def field(self, name: str) -> Field | None:
        """The column of that name; as in Spark, case does not matter. None without one."""
        return next((f for f in self.fields if f.name.lower() == name.lower()), None)


def iceberg_type(spark: str) -> str:
    """Spark's name of a primitive type → Iceberg's."""
    if found := _DECIMAL.match(spark):
        return f"decimal({found[1]}, {found[2]})"
    return _OF_SPARK.get(spark, spark)


def spark_name(iceberg: str) -> str:
    """Iceberg's name of a type → Spark's, for primitive types; other types keep their text."""
    if found := _DECIMAL.match(iceberg):
        return f"decimal({found[1]},{found[2]})"
    return _OF_ICEBERG.get(iceberg, iceberg)


def layout_of(schema: str, last_id: int) -> Layout:
    """Iceberg's JSON of a schema → layout."""
    document = json.loads(schema)
    return Layout(
        tuple(map(_field, document["fields"])),
        last_id,
        tuple(document.get("identifier-field-ids", ())),
    )


def _field(entry: Mapping[str, Any]) -> Field:
    kind = entry["type"]
    known = ("id", "name", "type", "required", "doc")
    return Field(
        entry["id"],
        entry["name"],
        kind if isinstance(kind, str) else json.dumps(kind),
        entry["required"],
        entry.get("doc", ""),
        tuple((key, value) for key, value in entry.items() if key not in known),
    )


def schema_json(layout: Layout) -> str:
    """Layout → Iceberg's JSON of a schema."""
    return json.dumps(
        {
            "type": "struct",
            "schema-id": 0,
            "identifier-field-ids": list(layout.identifiers),
            "fields": [
                {
                    "id": f.id,
                    "name": f.name,
                    "required": f.required,
                    "type": json.loads(f.type) if f.type.startswith("{") else f.type,
                    **({"doc": f.doc} if f.doc else {}),
                    **dict(f.rest),
                }
                for f in layout.fields
            ],
        }
    )


def difference(expected: Layout, real: Layout) -> str:
    """The first differences between two layouts, for people; "" when there are none."""
    names = dict.fromkeys(f.name for f in (*expected.fields, *real.fields))
    wanted = {f.name: f for f in expected.fields}
    found = {f.name: f for f in real.fields}
    parts = [
        f"column {name}: expected {wanted.get(name)}, found {found.get(name)}"
        for name in names
        if str(wanted.get(name)) != str(found.get(name))
    ]
    return "; ".join(parts[:3])


def misfit(wanted: Layout, there: Layout) -> str:
    """Why an existing table does not accept every row of the wanted one; "" if it does."""
    for field in wanted.fields:
        real = there.field(field.name)
        if real is None:
            return f"it has no column {field.name}"
        if real.type != field.type and not can_widen(field.type, real.type):
            return f"column {field.name}: expected {field.type}, found {real.type}"
        if real.required and not field.required:
            return f"column {field.name} is NOT NULL"
    names = {f.name.lower() for f in wanted.fields}
    for real in there.fields:
        if real.required and real.name.lower() not in names:
            return f"its column {real.name} is NOT NULL, and no row has it"
    return ""
