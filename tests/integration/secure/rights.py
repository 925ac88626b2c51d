"""The grants and ACLs of docs/how-to/secure.md, as they stand there, for the test's users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "secure.md"
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefixed": ResourcePatternType.PREFIXED}


def grants(user: str) -> list[str]:
    """The GRANT statements of the page for a MySQL user."""
    found = [s.strip() for s in re.findall(r"^GRANT [^;]+", PAGE.read_text(), re.MULTILINE)]
    return [statement for statement in found if f"'{user}'@" in statement]


def bindings(pipeline: str, sources: tuple[str, ...], group: str) -> list[AclBinding]:
    """The ACLs of the page for a pipeline."""
    return [
        AclBinding(
            _RESOURCES[resource],
            name,
            _PATTERNS[pattern],
            f"User:{user}",
            "*",
            AclOperation[_constant(operation)],
            AclPermissionType.ALLOW,
        )
        for user, resource, pattern, written, operations in _rows()
        for name in sorted(
            {
                written.replace("PIPELINE", pipeline)
                .replace("GROUP", group)
                .replace("SOURCE", source)
                for source in sources
            }
        )
        for operation in operations.split(", ")
    ]


def _rows() -> Iterator[list[str]]:
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[1] in _RESOURCES:
            yield cells


def _constant(operation: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
