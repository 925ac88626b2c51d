"""What the folds give against what the topics hold."""

from __future__ import annotations

import pytest

from shardmerge.agents.replay.comparing import Difference
from shardmerge.agents.replay.facts import verification_facts
from shardmerge.agents.replay.verify import Verification, verify
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.recorded import Recorded, changed

TABLE = "(ID INT PRIMARY KEY)"
DDL, LOG, JOINED = "p.ddl", "p.schema-log", "p.joined-schemas"
SIGNALS = "p.signals"


@pytest.fixture
def made() -> Recorded:
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", "FLUSH TABLES", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN a INT", "ALTER TABLE tbl1 DROP COLUMN a")
    return made


def verified(made: Recorded, *, from_sources: bool = True) -> Verification:
    return verify(made.pipeline, made.log(), made.topic, from_sources=from_sources)


def differences(made: Recorded, *, from_sources: bool = True) -> list[Difference]:
    return list(verified(made, from_sources=from_sources).differences)


def the_difference(made: Recorded) -> Difference:
    (found,) = differences(made)
    return found


def counts(found: Verification, topic: str) -> dict[str, int]:
    (comparison,) = [c for c in found.comparisons if c.topic == topic]
    return {kind: count for kind, count in comparison.counts.items() if count}


def log_partition(made: Recorded) -> int:
    (partition,) = {r.partition for r in made.topic(LOG)}
    return partition


def test_what_the_agents_wrote_is_equal(made: Recorded) -> None:
    found = verified(made)
    assert found.differences == ()
    assert (found.folded, found.events) == (4, 5)
    assert counts(found, LOG) == {"expected": 4, "equal": 4}
    assert counts(found, DDL) == {"expected": 5, "equal": 5}
    assert counts(found, JOINED) == {"expected": 1, "equal": 1}


def test_without_the_sources_ignored_statements_are_not_compared(made: Recorded) -> None:
    found = verified(made, from_sources=False)
    assert found.differences == ()
    assert found.events is None
    assert counts(found, DDL) == {"expected": 4, "equal": 4, "not compared": 1}
    assert [c.topic for c in found.comparisons] == [DDL, JOINED, SIGNALS]


def test_a_snapshot_that_was_not_asked_for_is_missing() -> None:
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", snapshot=True)
    made.command(CommandKind.DISABLE)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN a INT DEFAULT 5")
    made.command(CommandKind.ENABLE)
    found = verified(made)
    assert found.differences == ()
    assert counts(found, SIGNALS) == {"expected": 1, "equal": 1}
    lost = made.records[SIGNALS, 0].pop()
    made.append(SIGNALS, 0, b"s1", b"somebody else's")
    missing = the_difference(made)
    assert (missing.topic, missing.kind) == (SIGNALS, "missing")
    assert (lost.value or b"").decode() in missing.what
    assert counts(verified(made), SIGNALS)["not compared"] == 1


def test_an_altered_decision_is_named_field_by_field(made: Recorded) -> None:
    records = made.records[DDL, 0]
    decision = codec.decode(records[3].value or b"")
    assert isinstance(decision, Decision)
    value = (records[3].value or b"").replace(b"ADD COLUMN `a` int", b"ADD COLUMN `b` int")
    records[3] = changed(records[3], value=value)
    found = the_difference(made)
    assert (found.topic, found.kind) == (DDL, "altered")
    assert (found.what, found.place) == (f"decision merged.tbl/{decision.version}", f"{DDL}/0@3")
    (detail,) = found.details
    assert detail.startswith("statements[0].sql: ")
    assert "COLUMN `a` int' by the fold" in detail and "COLUMN `b` int' in the topic" in detail


def test_an_altered_header_is_named(made: Recorded) -> None:
    records = made.records[DDL, 0]
    headers = tuple((n, b"hold" if n == "outcome" else v) for n, v in records[3].headers)
    records[3] = changed(records[3], headers=headers)
    assert the_difference(made).details == (
        "header outcome: 'emit' by the fold, 'hold' in the topic",
    )


def test_a_decision_that_cannot_be_read_is_told(made: Recorded) -> None:
    made.records[DDL, 0][3] = changed(made.records[DDL, 0][3], value=b"\xc3\x01rubbish")
    assert "cannot be read" in the_difference(made).details[0]


def test_a_lost_decision_is_missing(made: Recorded) -> None:
    del made.records[DDL, 0][3]
    found = the_difference(made)
    assert (found.kind, found.what) == ("missing", "decision merged.tbl/3")
    assert found.place == f"brought about by {LOG}/{log_partition(made)}@2"
    assert found.details == ("emit: column a is new",)


def test_the_last_decision_may_not_be_there_yet(made: Recorded) -> None:
    del made.records[DDL, 0][-1]
    found = the_difference(made)
    assert found.kind == "missing"
    assert "is the worker behind?" in found.details[-1]


def test_a_decision_that_nothing_brings_about_is_extra(made: Recorded) -> None:
    record = made.records[DDL, 0][3]
    made.append(DDL, 0, b"merged.tbl/9", record.value, record.headers)
    found = the_difference(made)
    assert (found.kind, found.what) == ("extra", "decision merged.tbl/9")
    assert found.place == f"{DDL}/0@5"


def test_a_decision_written_again_is_right_when_it_is_equal(made: Recorded) -> None:
    record = made.records[DDL, 0][3]
    made.append(DDL, 0, record.key, record.value, record.headers)
    found = verified(made)
    assert found.differences == ()
    assert counts(found, DDL)["repeated"] == 1
    made.append(DDL, 0, record.key, made.records[DDL, 0][4].value, record.headers)
    assert the_difference(made).place == f"{DDL}/0@6"


