"""``shardmerge plan``: calls, what is shown, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shardmerge.agents.preview.putting_off import PutOff
from shardmerge.cli.main import main
from shardmerge.cli.planning import command as module
from shardmerge.cli.planning.side_by_side import Beside
from shardmerge.schemas.model.errors import StackError
from tests.recorded import Recorded
from tests.unit.cli.planning.pipelines import PIPELINE

NOTHING = "no decision: it changes no table's schema, or no connector reads its database"
ADDING = """
tables:
  - shards: s{1..2}/app.t_{1..2}
    sql: CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b VARCHAR(20))
steps:
  - shards: "*"
    sql: ALTER TABLE {table} ADD COLUMN n INT
"""
CONFLICT = """
tables:
  - shards: s{1,2}/app.t_1
    sql: CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)
steps:
  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 DROP COLUMN a}
  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 ADD COLUMN a DATE}
  - {shard: s2/app.t_1, sql: ALTER TABLE t_1 DROP COLUMN a}
  - {shard: s2/app.t_1, sql: ALTER TABLE t_1 ADD COLUMN a DATE}
"""

PAUSE = CONFLICT.replace("DATE", "INT")
"""With ``existing_rows = "hold"``: nobody can tell the target's values of the column."""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path


def plan(pipeline: Path, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["plan", "--pipeline", str(pipeline), *map(str, arguments)])


def rollout(pipeline: Path, text: str, *arguments: object) -> Result:
    path = pipeline.with_name("rollout.yaml")
    path.write_text(text, encoding="utf-8")
    return plan(pipeline, path, *arguments)


def shown(pipeline: Path, text: str, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rollout(pipeline, text, "--json", *arguments).stdout)
    return found


def test_a_clean_rollout_ends_with_0_and_needs_no_server_and_no_password(pipeline: Path) -> None:
    found = rollout(pipeline, ADDING)
    assert found.exit_code == 0, found.stderr
    assert found.stdout.splitlines() == [
        "plan for pipeline shop: 4 steps, 4 live shards (present: files)",
        "",
        "1. s1/app.t_1: ALTER TABLE `t_1` ADD COLUMN n INT",
        "    emit merged.t/5: column n is new",
        "      expanding: ALTER TABLE `merged`.`t` ADD COLUMN `n` int",
        "        waits for nothing; the shard's rows behind the change wait for it",
        "",
        "2. s1/app.t_2: ALTER TABLE `t_2` ADD COLUMN n INT",
        "    no-op merged.t/6: the target's schema already is the join of its shards' schemas",
        "    and 2 steps more like it",
        "",
        "clean: 0 holds, 0 conflicts, statements that lose values: 0",
    ]


def test_a_conflict_ends_with_1_and_shows_sides_ways_out_and_a_safe_order(pipeline: Path) -> None:
    found = rollout(pipeline, CONFLICT)
    assert found.exit_code == 1
    text = found.stdout
    assert "    HOLD s1/app.t_1: SM-1201: column a, type: date and int" in text
    assert "      int: s2/app.t_1\n" in text
    assert f"way out: shardmerge command skip --pipeline {pipeline} --shard s1/app.t_1" in text
    assert "LOSSY: the values of column a are gone" in text
    assert "released: s1/app.t_1" in text
    assert "NOT CLEAN: 1 hold, 1 conflict" in text
    assert "steps moved: 1 (no order without a hold moves fewer)\n  1, 3, 2, 4\n" in text


@pytest.mark.parametrize("processors", [1, 2])
def test_a_rollout_above_the_bound_gets_an_order_that_puts_off_what_holds(
    pipeline: Path, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "processors", lambda: processors)
    begun: list[object] = []

    class Noted(Beside[PutOff]):
        def __init__(self, work: Callable[[], PutOff]) -> None:
            super().__init__(work)
            begun.append(work)

    monkeypatch.setattr(module, "Beside", Noted)
    found = rollout(pipeline, CONFLICT, "--bound", 5)
    assert found.exit_code == 1, found.stderr
    assert "steps moved: 1 (an order that moves fewer may exist)\n  1, 3-4, 2\n" in found.stdout
    assert len(begun) == processors - 1


