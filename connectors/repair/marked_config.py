"""What a repair changes in a connector's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.repair.schema_history.left_out import LeftOut, leaving_out, left_out_of

MARK = "shardmerge.repair"
"""Key of the configuration; its value is what the repair changed there, with the old values."""


class MarkedConfig:
    """The configuration of one connector.

    Args:
        rest: The Connect cluster.
        name: Of the connector.
    """

    def __init__(self, rest: ConnectRest, name: str) -> None:
        self._rest = rest
        self._name = name

    def is_marked(self) -> bool:
        """Whether a repair has begun and not ended."""
        return MARK in (self._rest.config(self._name) or {})

    def change(self, values: Mapping[str, str]) -> None:
        """Mark the configuration, and change these values until ``restore``."""
        config = dict(self._rest.config(self._name) or {})
        kept: dict[str, str | None] = json.loads(config.get(MARK, "{}"))
        kept = {**{key: config.get(key) for key in values}, **kept}
        wanted = {**config, **values, MARK: json.dumps(kept)}
        if wanted != config:
            self._rest.set_config(self._name, wanted)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The tables that the connector leaves out."""
        return left_out_of(self._rest.config(self._name) or {})

    def leave_out(self, tables: tuple[LeftOut, ...]) -> None:
        """Let the connector leave out these tables, and no others."""
        config = dict(self._rest.config(self._name) or {})
        wanted = leaving_out(config, tables)
        if wanted != config:
            self._rest.set_config(self._name, wanted)

    def restore(self) -> None:
        """Give the connector its old configuration, without the mark; do nothing without a mark.

        When a stopped connector's configuration is put, Connect begins to stop it once more, and
        reports a failure if it is resumed meanwhile. So nothing is put without need.
        """
        config = dict(self._rest.config(self._name) or {})
        if MARK not in config:
            return
        kept: dict[str, str | None] = json.loads(config.pop(MARK, "{}"))
        for key, value in kept.items():
            if value is None:
                config.pop(key, None)
            else:
                config[key] = value
        self._rest.set_config(self._name, config)
