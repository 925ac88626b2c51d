"""Makes the OpenAPI document of ``/api`` from the classes of the answers. Pure."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin

from shardmerge.schemas.pipeline.given_commands import KINDS
from shardmerge.schemas.pipeline.web import TOKEN
from shardmerge.schemas.records.plain_fields import alternatives, plain_fields

from .change_answers import ChangesAnswer
from .command_answers import CommandCall, CommandsAnswer, GivenAnswer
from .matrix_answers import MatrixAnswer
from .plain import (
    ErrorAnswer,
    HealthAnswer,
    HoldsAnswer,
    StatusAnswer,
    TargetAnswer,
)

_ATTRIBUTE = re.compile(r"^ {4}([\w, ]+): ", re.MULTILINE)
_NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "A target, as database.table.",
    "schema": {"type": "string", "minLength": 1},
}
_SEARCH = {
    "name": "search",
    "in": "query",
    "description": "Finds only shards whose name contains this text, in upper or lower case.",
    "schema": {"type": "string"},
}
_COLUMNS = {
    "name": "columns",
    "in": "query",
    "description": "`all`: also columns that every shard has as the target does.",
    "schema": {"type": "string", "enum": ["all"]},
}
_PAGE = {
    "name": "page",
    "in": "query",
    "description": "Number of the page. A number beyond the last gives the last.",
    "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
}
_SHARD = {
    "name": "shard",
    "in": "query",
    "description": "The shard to list ways out for, as source/database.table.",
    "schema": {"type": "string"},
}


def document(version: str, access: str = TOKEN) -> dict[str, Any]:
    """The document.

    Args:
        version: The version of shardmerge.
        access: ``commands`` of the table ``[web]``; only with ``token`` calls need a token.
    """
    schemas = _Schemas()
    missing = {"404": schemas.answer(ErrorAnswer, "No decision names this target.")}
    refused = {"400": schemas.answer(ErrorAnswer, "A parameter has a wrong value.")}
    unread = {"503": schemas.answer(ErrorAnswer, "Kafka does not answer.")}
    paths: dict[str, Any] = {
        "/api/status": _get("All targets", (), schemas.good(StatusAnswer)),
        "/api/target/{name}": _get(
            "One target, with its last 500 decisions",
            (_NAME,),
            schemas.good(TargetAnswer) | missing,
        ),
        "/api/target/{name}/matrix": _get(
            "Which shard has which column",
            (_NAME, _SEARCH, _COLUMNS, _PAGE),
            schemas.good(MatrixAnswer) | missing | refused,
        ),
        "/api/target/{name}/changes": _get(
            "How far each shard is with each change, and with the target's statements for it",
            (_NAME, _SEARCH, _PAGE),
            schemas.good(ChangesAnswer) | missing | refused,
        ),
        "/api/target/{name}/holds": _get(
            "Why shards are held or paused, with both sides and the ways out",
            (_NAME, _SHARD),
            schemas.good(HoldsAnswer) | missing | unread,
        ),
        "/api/target/{name}/commands": _get(
            "The commands that were given to a target, with the agents' answers",
            (_NAME,),
            schemas.good(CommandsAnswer) | missing,
        )
        | _command(schemas, missing, needs_token=access == TOKEN),
        "/healthz": _get(
            "Whether the worker's agents consume",
            (),
            schemas.good(HealthAnswer)
            | {"503": schemas.answer(HealthAnswer, "The agents do not consume.")},
        ),
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "shardmerge agents",
            "version": version,
            "description": "What a worker of the agents knows about the pipeline, and a command to "
            "its targets. The table [web] of the pipeline file says who may give commands. Only "
            "the call that gives a command may need a token.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.known.items())),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of [web.tokens].",
                }
            },
        },
    }


def _command(schemas: _Schemas, missing: dict[str, Any], *, needs_token: bool) -> dict[str, Any]:
    reasons = {
        "400": "The body is no command.",
        "401": "The call has no token, or one that nobody has.",
        "403": "Nobody may give commands, or this user may not.",
        "409": "The agents would refuse the command, so it was not given.",
        "415": "The body is not sent as application/json.",
        "429": "The address sent too many wrong tokens.",
        "503": "Kafka does not answer.",
    }
    refused = {status: schemas.answer(ErrorAnswer, why) for status, why in reasons.items()}
    given = {"202": schemas.answer(GivenAnswer, "The command was given. Its answer comes later.")}
    body = schemas.of(CommandCall)
    known = schemas.known["CommandCall"]
    known["required"] = ["kind"]
    known["additionalProperties"] = False
    known["properties"]["kind"]["enum"] = [kind.value for kind in KINDS]
    return {
        "post": {
            "summary": "Give a command, or ask what the agents would answer",
            "parameters": [_NAME],
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": schemas.good(GivenAnswer) | given | missing | refused,
        }
        | ({"security": [{"token": []}]} if needs_token else {})
    }


def _get(summary: str, parameters: tuple[Any, ...], responses: dict[str, Any]) -> dict[str, Any]:
    return {"get": {"summary": summary, "parameters": list(parameters), "responses": responses}}


class _Schemas:
    """JSON schemas of the plain forms of classes."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}

    def good(self, cls: type) -> dict[str, Any]:
        return {"200": self.answer(cls, _first(cls))}

    def answer(self, cls: type, description: str) -> dict[str, Any]:
        content = {"application/json": {"schema": self.of(cls)}}
        return {"description": description, "content": content}

    def of(self, kind: Any) -> dict[str, Any]:
        if records := alternatives(kind):
            return {"anyOf": [self._named(each) for each in records]}
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            (member,) = [m for m in get_args(kind) if m is not type(None)]
            return {"anyOf": [self.of(member), {"type": "null"}]}
        if origin is tuple:
            first, *rest = get_args(kind)
            if rest == [Ellipsis]:
                return {"type": "array", "items": self.of(first)}
            items = [self.of(each) for each in (first, *rest)]
            size = len(items)
            return {"type": "array", "prefixItems": items, "minItems": size, "maxItems": size}
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(get_args(kind)[1])}
        if is_dataclass(kind):
            assert isinstance(kind, type)
            return self._record(kind)
        if issubclass(kind, Enum):
            return {"type": "string", "enum": [each.value for each in kind]}
        return {"type": {str: "string", int: "integer", bool: "boolean"}[kind]}

    def _named(self, cls: type) -> dict[str, Any]:
        name = cls.__name__
        return {"type": "object", "required": [name], "properties": {name: self.of(cls)}}

    def _record(self, cls: type) -> dict[str, Any]:
        name = cls.__name__
        if name not in self.known:
            self.known[name] = {}  # a record may hold itself
            meanings = _meanings(cls)
            properties = {}
            for field in plain_fields(cls):
                meaning = meanings.get(field.name)
                told = {"description": meaning} if meaning else {}
                properties[field.name] = self.of(field.kind) | told
            self.known[name] = {
                "type": "object",
                "description": _first(cls),
                "required": list(properties),
                "properties": properties,
            }
        return {"$ref": f"#/components/schemas/{name}"}


def _first(cls: type) -> str:
    return " ".join(inspect.getdoc(cls).partition("\n\n")[0].split())  # type: ignore[union-attr]


def _meanings(cls: type) -> dict[str, str]:
    """Field → its meaning, from the section Attributes of the docstring."""
    text = (inspect.getdoc(cls) or "").partition("Attributes:\n")[2]
    parts = _ATTRIBUTE.split(text)[1:]
    found = {}
    for names, meaning in zip(parts[::2], parts[1::2], strict=True):
        for name in names.split(", "):
            found[name] = " ".join(meaning.replace("``", "`").split())
    return found
