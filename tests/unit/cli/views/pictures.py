"""Pictures and logs of recorded pipelines, for the tests of the views."""

from __future__ import annotations

from pathlib import Path

from shardmerge.cli.views.explanation import Asked
from shardmerge.cli.views.picture import Picture, picture_of
from shardmerge.cli.views.target_log import AsOf, TargetLog, target_log
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.schemas.records.record_format import AVRO
from shardmerge.schemas.records.validations import TargetValidation
from tests.recorded import Recorded

TARGET = TargetTable("merged", "tbl")
ONE, TWO = ShardId("s1", "shop", "tbl1"), ShardId("s2", "shop", "tbl2")
FILE = Path("my pipeline.toml")
AT_MS = 1_700_000_100_000


def recorded(*more: tuple[str, str], mode: str = "optimistic") -> Recorded:
    """Two shards with the columns id and a, and what their sources execute then."""
    made = Recorded(2, mode)
    for source, table in (("s1", "tbl1"), ("s2", "tbl2")):
        made.execute(source, f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT)", snapshot=True)
    for source, ddl in more:
        made.execute(source, ddl)
    return made


def conflicting() -> Recorded:
    """The second shard is held: its column a is a DATE now."""
    return recorded(("s2", "ALTER TABLE tbl2 MODIFY a DATE"))


def locked() -> Recorded:
    """The second shard waits for the DDL lock with a new column b."""
    return recorded(("s2", "ALTER TABLE tbl2 ADD b INT"), mode="pessimistic")


def reported(made: Recorded, progress: SinkProgress) -> Recorded:
    """The sink reports."""
    topic = topics.sink_progress(made.pipeline).name
    made.append(topic, 0, str(progress.target).encode(), codec.encode(progress))
    return made


def compared(made: Recorded, found: TargetValidation) -> Recorded:
    """Somebody compares a target with its shards."""
    topic = topics.validations(made.pipeline).name
    made.records.setdefault((topic, 0), [])
    made.append(topic, 0, found.record_key.encode(), codec.encode(found))
    return made


def picture(made: Recorded) -> Picture:
    """What the topics say."""
    specs = (
        topics.sink_progress,
        topics.joined_schemas,
        topics.ddl,
        topics.commands,
        topics.validations,
    )
    names = (spec(made.pipeline).name for spec in specs)
    records = (record for name in names for record in made.topic(name))
    return picture_of(made.pipeline, records, AVRO, AT_MS)


def log(made: Recorded, as_of: AsOf | None = None, shard: ShardId | None = None) -> TargetLog:
    """The fold of merged.tbl."""
    records = (r for r in made.log() if r.key == str(TARGET).encode())
    return target_log(made.pipeline, TARGET, records, as_of or AsOf(), shard)


def asked(made: Recorded, shard: ShardId) -> Asked:
    """The question why a shard stands."""
    return Asked(picture(made), log(made), shard, FILE)
