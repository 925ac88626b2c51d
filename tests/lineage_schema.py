"""Holds OpenLineage events against the specification's JSON schemas, every facet included."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.protocols import Validator
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parent / "golden" / "openlineage"
_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json"


@cache
def _registry() -> Registry[Any]:
    schemas = [json.loads(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))]
    found = [(schema["$id"], Resource.from_contents(schema)) for schema in schemas]
    registry: Registry[Any] = Registry()
    return registry.with_resources(found)


@cache
def _validator(reference: str) -> Validator:
    schema = {"$ref": reference}
    return Draft202012Validator(schema, registry=_registry(), format_checker=FormatChecker())


def faults(event: Mapping[str, Any]) -> list[str]:
    """What is wrong with an event; empty for one that the specification allows.

    The specification allows any facet in an event. Which schema a facet has, it says itself.
    """
    found = [e.message for e in _validator(_EVENT).iter_errors(event)]
    if event.get("schemaURL") != f"{_EVENT}#/$defs/RunEvent":
        found.append(f"schemaURL is {event.get('schemaURL')}")
    for name, facet in facets(event):
        url = facet["_schemaURL"]
        found += [f"{name}: {e.message}" for e in _validator(url).iter_errors(facet)]
        # The file says under which name an event has the facet.
        document = _registry().contents(url.partition("#")[0])
        if name not in document["properties"]:
            found.append(f"no facet of {url} is named {name}")
    return found


def facets(event: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every facet of an event, with its name."""
    owners = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    for owner in owners:
        for kind in ("facets", "inputFacets", "outputFacets"):
            yield from owner.get(kind, {}).items()
