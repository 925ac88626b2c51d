"""A pipeline as the text of a pipeline file: ``parse_pipeline`` reads the same value back."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from shardmerge.schemas.model.policies import RoutePolicies

from .connector_properties import KEY
from .lineage.open_lineage import OpenLineage
from .routing import RoutingRule
from .settings import Pipeline, Target
from .tls import Tls
from .web import Web


def pipeline_text(pipeline: Pipeline) -> str:
    """A pipeline as TOML. Defaults are written too, so that the file shows every setting."""
    blocks = [
        _block("[pipeline]", {"name": pipeline.name}),
        _block("[kafka]", _values(pipeline.kafka)),
        _block("[connect]", _values(pipeline.connect)),
        *(_block("[[sources]]", _values(source)) for source in pipeline.sources),
        *(_block("[[routes]]", _rule(rule)) for rule in pipeline.routes),
        *_target(pipeline.target),
        _block("[sink]", _values(pipeline.sink)),
        *_web(pipeline.web),
        *_lineage(pipeline.lineage),
    ]
    return "\n".join(blocks)


def _target(target: Target) -> list[str]:
    values = _values(target)
    catalog = values.pop("catalog")
    if catalog is None:
        return [_block("[target]", values)]
    for nowhere in ("host", "port", "user", "password", "tls"):
        values.pop(nowhere, None)
    properties = {f'"{key}"': value for key, value in catalog.properties}
    named = _block("[target.catalog]", {"name": catalog.name, **properties})
    return [_block("[target]", values), named]


def _web(web: Web) -> list[str]:
    """The keys whose values are not the defaults: most keys go with one kind of access only."""
    defaults = _values(Web())
    found = {name: value for name, value in _values(web).items() if value != defaults[name]}
    if "tokens" in found:
        found["tokens"] = dict(web.tokens)
    return [_block("[web]", found)] if found else []


def _lineage(lineage: OpenLineage) -> list[str]:
    """The keys whose values are not the defaults: most keys go with one transport only."""
    defaults = _values(OpenLineage())
    found = {name: value for name, value in _values(lineage).items() if value != defaults[name]}
    return [_block("[lineage]", found)] if found else []


def _rule(rule: RoutingRule) -> dict[str, Any]:
    return {
        "source": rule.source,
        "database": rule.database,
        "table": rule.table,
        "target": f"{rule.target_database}.{rule.target_table}",
        "skip": rule.skip,
        "where": rule.where,
        "leave_out": rule.leave_out,
        "on_truncate": rule.on_truncate,
        "ignore": list(rule.ignore),
        **_policies(rule.policies),
        "row_topic": rule.row_topic,
    }


def _policies(policies: RoutePolicies) -> dict[str, Any]:
    columns = policies.origin.columns
    origin: dict[str, Any] = {c.part.value: c.name for c in columns if not c.group}
    if groups := {c.group: {"name": c.name, "type": c.type} for c in columns if c.group}:
        origin["groups"] = groups
    if policies.origin.in_keys:
        origin["in_keys"] = True
    return _values(policies) | {"origin": origin}


def _values(record: Any) -> dict[str, Any]:
    found = {field.name: getattr(record, field.name) for field in fields(record)}
    for name in (KEY, "client"):
        if name in found:
            found[name] = dict(found[name])
    if found.get("client") == {}:
        del found["client"]
    for name in ("tls", "schema_registry_tls"):
        if found.get(name) == Tls():
            del found[name]
    return found


def _block(head: str, values: dict[str, Any]) -> str:
    lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
    return "\n".join([head, *lines, ""])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Tls):
        return _toml({name: text for name, text in _values(value).items() if text})
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        parts = (f"{_key(name)} = {_toml(item)}" for name, item in value.items())
        return "{" + ", ".join(parts) + "}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