def test_a_removed_decision_is_right(made: Recorded) -> None:
    records = made.records[DDL, 0]
    made.append(DDL, 0, records[3].key, None)
    assert verified(made).differences == ()
    del records[3]  # compacted: only the tombstone is left
    found = verified(made)
    assert found.differences == ()
    assert counts(found, DDL) == {"expected": 5, "equal": 4, "removed": 1}


def test_the_latest_joined_schema_counts_and_older_ones_must_have_counted(made: Recorded) -> None:
    records = made.records[JOINED, 0]
    whole = list(records)
    records[:] = whole[-1:]  # compacted
    assert verified(made).differences == ()
    records[:] = whole[:-1]
    found = the_difference(made)
    assert (found.kind, found.what) == ("altered", "target merged.tbl")
    assert "version: 4 by the fold, 3 in the topic" in found.details
    records[:] = [changed(whole[0], value=b"x"), *whole[1:]]
    found = the_difference(made)
    assert (found.kind, found.place) == ("altered", f"{JOINED}/0@0")
    records[:] = []
    assert the_difference(made).kind == "missing"
    records[:] = whole
    made.append(JOINED, 0, b"merged.other", whole[0].value)
    assert the_difference(made).kind == "extra"
    made.append(JOINED, 0, b"merged.tbl", None)
    assert [d.kind for d in differences(made)] == ["extra"]


def test_the_schema_log_is_compared_with_the_sources(made: Recorded) -> None:
    records = made.records[LOG, log_partition(made)]
    records[2] = changed(
        records[2], value=(records[2].value or b"").replace(b"ADD COLUMN a", b"ADD COLUMN A")
    )
    assert [d.topic for d in differences(made, from_sources=False)] == [DDL]
    in_log, in_ddl = differences(made)
    assert (in_log.topic, in_log.kind, in_ddl.topic) == (LOG, "altered", DDL)
    assert in_log.what == "change s1@2.0 of s1/shop.tbl1 for merged.tbl"
    assert in_log.details[0].startswith("ddl: ")


def test_a_change_that_is_missing_doubled_or_out_of_order_is_told(made: Recorded) -> None:
    partition = log_partition(made)
    whole = list(made.records[LOG, partition])
    made.append(LOG, partition, whole[1].key, whole[1].value, whole[1].headers)
    found = verified(made)
    assert found.differences == ()
    assert counts(found, LOG)["repeated"] == 1
    made.records[LOG, partition][:] = [whole[0], whole[1], whole[3], whole[2]]
    kinds = [(d.topic, d.kind) for d in differences(made)]
    assert (LOG, "out of order") in kinds
    made.records[LOG, partition][:] = whole[:2]
    missing = [d for d in differences(made) if d.topic == LOG]
    assert [d.kind for d in missing] == ["missing", "missing"]
    assert missing[0].details[0] == "ALTER TABLE tbl1 ADD COLUMN a INT"


def test_a_change_of_no_source_is_extra(made: Recorded) -> None:
    made.records["s1", 0].pop()
    found = [d for d in differences(made) if d.topic == LOG]
    assert [d.kind for d in found] == ["extra"]


def commanded() -> Recorded:
    """A table whose statement is not understood, described by a command, and changed again."""
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 FOO")
    made.command(CommandKind.SET_SCHEMA, "s1/tbl1", "CREATE TABLE tbl1 (ID INT PRIMARY KEY, x INT)")
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN y INT")
    made.command(CommandKind.PAUSE, "s2/tbl2")
    made.command(CommandKind.DISABLE)
    return made


def test_commands_are_folded_where_the_log_says_that_they_came() -> None:
    made = commanded()
    found = verified(made)
    assert found.differences == ()
    assert found.events == 7
    assert counts(found, LOG) == {"expected": 7, "equal": 7}
    assert verified(made, from_sources=False).differences == ()


def test_a_lost_command_is_missing_in_the_log() -> None:
    made = commanded()
    records = made.records[LOG, log_partition(made)]
    del records[-1]
    del made.records[DDL, 0][-1]
    del made.records[JOINED, 0][-1]
    found = the_difference(made)
    assert (found.topic, found.kind) == (LOG, "missing")
    assert found.what == "command p.commands@2.0 for merged.tbl"


def test_a_command_about_a_target_that_there_is_not_is_compared() -> None:
    made = Recorded()
    made.command(CommandKind.DISABLE)
    for from_sources in (True, False):
        found = verified(made, from_sources=from_sources)
        assert found.differences == ()
        assert counts(found, DDL) == {"expected": 1, "equal": 1}
    del made.records[DDL, 0][0]
    assert [d.kind for d in differences(made)] == ["missing"]


def test_facts_end_with_the_counts(made: Recorded) -> None:
    del made.records[DDL, 0][3]
    first, last = verification_facts(verified(made))
    assert first["difference"]["kind"] == "missing"
    assert last["differences"] == 1
    counted = {kind: count for kind, count in last["topics"][DDL].items() if count}
    assert counted == {"expected": 5, "equal": 4, "missing": 1}


def test_a_record_of_a_source_that_is_none_is_an_error(made: Recorded) -> None:
    made.append("s1", 0, None, b"hello")
    with pytest.raises(ContractError, match=r"^SM-2107: s1@4 is not a schema-change record"):
        verified(made)