@pytest.mark.parametrize("format_", [(), ("--markdown",)])
def test_shards_whose_statements_name_another_table_are_told(
    pipeline: Path, format_: tuple[str, ...]
) -> None:
    text = ADDING.replace("{table} ADD", "t ADD") + (
        "  - {shard: s2/app.t_2, sql: ALTER TABLE t_2 DROP COLUMN b}\n"
        "  - {shard: s1/app.t_3, sql: DELETE FROM t}\n"
    )
    found = rollout(pipeline, text, *format_)
    assert found.exit_code == 0, found.stderr
    assert (
        "ote: no step changes s1/app.t\\_1, s1/app.t\\_2, s2/app.t\\_1, because the statements"
        if format_
        else "note: no step changes s1/app.t_1, s1/app.t_2, s2/app.t_1, because the statements"
    ) in found.stdout


def holding_rows(pipeline: Path) -> Path:
    """The pipeline; its route pauses a shard whose existing rows may differ."""
    text = PIPELINE.replace('"merged.t"', '"merged.t"\nexisting_rows = "hold"')
    pipeline.write_text(text, encoding="utf-8")
    return pipeline


def test_a_pause_ends_with_1_and_shows_the_shard_ways_out_and_a_safe_order(pipeline: Path) -> None:
    found = rollout(holding_rows(pipeline), PAUSE)
    assert found.exit_code == 1
    text = found.stdout
    assert "      PAUSES s1/app.t_1: its rows wait until an operator resumes it\n" in text
    assert f"way out: shardmerge command resume --pipeline {pipeline} --shard s1/app.t_1" in text
    told = "NOT CLEAN: 0 holds, 2 pauses, 0 conflicts, statements that lose values: 0"
    assert f"{told}; paused at the end: s1/app.t_1, s2/app.t_1\n" in text
    assert "safe order: this order leads to no hold and no pause; steps moved: 1" in text
    assert text.endswith("\n  1, 3, 2, 4\n")


def test_a_pause_is_in_json_and_markdown(pipeline: Path) -> None:
    found = shown(holding_rows(pipeline), PAUSE)
    assert (found["clean"], found["holds"], found["pauses"]) == (False, 0, 2)
    assert found["left_paused"] == ["s1/app.t_1", "s2/app.t_1"]
    pauses = [step["decisions"][0]["pauses"] for step in found["steps"]]
    assert pauses == [[], ["s1/app.t_1"], [], ["s2/app.t_1"]]
    assert (found["order"]["steps"], found["order"]["pauses"]) == ([1, 3, 2, 4], [])
    text = rollout(pipeline, PAUSE, "--markdown").stdout
    assert text.startswith("### ❌ shardmerge plan: shop\n")
    assert "⏸️ **pauses** `s1/app.t_1`" in text
    assert "#### Step 2 pauses `s1/app.t_1`\n\nIts rows wait until an operator" in text
    assert "#### Step 2 holds" not in text


def test_a_pause_that_every_order_leads_to_is_told(pipeline: Path) -> None:
    found = shown(holding_rows(pipeline), PAUSE.partition("  - {shard: s2")[0])
    assert (found["pauses"], found["left_paused"]) == (1, ["s1/app.t_1"])
    assert (found["order"]["steps"], found["order"]["pauses"]) == ([], [])
    assert found["order"]["note"].endswith("own order leads to a hold or a pause")


PAUSE_AND_CONFLICT = CONFLICT.replace("a INT)", "a INT, b INT)").replace(
    "steps:",
    "steps:\n"
    "  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 DROP COLUMN b}\n"
    "  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 ADD COLUMN b INT}",
)


@pytest.mark.parametrize(
    ("bound", "steps", "why"),
    [
        (2_000, [1, 2, 3, 5, 4, 6], "every order of these steps pauses or holds a shard"),
        (1, [1, 2, 3, 5, 6, 4], "an order that pauses no shard may exist"),
    ],
)
def test_where_a_pause_cannot_be_avoided_the_safe_order_still_avoids_holds(
    pipeline: Path, bound: int, steps: list[int], why: str
) -> None:
    found = shown(holding_rows(pipeline), PAUSE_AND_CONFLICT, "--bound", bound)
    assert (found["holds"], found["pauses"]) == (1, 1)
    order = found["order"]
    assert order["steps"] == steps
    assert order["pauses"] == ["s1/app.t_1"]
    assert order["note"].startswith("this order leads to no hold, but it pauses s1/app.t_1")
    assert order["note"].endswith(why)


