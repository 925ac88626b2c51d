"""Which step is next, and what it leads to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.cutover.foreseen import after, foreseen, record_after, record_before
from shardmerge.cli.cutover.procedure import next_step, next_step_back, read_only_sql, writable_sql
from shardmerge.cli.cutover.record import CutoverRecord, MadeReadOnly, NotedEnd, Tidied
from shardmerge.cli.cutover.seen import Act, Reason, Seen, SourceSeen, Step, Wishes
from shardmerge.schemas.model.position import SourcePosition

OFF = (("super_read_only", "OFF"), ("read_only", "OFF"))
ONE, TWO = SourceSeen("s1", before=OFF), SourceSeen("s2", before=OFF)
ENDS = tuple(NotedEnd(name, SourcePosition(0, "binlog.000001", 99, 0)) for name in ("s1", "s2"))
BEGUN = CutoverRecord("olga", "then", compared="then")
NOTED = replace(BEGUN, noted=ENDS)
PROVEN = replace(NOTED, passed=True, proven=True, rows=7)
DEFAULT = Tidied("ALTER TABLE t ALTER COLUMN b DROP DEFAULT", "ALTER TABLE t … SET DEFAULT 0")
FINAL = Tidied("ALTER TABLE t DROP COLUMN _shard", "")
HELD = Reason("SM-6705", "s1/app.t is held")
BY_SERVER, BY_HAND = Wishes(read_only=True, confirmed=True), Wishes(stopped=True)


def seen(record: CutoverRecord = BEGUN, **more: object) -> Seen:
    return replace(Seen(record, sources=(ONE, TWO)), **more)  # type: ignore[arg-type]


def stopped(record: CutoverRecord, **more: object) -> Seen:
    sources = tuple(replace(source, read_only=True) for source in (ONE, TWO))
    return replace(Seen(record, sources=sources), **more)  # type: ignore[arg-type]


def written(record: CutoverRecord, **more: object) -> Seen:
    sources = (replace(ONE, read_only=True, written=("source s1 has rows of app.t at f:4",)), TWO)
    return replace(Seen(record, sources=sources), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "wishes", "act"),
    [
        (seen(CutoverRecord()), Wishes(), Act.COMPARE),
        (seen(CutoverRecord(), obstacles=(HELD,)), BY_SERVER, Act.REFUSE),
        (seen(sources=()), BY_SERVER, Act.REFUSE),
        (seen(), Wishes(), Act.ASK),
        (seen(), BY_HAND, Act.NOTE),
        (seen(), BY_SERVER, Act.COMPARE),
        (seen(fresh=True), BY_SERVER, Act.READ_ONLY),
        (seen(replace(BEGUN, unprovable="no key")), BY_SERVER, Act.READ_ONLY),
        (seen(replace(BEGUN, read_only=(MadeReadOnly("s1", OFF),))), BY_SERVER, Act.READ_ONLY),
        (stopped(BEGUN), Wishes(), Act.NOTE),
        (stopped(NOTED), BY_SERVER, Act.CATCH_UP),
        (stopped(replace(NOTED, passed=True)), BY_SERVER, Act.PROVE),
        (stopped(PROVEN), BY_SERVER, Act.CLOSE),
        (seen(PROVEN), Wishes(), Act.ASK),
        (stopped(PROVEN, closed=True, untidy=(DEFAULT,)), BY_SERVER, Act.TIDY),
        (stopped(PROVEN, closed=True), BY_SERVER, Act.OPEN),
        (stopped(replace(PROVEN, opened="now"), closed=True), BY_SERVER, Act.DONE),
        (stopped(replace(PROVEN, opened="now", undoing=True)), BY_SERVER, Act.REFUSE),
        (seen(untidy=(FINAL,)), Wishes(read_only=True), Act.ASK),
        (written(PROVEN), BY_SERVER, Act.FORGET_ENDS),
        (written(PROVEN, closed=True), BY_SERVER, Act.REOPEN),
        (written(replace(PROVEN, tidied=(DEFAULT,)), closed=True), BY_SERVER, Act.RESTORE),
        (written(replace(PROVEN, tidied=(FINAL,)), closed=True), BY_SERVER, Act.REFUSE),
    ],
)
def test_the_next_step(state: Seen, wishes: Wishes, act: Act) -> None:
    assert next_step(state, wishes).act is act


@pytest.mark.parametrize(
    ("state", "act"),
    [
        (seen(CutoverRecord()), Act.DONE),
        (seen(PROVEN), Act.TURN_BACK),
        (stopped(replace(PROVEN, opened="now"), closed=True), Act.COMPARE_BACK),
        (stopped(replace(PROVEN, opened="now"), closed=True, unchanged=True), Act.TURN_BACK),
        (stopped(replace(PROVEN, tidied=(FINAL,)), closed=True), Act.REFUSE),
        (stopped(replace(PROVEN, undoing=True, tidied=(DEFAULT,)), closed=True), Act.RESTORE),
        (stopped(replace(PROVEN, undoing=True), closed=True), Act.REOPEN),
        (
            stopped(replace(PROVEN, undoing=True, read_only=(MadeReadOnly("s1", OFF),))),
            Act.WRITABLE,
        ),
        (stopped(replace(PROVEN, undoing=True)), Act.FORGET),
    ],
)
def test_the_next_step_back(state: Seen, act: Act) -> None:
    assert next_step_back(state, Wishes()).act is act


def test_other_targets_are_named_before_a_server_that_they_share_is_stopped() -> None:
    shared = seen(sources=(replace(ONE, shared=("merged.u", "merged.v")), TWO), fresh=True)
    step = next_step(shared, Wishes(read_only=True))
    assert (step.act, [reason.code for reason in step.reasons]) == (Act.ASK, ["SM-6702"])
    assert "merged.u, merged.v" in step.reasons[0].text
    assert next_step(shared, BY_SERVER).act is Act.READ_ONLY


def test_the_ends_that_were_passed_by_prove_nothing_any_more() -> None:
    step = next_step(written(PROVEN), BY_SERVER)
    assert [reason.code for reason in step.reasons] == ["SM-6708"]
    forgotten = record_after(PROVEN, step, "now")
    assert (forgotten.noted, forgotten.passed, forgotten.proven) == ((), False, False)
    assert next_step(stopped(forgotten), BY_SERVER).act is Act.NOTE


def test_settings_of_a_source_are_kept_as_they_were_before_the_first_try() -> None:
    step = next_step(seen(fresh=True), BY_SERVER)
    assert step.statements == ("SET GLOBAL super_read_only = ON",)
    prepared = record_before(BEGUN, step)
    assert prepared.read_only == (MadeReadOnly("s1", OFF),)
    assert step.source is not None
    again = replace(step, source=replace(step.source, before=(("read_only", "ON"),)))
    assert record_before(prepared, again) == prepared
    back = next_step_back(seen(replace(prepared, undoing=True)), Wishes())
    assert back.statements == ("SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
    assert record_after(prepared, back, "now").read_only == ()


def test_a_source_that_another_cut_over_relies_on_is_not_opened_without_a_word() -> None:
    record = replace(PROVEN, read_only=(MadeReadOnly("s1", OFF),))
    shared = (replace(ONE, shared=("merged.u",), handed_over=("merged.u",)), TWO)
    step = next_step_back(seen(record, sources=shared), Wishes())
    assert (step.act, [reason.code for reason in step.reasons]) == (Act.ASK, ["SM-6721"])
    assert next_step_back(seen(record, sources=shared), BY_SERVER).act is Act.TURN_BACK
    assert next_step_back(seen(PROVEN, sources=shared), Wishes()).act is Act.TURN_BACK


def test_an_operator_may_say_that_nobody_wrote_to_the_target() -> None:
    opened = stopped(replace(PROVEN, opened="now"), closed=True)
    assert next_step_back(opened, Wishes()).act is Act.COMPARE_BACK
    assert next_step_back(opened, Wishes(confirmed=True)).act is Act.COMPARE_BACK
    assert next_step_back(opened, Wishes(unproven=True)).act is Act.TURN_BACK


def test_mariadb_has_one_variable() -> None:
    maria = SourceSeen("m", "mariadb", before=(("read_only", "OFF"),))
    assert read_only_sql(maria) == ("SET GLOBAL read_only = ON",)
    assert writable_sql(maria) == ("SET GLOBAL read_only = OFF",)


def test_a_statement_is_noted_with_its_way_back_before_it_is_executed() -> None:
    step = Step(Act.TIDY, statements=(DEFAULT.sql,), tidied=DEFAULT)
    prepared = record_before(PROVEN, step)
    assert prepared.tidied == (DEFAULT,)
    assert record_before(prepared, step) == prepared
    restored = record_after(
        prepared, next_step_back(seen(replace(prepared, undoing=True)), Wishes()), "now"
    )
    assert restored.tidied == ()


def test_a_rehearsal_comes_to_the_end_over_every_question() -> None:
    shared = replace(ONE, shared=("merged.u",))
    start = Seen(CutoverRecord(), sources=(shared, TWO), obstacles=(HELD,), untidy=(DEFAULT, FINAL))
    told = [step.act for step in foreseen(start, Wishes(read_only=True))]
    assert told == [
        Act.REFUSE, Act.COMPARE, Act.ASK, Act.READ_ONLY, Act.READ_ONLY, Act.NOTE, Act.CATCH_UP,
        Act.PROVE, Act.CLOSE, Act.TIDY, Act.TIDY, Act.OPEN,
    ]  # fmt: skip
    by_hand = [step.act for step in foreseen(seen(), Wishes())]
    assert by_hand == [Act.ASK, Act.NOTE, Act.CATCH_UP, Act.PROVE, Act.CLOSE, Act.OPEN]


def test_a_rehearsal_of_the_way_back_ends_without_a_record() -> None:
    opened = replace(PROVEN, opened="now", tidied=(DEFAULT,), read_only=(MadeReadOnly("s1", OFF),))
    told = [step.act for step in foreseen(stopped(opened, closed=True), Wishes(), back=True)]
    assert told == [
        Act.COMPARE_BACK, Act.TURN_BACK, Act.RESTORE, Act.REOPEN, Act.WRITABLE, Act.FORGET,
    ]  # fmt: skip


def test_what_a_step_leads_to_is_what_the_next_look_finds() -> None:
    read_only = next_step(seen(fresh=True), BY_SERVER)
    assert [source.read_only for source in after(seen(), read_only).sources] == [True, False]
    assert after(stopped(PROVEN), Step(Act.CLOSE)).closed
    assert not after(stopped(PROVEN, closed=True), Step(Act.REOPEN)).closed


def test_what_was_written_to_a_shard_after_the_cut_over_is_told() -> None:
    done = stopped(replace(PROVEN, opened="now"), closed=True)
    late = replace(done.sources[0], written=("source s1 has rows of app.t_1 at b:7",))
    step = next_step(replace(done, sources=(late, *done.sources[1:])), BY_SERVER)
    assert step.act is Act.DONE
    assert [(reason.code, reason.text) for reason in step.reasons] == [
        ("SM-6708", "source s1 has rows of app.t_1 at b:7")
    ]
