"""Statements in, the replay's text out."""

from __future__ import annotations

from pathlib import Path

from shardmerge.agents.replay.log import in_time
from shardmerge.agents.replay.steps import Stepper, Wanted
from shardmerge.agents.replay.text import SchemaText, step_text, verification_text
from shardmerge.agents.replay.verify import verify
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.recorded import Recorded, changed

STEPS = Path(__file__).parent / "replay" / "steps.txt"
COMMANDS = Path(__file__).parent / "replay" / "commands.txt"
LOCKED = Path(__file__).parent / "replay" / "locked.txt"
CREATE_TABLES = Path(__file__).parent / "replay" / "create_tables.txt"
DIFFERENCES = Path(__file__).parent / "replay" / "differences.txt"
TABLE = "(ID INT PRIMARY KEY, name VARCHAR(20) NOT NULL)"


def recorded() -> Recorded:
    """Shards come, differ, contradict each other, agree again and leave."""
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", "CREATE TABLE log1 (a INT)", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", "CREATE TABLE other (x INT)", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN level INT UNSIGNED")
    made.execute("s2", "ALTER TABLE tbl2\n  ADD COLUMN level DATE")
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN b INT, ADD INDEX (b)", "FLUSH TABLES")
    made.execute("s2", "ALTER TABLE tbl2 DROP COLUMN level, RENAME COLUMN name TO title")
    made.execute("s1", "ALTER TABLE tbl1 DROP COLUMN b", "ALTER TABLE tbl1 ADD COLUMN b TEXT")
    made.execute("s1", "ALTER TABLE tbl1 FOO", "DROP TABLE tbl1, log1")
    return made


def locked() -> Recorded:
    """Shards in pessimistic mode: a change waits until every shard has made it."""
    made = Recorded(mode="pessimistic")
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN a INT", "ALTER TABLE tbl1 DROP COLUMN name")
    made.execute("s2", "ALTER TABLE tbl2 ADD COLUMN a INT", "ALTER TABLE tbl2 DROP COLUMN name")
    return made


def commanded() -> Recorded:
    """A conflict that an operator ends, a paused shard, a target that stays as it is."""
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN a INT")
    made.execute("s2", "ALTER TABLE tbl2 ADD COLUMN a DATE")
    made.command(CommandKind.SKIP, "s2/tbl2")
    made.command(CommandKind.PAUSE, "s1/tbl1")
    made.command(CommandKind.DISABLE)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN b INT")
    made.command(CommandKind.RESUME, "s2/tbl2")
    made.command(CommandKind.ENABLE)
    return made


def steps(made: Recorded, schema: SchemaText, wanted: Wanted, *names: str) -> str:
    stepper = Stepper(made.pipeline, wanted)
    records = in_time(r for (topic, _), r in made.records.items() if topic in names)
    return "\n".join(step_text(step, schema) for step in stepper.steps(records))


def check(found: str, file: Path, update: bool) -> None:
    if update:
        file.write_text(found, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == found


def test_the_steps_read_as_reviewed(update_golden: bool) -> None:
    found = steps(recorded(), SchemaText.DIFF, Wanted(), "s1", "s2", "p.schema-log")
    check(found, STEPS, update_golden)


def test_the_steps_under_a_lock_read_as_reviewed(update_golden: bool) -> None:
    wanted = Wanted(from_version=3)
    check(steps(locked(), SchemaText.DIFF, wanted, "p.schema-log"), LOCKED, update_golden)


def test_the_steps_of_commands_read_as_reviewed(update_golden: bool) -> None:
    wanted = Wanted(from_version=4)
    check(steps(commanded(), SchemaText.DIFF, wanted, "p.schema-log"), COMMANDS, update_golden)


def test_create_tables_read_as_reviewed(update_golden: bool) -> None:
    wanted = Wanted(frozenset({"merged.tbl"}), from_version=3, to_version=5)
    found = steps(recorded(), SchemaText.FULL, wanted, "p.schema-log")
    check(found, CREATE_TABLES, update_golden)


def test_differences_read_as_reviewed(update_golden: bool) -> None:
    made = recorded()
    decisions = made.records["p.ddl", 0]
    header = tuple((name, b"6" if name == "version" else v) for name, v in decisions[4].headers)
    decisions[4] = changed(decisions[4], value=decisions[5].value, headers=header)
    decisions[6] = changed(decisions[6], key=b"merged.tbl/77")
    del decisions[-1]
    log = topics.schema_log(made.pipeline).name
    found = verify(made.pipeline, made.log(), made.topic, from_sources=True)
    assert found.folded == len(made.topic(log))
    check(verification_text(found), DIFFERENCES, update_golden)