def test_policies_that_pause_are_shown_side_by_side(pipeline: Path) -> None:
    found = shown(pipeline, PAUSE, "--compare", "existing_rows=hold,accept")["alternatives"]
    told = {each["setting"]: (each["pauses"], each["left_paused"]) for each in found}
    assert told == {
        "existing_rows=hold": (2, ["s1/app.t_1", "s2/app.t_1"]),
        "existing_rows=accept": (0, []),
    }
    assert found[0]["steps"][1] == "no-op, pauses 1 shard"
    lines = rollout(pipeline, PAUSE, "--compare", "existing_rows=hold").stdout.splitlines()
    assert lines[-1].endswith("held at the end: none, 2 pauses")


def test_the_ways_out_are_commands_that_exist(pipeline: Path) -> None:
    decision = shown(pipeline, CONFLICT)["steps"][1]["decisions"][0]
    commands = [way["command"].split()[:3] for way in decision["ways"] if way["command"]]
    assert ["shardmerge", "command", "skip"] in commands
    assert all(words[:2] == ["shardmerge", "command"] for words in commands)


def test_json_has_the_documented_shape(pipeline: Path) -> None:
    found = shown(pipeline, CONFLICT)
    assert {key: value for key, value in found.items() if key != "steps"} == {
        "pauses": 0,
        "paused_before": [],
        "left_paused": [],
        "pipeline": "shop",
        "present": "files",
        "shards": 2,
        "clean": False,
        "holds": 1,
        "conflicts": 1,
        "held_before": [],
        "left_held": [],
        "lossy": 1,
        "read_again": [],
        "untouched": [],
        "order": {
            "steps": [1, 3, 2, 4],
            "moved": 1,
            "shortest": True,
            "note": "this order leads to no hold; steps moved: 1 (no order without a hold moves "
            "fewer)",
            "pauses": [],
        },
        "alternatives": [],
    }
    third = found["steps"][2]
    assert (third["number"], third["shard"]) == (3, "s2/app.t_1")
    [decision] = third["decisions"]
    assert decision["outcome"] == "emit"
    assert [(s["kind"], s["lossy"]) for s in decision["statements"]] == [
        ("switching", "the values of column a are gone"),
        ("expanding", ""),
    ]


def test_an_order_without_a_hold_that_does_not_exist_is_not_told(pipeline: Path) -> None:
    text = CONFLICT.partition("steps:")[0] + (
        "steps:\n  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 MODIFY a DATE}\n"
    )
    found = shown(pipeline, text)
    assert found["order"]["steps"] == []
    assert found["order"]["note"].startswith("every order of these steps")
    assert found["left_held"] == ["s1/app.t_1"]


def test_with_a_bound_of_0_no_order_is_searched(pipeline: Path) -> None:
    assert shown(pipeline, CONFLICT, "--bound", 0)["order"] is None


def test_policies_are_shown_side_by_side(pipeline: Path) -> None:
    text = ADDING.replace("ADD COLUMN n INT", "RENAME COLUMN b TO c")
    found = shown(pipeline, text, "--compare", "renames=map,hold,copy")
    told = {each["setting"]: (each["holds"], each["lossy"]) for each in found["alternatives"]}
    assert told == {"renames=map": (0, 0), "renames=hold": (3, 0), "renames=copy": (0, 1)}
    assert found["alternatives"][1]["steps"][0] == "hold SM-1208"
    modes = shown(pipeline, text, "--compare", "mode=optimistic,pessimistic")["alternatives"]
    assert [each["steps"][0] for each in modes] == ["emit (1 expanding)", "waits for the lock"]
    lines = rollout(pipeline, text, "--compare", "renames=map,hold").stdout.splitlines()
    side_by_side = lines[lines.index("side by side:") + 1 :]
    assert side_by_side[0].startswith("  renames=map: 0 holds, 0 conflicts, 1 statement, ")
    assert side_by_side[2:5] == [
        "  step 1:",
        "    renames=map: emit (1 expanding)",
        "    renames=hold: hold SM-1208",
    ]


