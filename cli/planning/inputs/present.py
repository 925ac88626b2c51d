"""What the agents know now: from topics, from a bundle, or from files of CREATE TABLE."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.agents.preview.present import line_state
from shardmerge.agents.preview.rollout import TableFile
from shardmerge.agents.preview.simulated_agents import AgentsState, SimulatedAgents
from shardmerge.agents.replay.bundle import Bundle
from shardmerge.agents.replay.log import Refold, in_time
from shardmerge.cli.bundles import folded_topics, write_from_kafka
from shardmerge.schemas.model.errors import ConfigError, ContractError
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Outcome

from .folders import databases_below, sql_files, text_of
from .names import expanded, named_shards
from .table_files import table_like, tables_of


class LenientEnvironment(dict[str, str]):
    """Environment variables. One that is not set has the text ``${NAME}`` as its value.

    A plan that asks no server needs no passwords.
    """

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return f"${{{name}}}"


def from_topics(pipeline: Pipeline) -> AgentsState:
    """The present of a running pipeline: its topics are read, and nothing is written.

    Raises:
        StackError: Kafka does not answer, or a topic does not exist.
        ContractError: The first records of a topic were deleted.
    """
    names = folded_topics(pipeline, from_sources=True)
    with tempfile.TemporaryFile() as file:
        write_from_kafka(pipeline, names, file, required=names)
        return from_bundle(pipeline, Bundle(file, f"Kafka at {pipeline.kafka.bootstrap_servers}"))


def from_bundle(pipeline: Pipeline, bundle: Bundle) -> AgentsState:
    """The present at the end of a bundle.

    Args:
        pipeline: Its routes and sources count; the bundle may be of an older pipeline file.
        bundle: A file that ``shardmerge export`` wrote.

    Raises:
        ContractError: The bundle lacks records.
    """
    log, *sources = folded_topics(bundle.pipeline, from_sources=True)
    tracker = Refold(TrackerHandler(bundle.pipeline))
    coordinator = Refold(CoordinatorHandler(bundle.pipeline))
    ends: dict[str, int] = {}
    for fold, names in ((tracker, sources), (coordinator, [log])):
        parts = [part for name in names for part in bundle.partitions(name)]
        for part in parts:
            if part.begin > 0:
                raise ContractError(
                    f"{part.topic}/{part.partition} begins at offset {part.begin}: the records "
                    "before it were deleted, and a plan needs them all",
                    hint="set the topic's retention to -1, and plan from CREATE TABLE files with "
                    "--tables",
                    code="SM-2118",
                )
            ends[part.topic] = part.end
        for record in in_time(bundle.records(part) for part in parts):
            fold.rows.take(fold.effects(record))
    return line_state(pipeline, tracker.rows, coordinator.rows, ends)


def from_tables(agents: SimulatedAgents, tables: Iterable[TableFile]) -> AgentsState:
    """The present that files describe.

    Raises:
        ConfigError: No table has a route, a table cannot be a shard, or the tables have no joined
            schema.
    """
    state = AgentsState()
    for table in tables:
        state, answers = agents.described(state, table)
        for answer in answers:
            if answer.decision.outcome is Outcome.HOLD:
                raise ConfigError(
                    f"{table.origin}: {answer.decision.shard} would be held before the rollout: "
                    f"{answer.decision.reason}",
                    hint=answer.decision.hint,
                    code="SM-5604",
                )
    if not state.targets:
        raise ConfigError(
            "no table of the files is a shard: no route of the pipeline file fits",
            hint="check database and table in [[routes]], databases in [[sources]], and the "
            "databases that --tables names",
            code="SM-5604",
        )
    return state


def table_files(options: Sequence[str], pipeline: Pipeline) -> list[TableFile]:
    """The tables of ``--tables``.

    Args:
        options: Each in one of three forms. ``PATH`` is a folder with ``SOURCE/DATABASE/*.sql``.
            ``SOURCE/DATABASE=PATH`` gives the tables of a database.
            ``SOURCE/DATABASE.TABLE=PATH`` gives shards the table of one file. Braces name several
            databases or shards (``names.expanded``).
        pipeline: Has the sources.

    Raises:
        ConfigError: A file cannot be read, or the pipeline does not have a source.
    """
    found: list[TableFile] = []
    for each in options:
        name, equals, path = each.rpartition("=")
        where = f"--tables {each}"
        if not equals:
            found += _of_folder(Path(path), pipeline, where)
        elif "." in name.partition("/")[2]:
            text = text_of(Path(path))
            for shard in named_shards([name], (), pipeline, where):
                context = server_context(pipeline.source(shard.source))
                found.append(table_like(text, path, shard, context))
        else:
            files = sql_files(Path(path))
            for source, database in _databases(name, where):
                context = server_context(pipeline.source(source))
                found += tables_of(files, source, database, context)
    return found


def _databases(name: str, where: str) -> Iterator[tuple[str, str]]:
    """The sources and databases that a text, which may have braces, stands for."""
    for each in expanded(name):
        source, slash, database = each.partition("/")
        if not slash or not database:
            raise ConfigError(
                f"{where}: write SOURCE/DATABASE=PATH, or SOURCE/DATABASE.TABLE=PATH",
                code="SM-5601",
            )
        yield source, database


def _of_folder(path: Path, pipeline: Pipeline, where: str) -> list[TableFile]:
    if not path.is_dir():
        raise ConfigError(
            f"{where}: {path} is no folder",
            hint="a single file needs SOURCE/DATABASE=PATH, or SOURCE/DATABASE.TABLE=PATH",
            code="SM-5601",
        )
    found: list[TableFile] = []
    for source, database, folder in databases_below(path):
        context = server_context(pipeline.source(source))
        found += tables_of(sql_files(folder), source, database, context)
    if not found:
        raise ConfigError(
            f"{where}: no file SOURCE/DATABASE/*.sql with CREATE TABLE",
            hint="for the files of one database write SOURCE/DATABASE=PATH",
            code="SM-5604",
        )
    return found
