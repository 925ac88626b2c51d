"""Tables that a connector leaves out: what its configuration says, and what comes back."""

from __future__ import annotations

import re

import pytest

from shardmerge.connectors.repair.schema_history.left_out import (
    LEFT_OUT,
    LeftOut,
    leaving_out,
    left_out_of,
)
from shardmerge.schemas.ddl.changes import TableName

PLAIN = {"name": "c", "database.include.list": "app,signals"}
LISTED = {**PLAIN, "table.include.list": r"app\.t\d+,signals\.signal"}
T1 = LeftOut(TableName("app", "t1"), "binlog.000001:40")
ODD = LeftOut(TableName("app", "a,b.$x ü"), "binlog.000001:80")


def excluded(config: dict[str, str], name: str) -> bool:
    """Whether a connector of the configuration leaves a table out, as Debezium reads its lists."""

    def expression(text: str) -> str:
        # Python writes a character's number in another way than Java.
        return re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: re.escape(chr(int(m[1], 16))), text)

    if include := config.get("table.include.list"):
        return not any(re.fullmatch(expression(one), name) for one in include.split(","))
    lists = filter(None, config.get("table.exclude.list", "").split(","))
    return any(re.fullmatch(expression(one), name) for one in lists)


@pytest.mark.parametrize("config", [PLAIN, LISTED])
def test_these_tables_are_left_out_and_no_others(config: dict[str, str]) -> None:
    told = leaving_out(config, (T1, ODD))
    assert excluded(told, "app.t1")
    assert not excluded(told, "app.t12") and not excluded(told, "signals.signal")
    assert not excluded(told, "app.t2")
    assert left_out_of(told) == (T1, ODD)


@pytest.mark.parametrize("config", [PLAIN, LISTED])
def test_a_configuration_that_leaves_out_nothing_more_is_as_before(config: dict[str, str]) -> None:
    assert left_out_of(config) == ()
    assert leaving_out(config, ()) == config
    assert leaving_out(leaving_out(leaving_out(config, (T1,)), (T1, ODD)), ()) == config


def test_one_of_two_can_be_taken_in() -> None:
    told = leaving_out(leaving_out(LISTED, (T1, ODD)), (ODD,))
    assert left_out_of(told) == (ODD,)
    assert not excluded(told, "app.t1")


def test_no_list_is_cut_at_a_comma_of_a_name() -> None:
    told = leaving_out(PLAIN, (ODD,))
    assert excluded(told, "app.a,b.$x ü")
    assert "," not in told["table.exclude.list"] and "," in told[LEFT_OUT]
