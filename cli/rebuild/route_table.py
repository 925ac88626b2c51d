"""A target's route in the text of a pipeline file. Pure."""

from __future__ import annotations

import tomlkit
from tomlkit.exceptions import TOMLKitError

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable


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
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"the pipeline file cannot be read: {error}", code="SM-5001") from None
    found = [table for table in document.get("routes", ()) if table.get("target") == str(target)]
    if len(found) != 1:
        raise ConfigError(
            f"the pipeline file has {len(found)} tables [[routes]] with target {str(target)!r}",
            hint=f"write into the route of {target}: {line_of(where)}",
            code="SM-6522",
        )
    if where:
        found[0]["where"] = where
    else:
        found[0].pop("where", None)
    return tomlkit.dumps(document)


def line_of(where: str) -> str:
    """The condition as a line of the file."""
    return f"where = {tomlkit.item(where).as_string()}"
