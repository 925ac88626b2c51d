from __future__ import annotations

from shardmerge.cli.validation.report import lines, report_of, shortfalls, shown_key
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind, Doubt
from shardmerge.spark_sink.validation.sampled_rows import SampledRow
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.unit.spark_sink.validation.facts import S1, S2, shard, target

from .silent_servers import SilentServers

OWN = "CREATE TABLE t (id int, k varchar(9), b varbinary(2), a int, PRIMARY KEY (id, k, b))"
TABLE = compared_table(target(OWN), [shard(S1, OWN), shard(S2, OWN, obstacle="it is held")])
KEY = ("7", "C3A9", "00FF")


def validation() -> TableValidation:
    found = TableValidation(TABLE, SilentServers(), SilentServers())
    found.scanned, found.rows, found.ranges = True, 200, 2
    found.differences = [
        Difference(DifferenceKind.EXTRA, ("8", "", "")),
        Difference(DifferenceKind.DIFFERS, KEY, S1, ("a",)),
    ]
    return found


def test_a_key_is_written_as_people_write_it() -> None:
    assert shown_key(TABLE, KEY) == ("7", "é", "0x00FF")


def test_a_report_lists_differences_by_key() -> None:
    found = report_of(validation(), version=3, obstacles=1, seconds=1.23)
    assert found.complete
    assert not found.is_clean
    assert [(d.kind, d.key) for d in found.differences] == [
        ("differs", ("7", "é", "0x00FF")),
        ("extra", ("8", "", "0x")),
    ]
    told = list(lines(found))
    assert told[0] == "merged.t: 200 rows of 1 shards, 2 ranges, 1.2 s"
    assert f"  note: {S2} is not compared: it is held" in told
    assert f"  differs: id = 7, k = é, b = 0x00FF of {S1} in a" in told
    assert told[-1] == "  2 differences"
    assert any(line.startswith("  and 1 more") for line in lines(found, 1))


def test_statements_that_repair_come_behind_what_their_session_needs() -> None:
    made = validation()
    (extra, differs) = made.differences
    repairs = {differs: "UPDATE …;", extra: "DELETE …;"}
    found = report_of(made, version=3, obstacles=0, seconds=1, repairs=repairs)
    assert (
        found.repair_session
        == "SET SESSION time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO';"
    )
    told = list(lines(found))
    assert told[-6].endswith(f"in the same session: {found.repair_session}")
    assert (told[-4], told[-2]) == ("    UPDATE …;", "    DELETE …;")
    assert report_of(made, version=3, obstacles=0, seconds=1).repair_session == ""


def test_a_report_that_is_not_complete_says_why() -> None:
    halted = validation()
    halted.doubts = {KEY: Doubt(KEY)}
    halted.unsettled = [KEY]
    found = report_of(halted, version=3, obstacles=0, seconds=1, stopped="no patience")
    assert not found.complete
    told = list(lines(found))
    assert "  not complete: no patience" in told
    assert "  1 rows look different, but that is not confirmed" in told
    assert "  unsettled: id = 7, k = é, b = 0x00FF changed each time that it was read" in told


def test_counted_rows_are_told_by_their_numbers() -> None:
    bare = "CREATE TABLE t (a int)"
    table = compared_table(target(bare), [shard(S1, bare)])
    counted = TableValidation(table, SilentServers(), SilentServers(), scanned=True)
    counted.differences = [Difference(DifferenceKind.COUNT, ("99",), counts=(2, 4))]
    found = report_of(counted, version=1, obstacles=0, seconds=1)
    assert "  count: 2 rows of shards, 4 of the target: rows with the digest 99" in lines(found)


def test_a_counted_row_is_shown_with_the_shards_that_have_it() -> None:
    bare = "CREATE TABLE t (a int, b text)"
    table = compared_table(target(bare), [shard(S1, bare)])
    counted = TableValidation(table, SilentServers(), SilentServers(), scanned=True)
    counted.differences = [
        Difference(DifferenceKind.COUNT, ("99",), counts=(2, 4), owners=((S1, 2),))
    ]
    row = SampledRow({"a": None, "b": "x" * 61}, {})
    found = report_of(counted, version=1, obstacles=0, seconds=1, rows={("99",): row})
    assert found.differences[0].owners == {str(S1): 2}
    assert (
        "  count: 2 rows of shards (s1/app.t_1: 2), 4 of the target: rows with the digest 99:"
        f" a = NULL, b = {'x' * 59}…"
    ) in lines(found)


def test_what_a_comparison_does_not_prove_is_told_in_one_sentence() -> None:
    halted = validation()
    halted.unsettled = [KEY]
    found = report_of(halted, version=3, obstacles=2, seconds=1, stopped="no patience")
    keys, counted = "(7, é, 0x00FF), (8, , 0x)", "shards that could not be compared: 2"
    rest = "rows that changed each time they were read: 1"
    assert shortfalls(found) == (
        f"rows that differ: 2, such as {keys}; {rest}; {counted}; no patience"
    )
    told = shortfalls(found, ["s2: held"], kinds=True)
    assert "such as differs (7, é, 0x00FF), extra (8, , 0x);" in told
    assert "; not compared: s2: held; no patience" in told
    assert shortfalls(report_of(halted, version=3, obstacles=0, seconds=1)).endswith(rest)
