"""The log folded again: order, filters, states before and after."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardmerge.agents.replay.facts import step_facts
from shardmerge.agents.replay.log import OnePartition, in_time
from shardmerge.agents.replay.steps import ReplayStep, Stepper, Wanted
from shardmerge.agents.replay.text import step_text
from shardmerge.connectors.formats.stored_record import StoredRecord, iso_time
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.recorded import Recorded, changed

TABLE = "(ID INT PRIMARY KEY)"


@pytest.fixture
def made() -> Recorded:
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", f"CREATE TABLE log1 {TABLE}", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN a INT")
    made.execute("s2", "ALTER TABLE tbl2 ADD COLUMN a DATE", "ALTER TABLE tbl2 ADD COLUMN b INT")
    made.execute("s1", "ALTER TABLE log1 ADD COLUMN x INT", "ALTER TABLE tbl1 DROP COLUMN a")
    return made


def shown(made: Recorded, **wanted: object) -> list[ReplayStep]:
    return list(Stepper(made.pipeline, Wanted(**wanted)).steps(made.log()))  # type: ignore[arg-type]


def numbers(made: Recorded, **wanted: object) -> list[int]:
    return [step.number for step in shown(made, **wanted)]


def record(partition: int, offset: int, time: int, key: bytes = b"k") -> StoredRecord:
    return StoredRecord("t", partition, offset, key, b"", (), time)


def test_records_come_by_time_and_a_partition_keeps_its_order() -> None:
    first = [record(0, 0, 5), record(0, 1, 2), record(0, 2, 9)]
    second = [record(1, 0, 3), record(1, 1, 5), record(1, 2, 5)]
    found = [(r.partition, r.offset) for r in in_time([first, [], second])]
    assert found == [(1, 0), (0, 0), (0, 1), (1, 1), (1, 2), (0, 2)]


def test_a_key_in_two_partitions_is_refused_with_both_places() -> None:
    partitions = OnePartition()
    partitions.check(record(0, 3, 0))
    partitions.check(record(0, 4, 0))
    partitions.check(record(1, 0, 0, key=b"other"))
    with pytest.raises(ContractError, match=r"'k' has records .* t/0@3 and t/1@7") as caught:
        partitions.check(record(1, 7, 0))
    assert caught.value.hint


def test_every_step_goes_on_from_where_its_target_was(made: Recorded) -> None:
    latest: dict[object, object] = {}
    steps = shown(made)
    for step in steps:
        assert step.before is not None and step.after is not None
        assert step.before == latest.get(step.target, step.before)
        assert (step.before.version, step.after.version) == (
            step.after.version - 1,
            step.decision.version if step.decision else -1,
        )
        latest[step.target] = step.after
    assert [step.number for step in steps] == list(range(1, 9))
    assert {str(step.target): step.after.version for step in steps if step.after} == {
        "merged.tbl": 6,
        "merged.log": 2,
    }


def test_filters_choose_what_is_shown_not_what_is_folded(made: Recorded) -> None:
    steps = shown(made)
    for step in steps:
        assert shown(made, number=step.number) == [step]
    assert shown(made, targets=frozenset({"merged.log"})) == [steps[1], steps[6]]
    assert shown(made, from_version=5) == [steps[5], steps[7]]
    assert shown(made, to_version=1) == [steps[0], steps[1]]
    assert shown(made, from_version=2, to_version=2, targets=frozenset({"merged.log"})) == [
        steps[6]
    ]
    since, until = steps[3].ts_ms, steps[5].ts_ms
    assert shown(made, since_ms=since, until_ms=until) == steps[3:6]
    assert shown(made, since_ms=since + 1, until_ms=until - 1) == [steps[4]]


def test_a_shards_filter_shows_what_releases_it(made: Recorded) -> None:
    # 8 drops the column on s1 that s2's shard was in conflict with.
    assert numbers(made, shards=frozenset({"s2/shop.tbl2"})) == [3, 5, 6, 8]
    assert numbers(made, shards=frozenset({"s1/shop.log1"})) == [2, 7]
    assert numbers(made, shards=frozenset({"s1/shop.none"})) == []


def test_a_repeated_record_is_told_and_changes_nothing(made: Recorded) -> None:
    place = made.topic("p.schema-log")[2]
    made.append(place.topic, place.partition, place.key, place.value, place.headers)
    step = shown(made)[-1]
    assert step.decision is None
    assert step.before == step.after
    assert "decided before" in step_text(step)
    assert numbers(made, from_version=0)[-1] == 9
    assert 9 not in numbers(made, from_version=1)


def test_ignored_statements_are_shown_from_the_sources(made: Recorded) -> None:
    made.execute("s2", "CREATE TABLE other (x INT)")
    stepper = Stepper(made.pipeline, Wanted())
    names = ("s1", "s2", "p.schema-log")
    parts = [records for (topic, _), records in made.records.items() if topic in names]
    steps = list(stepper.steps(in_time(parts)))
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7, 8, 0]
    assert "no routing rule matches" in step_text(steps[-1])
    assert stepper.folded == 8
    assert stepper.targets == {"merged.tbl", "merged.log"}
    assert json.dumps(step_facts(steps[-1]))


def test_a_record_that_is_not_ours_ends_the_replay_with_its_place(made: Recorded) -> None:
    made.append("p.schema-log", 3, b"merged.x", b"hello")
    steps = Stepper(made.pipeline, Wanted()).steps(made.log())
    assert len([next(steps) for _ in range(8)]) == 8
    with pytest.raises(ContractError, match=r"p\.schema-log/3@0.*not an Avro"):
        next(steps)


def test_commands_are_steps_too(made: Recorded) -> None:
    made.command(CommandKind.PAUSE, "s2/tbl2")
    made.command(CommandKind.SKIP, "s1/tbl1")
    made.command(CommandKind.DISABLE)
    pause, skip, disable = map(step_text, shown(made, from_version=7))
    assert "from       p.commands@0.0, a command of anna\n" in pause
    assert "command    pause s2/shop.tbl2\n" in pause
    assert "pauses     s2/shop.tbl2\n" in pause
    assert "refused: " in skip
    assert "command    disable\n" in disable
    assert shown(made, shards=frozenset({"s2/shop.tbl2"}))[-1].number == 9
    assert json.dumps([step_facts(step) for step in shown(made)])


def test_facts_are_json_and_tell_who_is_held_and_why(made: Recorded) -> None:
    facts = json.loads(json.dumps(step_facts(shown(made)[4])))
    assert facts["before"]["held"] == []
    (held,) = facts["after"]["held"]
    assert (held["shard"], held["version"]) == ("s2/shop.tbl2", 4)
    assert "date" in held["reason"] and held["hint"]
    assert facts["after"]["live"] == ["s1/shop.tbl1", "s2/shop.tbl2"]
    assert facts["after"]["create_table"].startswith("CREATE TABLE `merged`.`tbl` (\n  `ID` int")
    assert facts["came"]["ddl"] == "ALTER TABLE tbl2 ADD COLUMN a DATE"
    assert facts["answers"][0]["outcome"] == "hold"


def test_equal_records_give_equal_text(made: Recorded) -> None:
    first = [step_text(step) for step in shown(made)]
    assert first == [step_text(step) for step in shown(made)]


def test_many_shards_are_counted_instead_of_named() -> None:
    made = Recorded()
    made.execute("s1", *(f"CREATE TABLE tbl{n} {TABLE}" for n in range(11)), snapshot=True)
    text = step_text(shown(made)[-1])
    assert "11 live (" in text
    assert "s1/shop.tbl6 and 3 more)" in text


def test_times_are_told_to_the_millisecond() -> None:
    assert iso_time(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
    assert iso_time(-1) == "1969-12-31T23:59:59.999Z"


def test_a_change_without_a_time_has_its_records() -> None:
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}")
    step = shown(made)[0]
    assert step.ts_ms == 1_700_000_000_000
    log = made.topic("p.schema-log")[0]
    timeless = replace(step, came=None, answers=(), record=changed(log, timestamp_ms=12))
    assert timeless.ts_ms == 12
