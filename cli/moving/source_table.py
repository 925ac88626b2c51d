"""A source's table in the text of a pipeline file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import tomlkit
from tomlkit.exceptions import TOMLKitError

from shardmerge.connectors.debezium.source_config import epoch_of
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.settings import Pipeline, Source

_HOST, _PORT = "database.hostname", "database.port"


def next_epoch(source: Source, moved: Source, config: Mapping[str, str]) -> int:
    """The epoch with which a source is read at another address.

    It is higher than every epoch in which the connector has read elsewhere. A call that was
    interrupted, and is repeated, finds the same one.

    Args:
        source: As the pipeline file has it.
        moved: With the new address.
        config: The connector's configuration in Kafka Connect.
    """
    current = epoch_of(config)
    if (config.get(_HOST), config.get(_PORT)) == (moved.host, str(moved.port)):
        return max(current, source.epoch)
    is_edited = (source.host, source.port) == (moved.host, moved.port)
    return max(current + 1, source.epoch if is_edited else source.epoch + 1)


def server_before(source: Source, config: Mapping[str, str]) -> Source:
    """The source with the address from which its connector reads now."""
    host, port = config.get(_HOST, source.host), config.get(_PORT, str(source.port))
    return replace(source, host=host, port=int(port) if port.isdecimal() else source.port)


def changed_keys(before: Source, after: Source) -> dict[str, str | int]:
    """The keys of a source's table that a move changes → their new values."""
    names = ("host", "port", "user", "password", "epoch")
    return {
        name: getattr(after, name)
        for name in names
        if getattr(before, name) != getattr(after, name)
    }


def with_source(text: str, name: str, keys: Mapping[str, str | int]) -> str:
    """The text of a pipeline file with other values in one source's table.

    Everything else stays as it is written, comments included.

    Args:
        text: Of the file.
        name: Of the source.
        keys: Key → new value.

    Raises:
        ConfigError: The text has no such table.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"the pipeline file cannot be read: {error}", code="SM-5001") from None
    for table in document.get("sources", ()):
        if table.get("name") == name:
            for key, value in keys.items():
                table[key] = value
            return tomlkit.dumps(document)
    raise ConfigError(
        f"the pipeline file has no table of source {name!r}",
        hint="it needs a table [[sources]] with that name",
        code="SM-5103",
    )


def lines_of(keys: Mapping[str, str | int]) -> tuple[str, ...]:
    """The keys as lines of the file."""
    return tuple(f"{key} = {tomlkit.item(value).as_string()}" for key, value in keys.items())


def parts_to_restart(pipeline: Pipeline, source: Source) -> tuple[str, ...]:
    """The processes that use a source's address, and do not notice that it has changed.

    The agents and the sink learn the epoch from the records. The sink connects to a source only to
    read its first rows itself; its lineage events name the source by its address. The validator
    (``shardmerge validate --continuous``), if one runs, asks each source. The watchdog notices.
    """
    is_named = pipeline.lineage.transport != "off"
    return ("sink", "validator") if source.is_loaded or is_named else ("validator",)
