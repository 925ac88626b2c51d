"""What a command says of tables that were read as a whole."""

import pytest

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.reloads import Reload, reloads_in, reloads_text

FIRST = Reload(ShardId("s1", "app", "t"), SourcePosition(0, "binlog.000003", 157, 0), 5)
SECOND = Reload(ShardId("s2", "app", "t_ä"), SourcePosition(1, "binlog.000001", 4, 0), 6)


def test_readings_are_read_as_they_were_written_in_one_order() -> None:
    assert reloads_in(reloads_text((SECOND, FIRST))) == (FIRST, SECOND)
    assert reloads_text((SECOND, FIRST)) == reloads_text((FIRST, SECOND))


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "[7]", '[{"shard": "s1"}]', "s1/app.t"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ContractError):
        reloads_in(text)
