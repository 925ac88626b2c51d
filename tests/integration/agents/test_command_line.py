"""``shardmerge command`` on a real broker: given, answered, and the same after a kill."""

from __future__ import annotations

from click.testing import CliRunner, Result

from shardmerge.cli.main import main
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.operator_commands import OperatorCommand

from .line import Line


def give(line: Line, *words: str, wait: str = "60") -> Result:
    options = ["--pipeline", str(line.pipeline_file), "--wait", wait]
    return CliRunner().invoke(main, ["command", *words, *options])


def test_a_held_shard_is_left_by_a_command_and_a_replay_includes_it(line: Line) -> None:
    one, two = line.sources
    create = "CREATE TABLE {} (ID INT PRIMARY KEY, a INT)"
    line.execute(one, create.format("tbl00"), snapshot=True)
    line.execute(two, create.format("tbl01"), snapshot=True)
    line.start()
    line.wait_decided(line.events())
    line.execute(two, "ALTER TABLE tbl01 MODIFY a DATE")
    line.wait_decided(line.events())
    held = f"{two}/shop.tbl01"

    skipped = give(line, "skip", "--shard", held)
    again = give(line, "skip", "--shard", held)
    described = give(
        line, "set-schema", "CREATE TABLE t (ID INT PRIMARY KEY, a BIGINT)", "--shard", held
    )
    unknown = give(line, "disable", "--target", "merged.nothing")

    assert (skipped.exit_code, again.exit_code) == (0, 1), skipped.output + again.output
    assert f"released: {held}" in skipped.output
    assert f"refused, version 5: {held} is not held" in again.output
    assert "MODIFY COLUMN `a` bigint" in described.output
    assert "there is no target merged.nothing" in unknown.output
    # A record of the source is repeated after this, whose rows the command has overwritten since.
    line.kill()
    late = give(line, "pause", "--shard", held, wait="1")
    assert late.exit_code == 1
    assert "not answered within 1 s" in late.stderr
    line.start()
    line.wait_decided(line.events() + 5)
    # The tracker knows what was told: the next statement is read on top of it.
    line.execute(two, "ALTER TABLE tbl01 ADD COLUMN b INT")
    line.wait_decided(line.events() + 5)
    last = max((d for d in line.decisions() if d.target), key=lambda d: d.version)
    assert [c.column.type.name for c in last.columns] == ["int", "bigint", "int"]
    log = [codec.decode(r.value) for r in line.written(topics.schema_log(line.pipeline).name)]
    # The one that the kill came upon may stand there twice, with equal bytes.
    assert len({record for record in log if isinstance(record, OperatorCommand)}) == 5
    words = ["replay", "--pipeline", str(line.pipeline_file), "--verify", "--from-sources"]
    replayed = CliRunner().invoke(main, words)
    assert replayed.exit_code == 0, replayed.output


def test_a_command_line_that_says_too_much_or_too_little_is_refused(line: Line) -> None:
    for words in (
        ("skip",),
        ("disable", "--shard", "s/a.t"),
        ("pause", "now", "--shard", "s/a.t", "--target", "merged.tbl"),
        ("skip", "--shard", "nothing"),
        ("skip", "--shard", "s/elsewhere.t"),
    ):
        result = give(line, *words)
        assert result.exit_code == 2, result.output
        assert "Error:" in result.output


def test_a_source_whose_shards_were_taken_out_can_be_removed(line: Line) -> None:
    one, two = line.sources
    create = "CREATE TABLE {} (ID INT PRIMARY KEY, a INT)"
    line.execute(one, create.format("tbl00"), snapshot=True)
    line.execute(two, create.format("tbl01"), snapshot=True)
    line.execute(two, "ALTER TABLE tbl01 ADD COLUMN only_two INT")
    line.start()
    line.wait_decided(line.events())

    left = give(line, "leave", "--shard", f"{two}/shop.tbl01")

    assert left.exit_code == 0, left.output
    assert "DROP COLUMN `only_two`" in left.output
    assert "stay in the target" in left.output
    line.kill()
    text = line.pipeline_file.read_text()
    line.pipeline_file.write_text(text[: text.rindex("[[sources]]")])
    line.start()
    line.execute(one, "ALTER TABLE tbl00 DROP COLUMN a")
    line.wait_decided(line.events() + 1)
    last = max((d for d in line.decisions() if d.target), key=lambda d: d.version)
    assert ["DROP COLUMN `a`" in s.sql for s in last.statements] == [True]
    words = ["replay", "--pipeline", str(line.pipeline_file), "--verify"]
    replayed = CliRunner().invoke(main, words)
    assert replayed.exit_code == 0, replayed.output