def test_a_wait_for_the_lock_is_no_hold_unless_it_stays(pipeline: Path) -> None:
    pipeline.write_text(PIPELINE.replace('"shop"', '"shop"\nmode = "pessimistic"', 1))
    found = rollout(pipeline, ADDING)
    assert found.exit_code == 0
    assert "waits for the DDL lock s1/app.t_1: SM-1213" in found.stdout
    some = ADDING.replace('"*"', "s1/app.t_*")
    found = rollout(pipeline, some)
    assert found.exit_code == 1
    assert "held at the end: s1/app.t_1, s1/app.t_2" in found.stdout


def test_rows_that_are_read_again_are_unknown_without_a_server(pipeline: Path) -> None:
    text = ADDING.replace("ADD COLUMN n INT", "ADD COLUMN n DATETIME DEFAULT CURRENT_TIMESTAMP")
    found = rollout(pipeline, text)
    assert "snapshot s1/app.t_1 (rows unknown)" in found.stdout
    assert "tables read again: s1/app.t_1, s1/app.t_2, s2/app.t_1, s2/app.t_2" in found.stdout


def test_markdown_shows_verdict_steps_holds_and_order(pipeline: Path) -> None:
    text = rollout(pipeline, CONFLICT, "--markdown", "--compare", "types=wide,published").stdout
    assert text.startswith("### ❌ shardmerge plan: shop\n\n**NOT CLEAN: 1 hold, 1 conflict")
    assert "#### Step 2 holds `s1/app.t_1`" in text
    assert "* `shardmerge command skip --pipeline" in text
    assert "#### Safe order" in text
    assert "`1, 3, 2, 4`" in text
    assert "|  | types=wide | types=published |" in text
    table = [line for line in text.splitlines() if line.startswith("| 3 |")]
    assert table[0].count(" | ") == 3
    assert rollout(pipeline, ADDING, "--markdown").stdout.startswith("### ✅")


def test_folders_of_migrations_and_tables_are_read(pipeline: Path) -> None:
    folder = pipeline.parent
    for source in ("s1", "s2"):
        at = folder / "schema" / source / "app"
        at.mkdir(parents=True)
        (at / "t_1.sql").write_text("CREATE TABLE `t_1` (\n  `id` int PRIMARY KEY\n);\n")
    (folder / "schema" / ".skeema").write_text("[production]\n")
    migrations = folder / "migrations"
    migrations.mkdir()
    (migrations / "V1__begin.sql").write_text("CREATE TABLE t_1 (id INT PRIMARY KEY);\n")
    (migrations / "V2__add.sql").write_text(
        "-- more columns\nALTER TABLE t_1 ADD a INT;\nINSERT INTO t_1 VALUES (1, 2);\n"
    )
    common = ["--tables", folder / "schema", "--shard", "s{1,2}/app.t_1", "--after", "1"]
    found = plan(pipeline, migrations, *common, "--order", "by-statement", "--json")
    assert found.exit_code == 0, found.stderr
    steps = json.loads(found.stdout)["steps"]
    assert [(step["shard"], step["origin"]) for step in steps] == [
        ("s1/app.t_1", "V2__add.sql:2"),
        ("s2/app.t_1", "V2__add.sql:2"),
        ("s1/app.t_1", "V2__add.sql:3"),
        ("s2/app.t_1", "V2__add.sql:3"),
    ]
    assert [len(step["decisions"]) for step in steps] == [1, 1, 0, 0]
    assert NOTHING in plan(pipeline, migrations, *common).stdout


