"""A record that does not belong into its topic is an error that says what it is and where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.topic_records import command_of, decision_of, logged_change
from tests.unit.schemas.records.test_codec_plain import CHANGE, EMITTED, RECORDED

COMMAND = next(record for record in RECORDED if isinstance(record, OperatorCommand))
PLACE = "p.x/0@7"


def test_a_record_that_belongs_there_comes_back() -> None:
    assert decision_of(EMITTED, PLACE) is EMITTED
    assert command_of(COMMAND, PLACE) is COMMAND
    assert logged_change(COMMAND, PLACE) is COMMAND
    assert logged_change(CHANGE, PLACE) is CHANGE


@pytest.mark.parametrize(
    ("read", "record", "hint"),
    [
        (decision_of, CHANGE, "the ddl topic holds decisions"),
        (command_of, CHANGE, "`shardmerge command`"),
        (logged_change, EMITTED, "the schema-log holds schema changes and commands"),
    ],
)
def test_another_record_is_refused_with_its_place(
    read: Callable[[object, str], object], record: object, hint: str
) -> None:
    with pytest.raises(ContractError) as caught:
        read(record, PLACE)
    assert (caught.value.message, caught.value.code) == (
        f"{PLACE} is a {type(record).__name__}",
        "SM-2105",
    )
    assert hint in caught.value.hint
