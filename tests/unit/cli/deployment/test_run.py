from __future__ import annotations

from pathlib import Path

import click
import pytest

from shardmerge.cli.deployment.run import Address, parts
from shardmerge.cli.main import main

WEB = Address("127.0.0.1", 6066)


def options(
    metrics: Address, *, per_shard: bool = False, standby: bool = False
) -> dict[str, dict[str, object]]:
    """Part → its options as its own command reads them."""
    found: dict[str, dict[str, object]] = {}
    where = Path(__file__), Path("d"), WEB, "local[2]", metrics
    for part in parts(*where, per_shard=per_shard, standby=standby):
        command: click.Command = main
        words = list(part.arguments)
        context = click.Context(main)
        while isinstance(command, click.Group):
            _, next_command, words = command.resolve_command(context, words)
            assert next_command is not None
            command, context = next_command, click.Context(next_command, context)
        command.parse_args(context, words)
        found[part.name] = context.params
    return found


def test_sink_and_watchdog_serve_their_metrics_at_two_ports_in_a_row() -> None:
    found = options(Address("0.0.0.0", 9401), per_shard=True)
    assert (found["sink"]["metrics_host"], found["sink"]["metrics_port"]) == ("0.0.0.0", "9401")
    assert found["sink"]["metrics_per_shard"] is True
    watchdog = found["watchdog"]
    assert (watchdog["metrics_host"], watchdog["metrics_port"]) == ("0.0.0.0", 9402)
    assert found["agents"]["web_port"] == 6066


@pytest.mark.parametrize("part", ["sink", "watchdog"])
def test_without_a_port_there_are_no_metrics(part: str) -> None:
    assert options(Address("127.0.0.1", 0))[part]["metrics_port"] in (None, 0)


def test_only_the_sink_is_a_standby() -> None:
    metrics = Address("127.0.0.1", 0)
    assert options(metrics)["sink"]["standby"] is False
    assert options(metrics, standby=True)["sink"]["standby"] is True