def test_a_migration_is_executed_once_in_each_database(pipeline: Path) -> None:
    folder = pipeline.parent
    at = folder / "schema" / "s1" / "app"
    at.mkdir(parents=True)
    for name in ("t_1", "t_2"):
        (at / f"{name}.sql").write_text(f"CREATE TABLE {name} (id INT PRIMARY KEY);\n")
    (folder / "migrations").mkdir()
    (folder / "migrations" / "000008_old.up.sql").write_text("ALTER TABLE t_1 ADD z INT;\n")
    (folder / "migrations" / "000010_new.up.sql").write_text(
        "ALTER TABLE t_1 ADD a INT;\nALTER TABLE {table} ADD b INT;\n"
    )
    text = "steps:\n  - {shards: s1/app.t_*, file: migrations, after: 000008}\n"
    (folder / "rollout.yaml").write_text(text)
    found = plan(pipeline, folder / "rollout.yaml", "--tables", folder / "schema", "--json")
    steps = json.loads(found.stdout)["steps"]
    assert [(step["shard"], step["origin"]) for step in steps] == [
        ("s1/app.t_1", "000010_new.up.sql:1"),
        ("s1/app.t_1", "000010_new.up.sql:2"),
        ("s1/app.t_2", "000010_new.up.sql:2"),
    ]


SKEEMA_DIFF = """-- instance: 127.0.0.1:3306
USE `app`;
ALTER TABLE `t_1` DROP COLUMN `a`, ADD COLUMN `n` int DEFAULT NULL;
CREATE TABLE `more` (
  `id` int NOT NULL,
  PRIMARY KEY (`id`)
);
DELIMITER //
CREATE PROCEDURE `p`() BEGIN SELECT 1; END//
DELIMITER ;
"""


def test_what_skeema_diff_prints_is_a_migration(pipeline: Path) -> None:
    at = pipeline.parent / "schema" / "s1" / "app"
    at.mkdir(parents=True)
    (at / "t_1.sql").write_text("CREATE TABLE `t_1` (`id` int PRIMARY KEY, `a` int);\n")
    migration = pipeline.with_name("change.sql")
    migration.write_text(SKEEMA_DIFF, encoding="utf-8")
    tables = ("--tables", at.parents[1], "--shard", "s1/app.t_1")
    found = plan(pipeline, migration, *tables, "--json")
    assert found.exit_code == 0, found.stderr
    steps = json.loads(found.stdout)["steps"]
    assert [step["origin"] for step in steps] == [f"change.sql:{n}" for n in (2, 3, 4, 9)]
    [decision] = steps[1]["decisions"]
    assert decision["reason"] == "column n is new; no shard has a any more"


def test_a_database_that_the_connector_leaves_out_is_passed_over(pipeline: Path) -> None:
    text = pipeline.read_text(encoding="utf-8")
    only = text.replace('name = "s2"', 'name = "s2"\ndatabases = "other"')
    pipeline.write_text(only, encoding="utf-8")
    everybody = ADDING.replace('"*"', "s{1..2}/app.t_{1..2}")
    found = rollout(pipeline, everybody)
    assert "s1/app.t_1" in found.stdout
    assert NOTHING in found.stdout
    assert "merged.t/" in found.stdout
    pipeline.write_text(only.replace('name = "s1"', 'name = "s1"\ndatabases = "other"'))
    found = rollout(pipeline, everybody)
    assert found.exit_code == 2
    assert "no table of the files is a shard" in found.stderr
    assert "databases in [[sources]]" in found.stderr


