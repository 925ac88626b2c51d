"""Checks that a source connector is exactly-once: the offset barrier rests on it.

Without it, a row can be readable in Kafka before the DDL that precedes it in the binlog, and
nothing would show that. The checks:

1. The worker: asked to validate a configuration with ``exactly.once.support=required``, it
   objects under that key when its ``exactly.once.source.support`` is not ``enabled``, and
   when the connector cannot do it.
2. The connector: its configuration in force requires it, with transactions per poll or finer.

With ``required``, a worker also refuses to start the connector's tasks while its own support is
off. So a later change of the worker cannot make the result of the check wrong.

Source: KIP-618; measured, tests/integration/connect.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardmerge.schemas.model.errors import StackError

from .connect_rest import ConnectRest

_KEY = "exactly.once.support"
_BOUNDARY = "transaction.boundary"
_WORKER_HINT = "set exactly.once.source.support=enabled on every Connect worker"


def check_worker(rest: ConnectRest, config: Mapping[str, str]) -> None:
    """Raise ``StackError`` when the worker or the connector class cannot be exactly-once.

    Args:
        rest: The Connect cluster.
        config: A connector's configuration, as computed; it need not exist there yet.
    """
    objections = rest.validate(config)
    for key in (_KEY, _BOUNDARY):
        if key in objections:
            raise StackError(
                f"no exactly-once source at {rest.url}: {'; '.join(objections[key])}",
                hint=_WORKER_HINT,
                code="SM-4306",
            )


def check_connector(rest: ConnectRest, name: str) -> None:
    """Raise ``StackError`` when a connector does not require exactly-once delivery."""
    config = rest.config(name)
    if config is None:
        raise StackError(
            f"there is no connector {name} at {rest.url}",
            hint="deploy the connector first",
            code="SM-4307",
        )
    support, boundary = config.get(_KEY, "(not set)"), config.get(_BOUNDARY, "poll")
    if support != "required" or boundary not in ("poll", "connector"):
        raise StackError(
            f"connector {name} has {_KEY}={support}, {_BOUNDARY}={boundary}",
            hint=f"give it the computed configuration: {_KEY}=required, {_BOUNDARY}=poll",
            code="SM-4306",
        )
    check_worker(rest, config)
