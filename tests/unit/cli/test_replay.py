"""``shardmerge replay`` and ``shardmerge export``: calls, exit codes, what goes where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shardmerge.cli.bundles import exported_topics, without_passwords
from shardmerge.cli.main import main
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.pipeline.tls import Tls
from tests.recorded import Recorded, altered, changed

TABLE = "(ID INT PRIMARY KEY)"


@pytest.fixture(scope="module")
def made() -> Recorded:
    made = Recorded()
    made.execute("s1", f"CREATE TABLE tbl1 {TABLE}", snapshot=True)
    made.execute("s2", f"CREATE TABLE tbl2 {TABLE}", "FLUSH TABLES", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD COLUMN a INT")
    return made


@pytest.fixture
def bundle(made: Recorded, tmp_path: Path) -> Path:
    return made.write(tmp_path / "p.zip")


def replay(*arguments: object, text: str = "") -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)], input=text)


def test_every_step_is_shown(bundle: Path) -> None:
    found = replay("--file", bundle)
    assert found.exit_code == 0
    titles = [line for line in found.stdout.splitlines() if line.startswith("step ")]
    assert titles == [
        "step 1: merged.tbl, version 1: emit",
        "step 2: merged.tbl, version 2: no-op",
        "step 3: merged.tbl, version 3: emit",
    ]
    assert found.stderr == (
        "Steps shown: 3; records of the schema-log read: 3; targets: merged.tbl\n"
    )


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        (["--target", "merged.tbl"], [1, 2, 3]),
        (["--target", "merged.none"], []),
        (["--shard", "s1/shop.tbl1"], [1, 3]),
        (["--shard", "s1/shop.tbl1", "--shard", "s2/shop.tbl2"], [1, 2, 3]),
        (["--step", "2"], [2]),
        (["--from-version", "2"], [2, 3]),
        (["--to-version", "1"], [1]),
        (["--since", "2023-11-14T22:13:20.001Z", "--until", "2023-11-14 22:13:20.055"], [2]),
        (["--since", "2023-11-14T22:13:20.056"], [3]),
        (["--since", "2023-11-14T23:13:20.056+01:00"], [3]),
        (["--until", "2023-11-14T22:13:20"], [1]),
        (["--from-sources"], [1, 2, 0, 3]),
    ],
)
def test_filters_choose_what_is_shown(bundle: Path, options: list[str], steps: list[int]) -> None:
    found = replay("--file", bundle, "--json", *options)
    assert found.exit_code == 0, found.stderr
    assert [json.loads(line)["step"] for line in found.stdout.splitlines()] == steps
    assert found.stderr.startswith(f"Steps shown: {len(steps)};")


def test_nothing_is_folded_after_the_step_that_was_asked_for(bundle: Path) -> None:
    assert (
        "Steps shown: 1; records of the schema-log read: 2;"
        in replay("--file", bundle, "--step", 2).stderr
    )


def test_create_table_is_shown_before_and_after(bundle: Path) -> None:
    found = replay("--file", bundle, "--step", 3, "--schema", "full").stdout
    assert "before: CREATE TABLE `merged`.`tbl` (" in found
    assert "after: CREATE TABLE `merged`.`tbl` (" in found
    assert found.count("`a` int") > found.count("+ `a` int") == 0


def test_pause_waits_after_each_step(bundle: Path) -> None:
    assert replay("--file", bundle, "--pause", text="\n\n\n").stdout.count("step ") == 3
    assert replay("--file", bundle, "--pause", text="\nq\n").stdout.count("\nstep ") == 1


def test_verify_ends_with_0_when_all_is_equal(bundle: Path) -> None:
    found = replay("--file", bundle, "--verify")
    assert (found.exit_code, found.stdout.splitlines()) == (
        0,
        [
            "read 3 records of the schema-log",
            "  p.ddl: 3 expected, 3 equal, 0 altered, 0 missing, 0 extra, 1 not compared",
            "  p.joined-schemas: 1 expected, 1 equal, 0 altered, 0 missing, 0 extra",
            "  p.signals: 0 expected, 0 equal, 0 altered, 0 missing, 0 extra",
            "equal",
        ],
    )
    found = replay("--file", bundle, "--verify", "--from-sources")
    assert found.exit_code == 0
    assert "p.schema-log: 3 expected, 3 equal" in found.stdout
    assert "p.ddl: 4 expected, 4 equal, 0 altered, 0 missing, 0 extra\n" in found.stdout


def test_verify_ends_with_1_and_names_the_decision_that_was_altered(bundle: Path) -> None:
    def alter(record: StoredRecord) -> list[StoredRecord]:
        if record.topic == "p.ddl" and record.key == b"merged.tbl/3":
            return [changed(record, value=(record.value or b"").replace(b" `a` int", b" `z` int"))]
        return [record]

    altered(bundle, alter)
    found = replay("--file", bundle, "--verify")
    assert found.exit_code == 1
    assert "DIFFERENCE  p.ddl: altered: decision merged.tbl/3\n" in found.stdout
    assert "`z` int' in the topic" in found.stdout
    assert found.stdout.endswith("\n1 difference\n")
    found = replay("--file", bundle, "--verify", "--json")
    first, last = map(json.loads, found.stdout.splitlines())
    assert (found.exit_code, first["difference"]["kind"], last["differences"]) == (1, "altered", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give one of --pipeline and --file"),
        (["--file", "x", "--pipeline", "y"], "give one of --pipeline and --file"),
        (["--file", "x", "--verify", "--step", "1"], "takes no filter"),
        (["--file", "x", "--json", "--pause"], "--pause is for steps as text"),
        (["--file", "x", "--since", "yesterday"], "is not a time"),
        (["--file", "x", "--step", "0"], "--step"),
        (["--file", "no-such-file"], "no-such-file"),
        (["--pipeline", "no-such-file"], "no-such-file"),
    ],
)
def test_a_wrong_call_ends_with_2(options: list[str], message: str) -> None:
    found = replay(*options)
    assert (found.exit_code, message in found.stderr) == (2, True), found.stderr


def test_a_wrong_input_ends_with_2_and_says_what_it_is(made: Recorded, tmp_path: Path) -> None:
    whole = made.bundle_bytes()
    file = tmp_path / "x.zip"
    file.write_bytes(whole[: len(whole) // 2])
    found = replay("--file", file)
    assert (found.exit_code, "its end is missing" in found.stderr) == (2, True)
    made.write(file, begin=2)
    found = replay("--file", file)
    assert found.exit_code == 2
    assert "begins at offset 2: the records before it were deleted" in found.stderr


def test_a_record_that_is_not_ours_ends_with_2_after_the_steps_before(bundle: Path) -> None:
    def alter(record: StoredRecord) -> list[StoredRecord]:
        ours = record.topic != "p.schema-log" or record.offset < 2
        return [record if ours else changed(record, value=b"hello")]

    altered(bundle, alter)
    found = replay("--file", bundle)
    assert (found.exit_code, found.stdout.count("step ")) == (2, 2)
    assert "@2: not an Avro single-object record" in found.stderr


def test_a_reader_that_has_seen_enough_is_no_error(bundle: Path) -> None:
    """As ``| head`` does."""
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-m", "shardmerge.cli.main", "replay", "--file", str(bundle)]
    with os.fdopen(writing, "wb") as closed:
        ended = subprocess.run(program, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert ended.stderr == b""


def test_export_refuses_to_overwrite(bundle: Path, made: Recorded, tmp_path: Path) -> None:
    pipeline = tmp_path / "pipeline.toml"
    pipeline.write_text(pipeline_text(made.pipeline), encoding="utf-8")
    before = bundle.read_bytes()
    arguments = ["export", "--pipeline", str(pipeline), "--output", str(bundle)]
    found = CliRunner().invoke(main, arguments)
    assert (found.exit_code, "exists" in found.stderr) == (2, True)
    assert bundle.read_bytes() == before


def test_export_of_a_broken_pipeline_file_leaves_nothing(tmp_path: Path) -> None:
    pipeline, output = tmp_path / "pipeline.toml", tmp_path / "b.zip"
    pipeline.write_text("[pipeline]", encoding="utf-8")
    arguments = ["export", "--pipeline", str(pipeline), "--output", str(output)]
    assert CliRunner().invoke(main, arguments).exit_code == 2
    assert list(tmp_path.iterdir()) == [pipeline]


def test_outputs_are_asked_for_before_what_they_are_made_from(made: Recorded) -> None:
    names = exported_topics(made.pipeline)
    assert names.index("p.ddl") < names.index("p.schema-log") < names.index("s1")
    assert names.index("p.schema-log") < names.index("p.commands")
    assert sorted(names) == sorted(spec.name for spec in topics.own_topics(made.pipeline))


def test_passwords_are_left_out(made: Recorded) -> None:
    assert "secret" in pipeline_text(made.pipeline)
    assert "secret" not in pipeline_text(without_passwords(made.pipeline))
    tls = Tls(mode="required", truststore="/secret", truststore_password="secret")
    everywhere = replace(
        made.pipeline,
        kafka=replace(made.pipeline.kafka, client=(("sasl.password", "secret"),)),
        connect=replace(made.pipeline.connect, user="secret", password="secret", tls=tls),
        sources=tuple(
            replace(
                source,
                tls=tls,
                connect_password="secret",
                snapshot="spark",
                load_host="r",
                load_password="secret",
            )
            for source in made.pipeline.sources
        ),
        target=replace(made.pipeline.target, tls=tls),
    )
    assert "secret" not in pipeline_text(without_passwords(everywhere))
    lake = SparkCatalog("lake", (("credential", "secret"), ("type", "rest"), ("uri", "http://c")))
    iceberg = replace(everywhere, target=replace(made.pipeline.target, catalog=lake))
    assert "secret" not in pipeline_text(without_passwords(iceberg))
