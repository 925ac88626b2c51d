"""What a source's connector is to be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.deploy import configuration
from shardmerge.schemas.model.errors import ConfigError
from tests.recorded import pipeline


class Cluster:
    """Has one connector, of a source in some epoch, at another host."""

    def __init__(self, epoch: int) -> None:
        source = replace(pipeline().sources[0], host="new", epoch=epoch)
        self._config = connector_config(pipeline(), source)

    def config(self, _: str) -> Mapping[str, str]:
        return self._config

    def offset(self, _: str) -> Mapping[str, Any]:
        return {}


@pytest.mark.parametrize(("there", "own"), [(0, 0), (1, 1), (1, 2)])
def test_a_connector_gets_the_files_address_in_its_epoch_or_a_later_one(
    there: int, own: int
) -> None:
    source = replace(pipeline().sources[0], epoch=own)
    given = configuration(pipeline(), source, cast(ConnectRest, Cluster(there)))
    assert given["database.hostname"] == source.host


def test_a_file_from_before_a_move_does_not_move_the_source_back() -> None:
    source = replace(pipeline().sources[0], epoch=1)
    with pytest.raises(ConfigError, match=r"reads new in epoch 2, and .* in epoch 1") as raised:
        configuration(pipeline(), source, cast(ConnectRest, Cluster(2)))
    assert raised.value.code == "SM-6611"
