from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardmerge.agents.answers import plain
from shardmerge.agents.answers.change_answers import changes_answer
from shardmerge.agents.answers.command_answers import GivenAnswer, commands_answer
from shardmerge.agents.answers.matrix_answers import matrix_answer
from shardmerge.agents.answers.openapi import document
from shardmerge.agents.holds.answers import Answers
from shardmerge.agents.holds.reports import hold_reports
from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.agents.status.matrix import matrix
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.plain import to_plain
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import NOW_MS, ORDERS, example, failing, orders, pipeline

DOCUMENT = document("1.2.3")


def faults(value: Any, schema: dict[str, Any], place: str = "") -> list[str]:
    """Where a value is not as a schema of the document says. It may have no field more."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        return faults(value, DOCUMENT["components"]["schemas"][name], place)
    if "anyOf" in schema:
        found = [faults(value, each, place) for each in schema["anyOf"]]
        return [] if [] in found else found[0]
    kinds: dict[str, type] = {
        "string": str,
        "integer": int,
        "boolean": bool,
        "null": type(None),
        "array": list,
    }
    kind = schema["type"]
    if kind != "object":
        if type(value) is not kinds[kind] or value not in schema.get("enum", [value]):
            return [f"{place}: {value!r} is no {kind}"]
        if not isinstance(value, list):
            return []
        items = schema.get("prefixItems") or [schema["items"]] * len(value)
        pairs = zip(value, items, strict=True)
        return [f for n, (item, of) in enumerate(pairs) for f in faults(item, of, f"{place}[{n}]")]
    if not isinstance(value, dict):
        return [f"{place}: {value!r} is no object"]
    if "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        return [f for k, item in value.items() for f in faults(item, inner, f"{place}.{k}")]
    if value.keys() != schema["properties"].keys():
        return [f"{place}: {value.keys() ^ schema['properties'].keys()}"]
    return [
        fault
        for name, item in value.items()
        for fault in faults(item, schema["properties"][name], f"{place}.{name}")
    ]


def schema_of(path: str, status: str = "200") -> dict[str, Any]:
    method = "post" if status == "202" else "get"
    answer = DOCUMENT["paths"][path][method]["responses"][status]
    found: dict[str, Any] = answer["content"]["application/json"]["schema"]
    return found


def answers() -> dict[str, Any]:
    line = example()
    failing(line, NOW_MS)
    command = OperatorCommand(ChangeId("shop.commands", 7), ORDERS, CommandKind.SKIP, orders(7))
    line.view.apply(command)
    target = line.view.target(str(ORDERS))
    assert target is not None
    of = Answers(pipeline(), line.state.targets[ORDERS])
    connectors = ConnectorLog()
    connectors.take([ConnectorState("s1", "shop.s1", "FAILED", "no binlog")], NOW_MS)
    reports = list(hold_reports(of, {}, Path("f")))
    return {
        "/api/status": plain.status_answer(
            line.view.targets(),
            line.view.ignored(),
            NOW_MS,
            pipeline="shop",
            caught_up=True,
            connectors=connectors.view,
        ),
        "/api/target/{name}": plain.target_answer(target, NOW_MS),
        "/api/target/{name}/matrix": matrix_answer(matrix(target)),
        "/api/target/{name}/changes": changes_answer(target),
        "/api/target/{name}/holds": plain.holds_answer(str(ORDERS), reports),
        "/api/target/{name}/commands": commands_answer(str(ORDERS), line.view.commands(ORDERS)),
        "/healthz": plain.HealthAnswer(ready=True, assigned=("a/0",), view_caught_up=True),
    }


def test_every_path_has_an_answer_here():
    assert answers().keys() == DOCUMENT["paths"].keys()


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_an_answer_is_as_the_document_says(path):
    assert faults(to_plain(answers()[path]), schema_of(path)) == []


def test_the_answer_to_a_command_is_as_the_document_says():
    line = example()
    decision = Answers(pipeline(), line.state.targets[ORDERS]).answer(CommandKind.SKIP, orders(7))
    assert decision is not None
    told = to_plain(GivenAnswer("shop.commands@7.0", decision))
    assert faults(told, schema_of("/api/target/{name}/commands", "202")) == []


def test_the_body_of_a_command_needs_a_kind_and_has_no_unknown_field():
    schema = DOCUMENT["components"]["schemas"]["CommandCall"]
    assert schema["required"] == ["kind"]
    assert not schema["additionalProperties"]
    assert "adopt" not in schema["properties"]["kind"]["enum"]
    assert "skip" in schema["properties"]["kind"]["enum"]


def test_a_wrong_answer_would_be_noticed():
    told = to_plain(answers()["/api/target/{name}"])
    told["version"] = "7"
    assert faults(told, schema_of("/api/target/{name}")) == [".version: '7' is no integer"]


def test_every_field_of_an_answer_of_the_api_has_a_meaning():
    silent = [
        f"{name}.{field}"
        for name, schema in DOCUMENT["components"]["schemas"].items()
        if name.endswith("Answer")
        for field, each in schema["properties"].items()
        if not each.get("description")
    ]
    assert silent == []


def test_only_users_with_tokens_send_tokens():
    path = "/api/target/{name}/commands"
    assert DOCUMENT["paths"][path]["post"]["security"] == [{"token": []}]
    for access in ("off", "proxy"):
        assert "security" not in document("1", access)["paths"][path]["post"]


def test_the_document_tells_the_version():
    assert DOCUMENT["info"]["version"] == "1.2.3"
