"""``shardmerge plan``: migrations, tables, bundles and topics that it reads, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recorded import Recorded
from tests.unit.cli.planning.pipelines import PIPELINE
from tests.unit.cli.planning.rollouts import ADDING, NOTHING, plan, rollout, shown


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
