"""Where the present tables come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from shardmerge.agents.preview.rollout import RolloutStep
from shardmerge.agents.preview.simulated_agents import SimulatedAgents
from shardmerge.agents.replay.bundle import Bundle
from shardmerge.cli.planning.inputs import present
from shardmerge.cli.planning.inputs.present import (
    from_bundle,
    from_tables,
    from_topics,
    table_files,
)
from shardmerge.schemas.model.errors import ConfigError, ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision
from tests.recorded import Recorded
from tests.unit.cli.planning.pipelines import pipeline


def recorded() -> Recorded:
    made = Recorded()
    made.execute("s1", "CREATE TABLE tbl1 (id INT PRIMARY KEY)", snapshot=True)
    made.execute("s2", "CREATE TABLE tbl2 (id INT PRIMARY KEY)", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD a INT")
    return made


def decisions(made: Recorded) -> list[Decision]:
    found = [codec.decode(record.value or b"") for record in made.topic("p.ddl")]
    return [record for record in found if isinstance(record, Decision)]


def test_a_statement_behind_a_bundle_is_decided_as_the_agents_decide_it(tmp_path: Path) -> None:
    made = recorded()
    with made.write(tmp_path / "p.zip").open("rb") as file:
        before = from_bundle(made.pipeline, Bundle(file, "p.zip"))
    step = RolloutStep(ShardId("s2", "shop", "tbl2"), "ALTER TABLE tbl2 ADD a BIGINT")

    _, [answer] = SimulatedAgents(made.pipeline).executed(before, step)
    made.execute("s2", step.sql)
    *_, earlier, decided = decisions(made)

    # The time, and the place in the binlog, are only known when it is executed.
    told = replace(answer.decision, position=decided.position, ts_ms=decided.ts_ms)
    assert told == decided
    assert answer.decision.position > earlier.position


def test_the_topics_give_the_same_present_as_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recorded()
    asked: list[Sequence[str]] = []

    def write(_: object, names: Sequence[str], file: IO[bytes], *, required: object) -> None:
        asked.append(names)
        file.write(made.bundle_bytes())

    monkeypatch.setattr(present, "write_from_kafka", write)
    found = from_topics(made.pipeline)
    with made.write(tmp_path / "p.zip").open("rb") as file:
        assert found == from_bundle(made.pipeline, Bundle(file, "p.zip"))
    assert list(found.shards) == [ShardId("s1", "shop", "tbl1"), ShardId("s2", "shop", "tbl2")]
    assert asked == [("p.schema-log", "p.commands", "s1", "s2")]


def test_a_bundle_that_lacks_its_beginning_is_refused(tmp_path: Path) -> None:
    path = recorded().write(tmp_path / "p.zip", begin=1)
    with path.open("rb") as file, pytest.raises(ContractError, match="begins at offset 1"):
        from_bundle(recorded().pipeline, Bundle(file, "p.zip"))


def test_tables_that_cannot_be_joined_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    (tmp_path / "b.sql").write_text("CREATE TABLE t (id INT PRIMARY KEY, a DATE)")
    told = [f"s1/app.t_1={tmp_path}/a.sql", f"s2/app.t_{{1,2}}={tmp_path}/b.sql"]
    files = table_files(told, pipeline())
    assert [str(each.shard) for each in files] == ["s1/app.t_1", "s2/app.t_1", "s2/app.t_2"]
    with pytest.raises(ConfigError, match=r"s2/app\.t_1 would be held before the rollout"):
        from_tables(SimulatedAgents(pipeline()), files)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("s1=PATH", "write SOURCE/DATABASE=PATH"),
        ("PATH", "no file SOURCE/DATABASE"),
        ("PATH/none", "is no folder"),
        ("s1/app.t_1=PATH/none.sql", "cannot be read"),
        ("s9/app=PATH", "no source 's9'"),
    ],
)
def test_a_place_without_tables_is_refused(told: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        table_files([told.replace("PATH", str(tmp_path))], pipeline())


def test_braces_give_several_databases_the_tables_of_one_folder(tmp_path: Path) -> None:
    (tmp_path / "t.sql").write_text("CREATE TABLE t_1 (id INT PRIMARY KEY);\n")
    (tmp_path / "u.sql").write_text("CREATE TABLE t_2 (id INT PRIMARY KEY);\n")
    found = table_files([f"s{{1..2}}/app{{3,4}}={tmp_path}"], pipeline())
    assert [str(table.shard) for table in found] == [
        f"{source}/{database}.{table}"
        for source in ("s1", "s2") for database in ("app3", "app4") for table in ("t_1", "t_2")
    ]  # fmt: skip


def test_braces_that_name_no_database_or_no_source_are_refused(tmp_path: Path) -> None:
    for name, message in (("s1/{a,}", "write SOURCE/DATABASE=PATH"), ("s{1..3}/app", "s3")):
        with pytest.raises(ConfigError, match=message):
            table_files([f"{name}={tmp_path}"], pipeline())