def test_a_bundle_gives_the_present_with_its_holds(tmp_path: Path) -> None:
    made = Recorded()
    made.execute("s1", "CREATE TABLE tbl1 (id INT PRIMARY KEY, a INT)", snapshot=True)
    made.execute("s2", "CREATE TABLE tbl2 (id INT PRIMARY KEY, a INT)", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 MODIFY a DATE")
    bundle = made.write(tmp_path / "p.zip")
    pipeline = tmp_path / "pipeline.toml"
    text = PIPELINE.replace('"shop"', '"p"', 1).replace('"app"', '"shop"').replace("t_", "tbl")
    pipeline.write_text(text.replace("merged.t", "merged.tbl"))
    steps = "steps:\n  - {shard: s2/shop.tbl2, sql: ALTER TABLE tbl2 MODIFY a DATE}\n"

    found = shown(pipeline, steps, "--file", bundle, "--compare", "renames=hold")

    [decision] = found["steps"][0]["decisions"]
    assert (found["present"], found["shards"], found["clean"]) == ("bundle", 2, True)
    assert decision["released"] == ["s1/shop.tbl1"]
    assert decision["version"] == 4
    assert found["held_before"] == ["s1/shop.tbl1"]
    text = rollout(pipeline, steps, "--file", bundle).stdout
    assert "\nheld already before the rollout: s1/shop.tbl1\nclean: 0 holds" in text
    assert found["alternatives"][0]["setting"] == "renames=hold"
    modes = shown(pipeline, steps, "--file", bundle, "--compare", "mode=optimistic,pessimistic")
    assert [each["left_held"] for each in modes["alternatives"]] == [[], []]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("steps: []", [], "steps is missing, or empty"),
        ("steps: [1]", [], "steps 1 must be a mapping"),
        ("a: [", [], "is not YAML"),
        ("steps: [{shard: s9/app.t_1, sql: x}]\ntables: []", [], "no source 's9'"),
        ("steps: [{sql: x}]", [], "shards must be a shard"),
        ("steps: [{shard: s1/app.t_1, sql: x, file: y}]", [], "give either file or sql"),
        ("steps: [{shard: s1/app.t_1, order: odd, sql: x}]", [], "order 'odd' is not known"),
        (ADDING, ["--after", "1"], "--after and --order need --shard"),
        (ADDING, ["--compare", "renames=twice"], "renames 'twice' is not known"),
        (ADDING, ["--compare", "colour=red"], "expected NAME=VALUE,VALUE"),
        (ADDING, ["--json", "--markdown"], "give --json or --markdown, not both"),
        (ADDING, ["--file", "FILE"], "give only one of them"),
        (ADDING.replace("app.t_", "other.t_"), [], "no table of the files is a shard"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what(
    pipeline: Path, text: str, arguments: list[str], message: str
) -> None:
    if "s9" in text:
        text = ADDING.partition("steps:")[0] + text.partition("\n")[0]
    given = [str(pipeline) if word == "FILE" else word for word in arguments]
    found = rollout(pipeline, text, *given)
    assert found.exit_code == 2, found.stdout
    assert message in found.stderr


def test_sql_without_a_shard_is_refused(pipeline: Path, tmp_path: Path) -> None:
    (tmp_path / "m.sql").write_text("ALTER TABLE t ADD a INT")
    found = plan(pipeline, tmp_path / "m.sql")
    assert found.exit_code == 2
    assert "say with --shard which shards execute them" in found.stderr


def test_topics_are_read_with_the_files_passwords(pipeline: Path) -> None:
    steps = "steps:\n  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 ADD n INT}\n"
    found = rollout(pipeline, steps)
    assert found.exit_code == 2
    assert "environment variable NOT_SET_ANYWHERE is not set" in found.stderr


@pytest.mark.parametrize("format_", [(), ("--markdown",)])
def test_changesets_that_may_not_run_are_told(
    pipeline: Path, tmp_path: Path, format_: tuple[str, ...]
) -> None:
    (tmp_path / "c.sql").write_text(
        "--liquibase formatted sql\n--changeset anna:1 context:old\nALTER TABLE t_1 ADD o INT;\n"
        "--changeset anna:2 labels:v2\nALTER TABLE t_1 ADD n INT;\n"
        "--changeset anna:3\nALTER TABLE t_1 ADD m INT;\n"
    )
    (tmp_path / "t.txt").write_text("CREATE TABLE t (id INT PRIMARY KEY)")
    tables = ("--tables", f"s1/app.t_1={tmp_path / 't.txt'}")
    arguments = ("--shard", "s1/app.t_1", "--after", "anna:1", *tables, *format_)
    text = plan(pipeline, tmp_path / "c.sql", *arguments).stdout
    assert "only if it runs: changeset anna:2: labels:v2" in text
    assert "ote: 1 step may not run, because only the tool that executes the migrations" in text
    assert text.count("only if it runs") == 1


def test_without_kafka_it_ends_with_3(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def from_topics(_: object) -> None:
        raise StackError("Kafka at kafka:9092 does not answer", code="SM-4101")

    monkeypatch.setattr(module, "from_topics", from_topics)
    monkeypatch.setenv("NOT_SET_ANYWHERE", "x")
    found = rollout(pipeline, "steps:\n  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 ADD n INT}\n")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr == "error: SM-4101: Kafka at kafka:9092 does not answer\n"
