"""Records from before reasons had codes: every reason gets the code that says so."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.decisions import Fixup, FixupKind, Outcome, StatementKind
from shardmerge.schemas.records.earlier_codes import EARLIER, lacks_codes, with_codes
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.schemas.records.record_format import RecordFormat
from tests.unit.schemas.records.test_codec_plain import CHANGE, EMITTED

JSON = RecordFormat("json")


def test_a_hold_and_a_refusal_get_a_code_and_other_decisions_none() -> None:
    for outcome in Outcome:
        decision = replace(EMITTED, outcome=outcome, code="")
        expected = EARLIER if outcome in (Outcome.HOLD, Outcome.REFUSED) else ""
        assert with_codes(decision).code == expected


def test_a_schema_change_gets_a_code_only_with_an_error() -> None:
    assert with_codes(replace(CHANGE, error="x", code="")).code == EARLIER
    assert with_codes(replace(CHANGE, error="", code="")).code == ""


def test_what_waits_gets_a_code_and_what_runs_none() -> None:
    shards = tuple(ShardProgress(ShardId("s", "a", t), 0, w) for t, w in (("t", "x"), ("u", "")))
    states = (("debt", "rows"), ("executing", "stage: copy"))
    statements = tuple(
        StatementProgress(1, n, "", StatementKind.EXPANDING, state, detail)
        for n, (state, detail) in enumerate(states)
    )
    failure = FailureProgress("x", "", "p", 1)
    told = with_codes(
        SinkProgress(TargetTable("m", "t"), 0, 0, statements, shards, failure=failure)
    )
    assert [shard.code for shard in told.shards] == [EARLIER, ""]
    assert [statement.code for statement in told.open] == [EARLIER, ""]
    assert told.failure is not None
    assert told.failure.code == EARLIER


def test_a_json_record_without_the_field_is_an_earlier_one() -> None:
    assert lacks_codes(b'{"record":"SchemaChange","error":"say \\"code\\": x"}', CHANGE)
    assert not lacks_codes(b'{"record":"SchemaChange","code":""}', CHANGE)
    assert lacks_codes(b'{"record":"Decision","code":""}', EMITTED)
    assert not lacks_codes(b'{"record":"Decision","code":"","warning_codes":[]}', EMITTED)


def test_warnings_fixups_and_statements_get_a_code_where_they_have_none() -> None:
    statement = replace(EMITTED.statements[0], code="")
    shard = ShardId("s", "a", "t")
    fixups = tuple(Fixup(shard, FixupKind.ACCEPT, (), "x", code) for code in ("", "SM-1801"))
    told = with_codes(
        replace(EMITTED, statements=(statement,), fixups=fixups, warnings=("a", "b"),
                warning_codes=())
    )  # fmt: skip
    assert told.warning_codes == (EARLIER, EARLIER)
    assert [part.code for part in told.statements] == [EARLIER]
    assert [part.code for part in told.fixups] == [EARLIER, "SM-1801"]
    assert with_codes(told) == told
