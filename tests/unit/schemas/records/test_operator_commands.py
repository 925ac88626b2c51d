from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.records.operator_commands import Renewal

COLUMNS = (
    OriginColumn(OriginPart.SHARD, "_shard"),
    OriginColumn(OriginPart.GROUP, "_n", "n", "int"),
)


@pytest.mark.parametrize("origin", [NO_ORIGIN, Origin(COLUMNS, in_keys=True)])
def test_a_renewal_is_the_argument_of_its_command(origin: Origin) -> None:
    renewal = Renewal(3, 17, origin)
    assert Renewal.read(str(renewal)) == renewal


@pytest.mark.parametrize("text", ["", "{}", "renames=map"])
def test_another_argument_is_no_renewal(text: str) -> None:
    with pytest.raises(ContractError):
        Renewal.read(text)
