"""Decisions as lines, and which of them are wanted."""

from __future__ import annotations

import pytest

from shardmerge.cli.views.decisions import Wanted, decision_lines
from shardmerge.cli.views.text import plain_lines
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.progress import SinkProgress, StatementProgress
from tests.recorded import Recorded

from .pictures import ONE, TARGET, TWO, conflicting, picture, recorded, reported


@pytest.fixture(scope="module")
def made() -> Recorded:
    """Versions 1 to 3, then ``skip`` by anna as version 4, then a statement about no shard."""
    made = conflicting()
    made.command(CommandKind.SKIP, "s2/tbl2")
    made.execute("s1", "CREATE TABLE elsewhere (id INT PRIMARY KEY)")
    return made


@pytest.mark.parametrize(
    ("wanted", "versions"),
    [
        (Wanted(), [1, 2, 3, 4]),
        (Wanted(ignored=True), [1, 2, 3, 4, 0]),
        (Wanted(outcomes=("ignored",)), [0]),
        (Wanted(outcomes=("hold", "emit")), [1, 3]),
        (Wanted(target=TARGET, last=2), [3, 4]),
        (Wanted(shard=ONE), [1]),
        (Wanted(shard=TWO), [2, 3, 4]),
        (Wanted(from_version=2, to_version=3), [2, 3]),
        (Wanted(until_ms=1), []),
        (Wanted(since_ms=1), [1, 2, 3, 4]),
    ],
)
def test_filters_choose(made: Recorded, wanted: Wanted, versions: list[int]) -> None:
    assert [line.version for line in decision_lines(picture(made), wanted)] == versions


def test_a_command_tells_who_gave_it_and_what_it_released(made: Recorded) -> None:
    line = list(decision_lines(picture(made), Wanted()))[-1]
    assert (line.asked, line.by, line.released) == ("skip s2/shop.tbl2", "anna", (str(TWO),))
    assert line.state == ""


def test_what_became_of_the_statements_is_told() -> None:
    def states(progress: SinkProgress | None) -> list[str]:
        made = conflicting()
        if progress is not None:
            reported(made, progress)
        return [line.state for line in decision_lines(picture(made), Wanted())]

    def open_(state: str) -> StatementProgress:
        return StatementProgress(1, 0, "CREATE", StatementKind.EXPANDING, state)

    assert states(None) == ["open", "", ""]
    assert states(SinkProgress(TARGET, 0, 0)) == ["open", "", ""]
    assert states(SinkProgress(TARGET, 0, 0, (open_("executing"),))) == ["open", "", ""]
    assert states(SinkProgress(TARGET, 0, 0, (open_("refused"),))) == ["refused", "", ""]
    assert states(SinkProgress(TARGET, 3, 0)) == ["executed", "", ""]


def test_a_decision_that_was_written_twice_is_one() -> None:
    made = conflicting()
    topic = "p.ddl"
    again = made.topic(topic)[0]
    made.append(topic, 0, again.key, again.value)
    assert [line.version for line in decision_lines(picture(made), Wanted())] == [1, 2, 3]


def test_warnings_fixups_and_statements_are_told_with_their_codes(made: Recorded) -> None:
    lines = list(decision_lines(picture(made), Wanted()))
    assert [reason.code for reason in lines[0].statement_reasons] == ["SM-1901"]
    assert "    because SM-1901: the target is new" in list(plain_lines(lines[0]))
    skipped = lines[-1]
    assert skipped.warnings
    assert set(skipped.warning_codes) == {"SM-1709"}
    assert any(line.startswith("  warning: SM-1709: ") for line in plain_lines(skipped))
    asked = recorded()
    asked.command(CommandKind.REREAD, "s1/tbl1")
    (fixup,) = list(decision_lines(picture(asked), Wanted()))[-1].fixups
    assert (fixup.shard, fixup.kind, fixup.code) == (str(ONE), "snapshot", "SM-1811")
