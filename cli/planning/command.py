"""``shardmerge plan``: shows what a rollout would do, before anybody executes it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from shardmerge.agents.preview.plan import Plan, numbered, planned
from shardmerge.agents.preview.putting_off import PutOff, putting_off
from shardmerge.agents.preview.report import Asked, is_clean, shown_plan
from shardmerge.agents.preview.rollout import RolloutStep, TableFile
from shardmerge.agents.preview.safe_order import DEFAULT_BOUND, SafeOrder, begins, safe_order
from shardmerge.agents.preview.simulated_agents import AgentsState, SimulatedAgents
from shardmerge.agents.replay.bundle import Bundle
from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import FILE, json_option, pipeline_option
from shardmerge.cli.screen import print_json
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline

from .alternatives import alternatives, settings_of
from .inputs.present import (
    LenientEnvironment,
    from_bundle,
    from_tables,
    from_topics,
    table_files,
)
from .inputs.rollout_file import ORDERS, StepEntry, read_rollout, steps_of
from .inputs.row_counts import row_counts
from .markdown import plan_markdown
from .side_by_side import Beside, processors
from .text import plan_lines

_PATH = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class _Given:
    """What the command line gives, as it is written there."""

    files: tuple[Path, ...]
    shards: tuple[str, ...]
    tables: tuple[str, ...]
    bundle: Path | None
    after: str
    order: str


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What the command line and its files say."""

    pipeline: Pipeline
    entries: tuple[StepEntry, ...]
    tables: tuple[TableFile, ...]
    bundle: Path | None

    @property
    def present(self) -> str:
        """Where the present tables come from; see ``ShownPlan``."""
        return "files" if self.tables else "bundle" if self.bundle else "topics"


@click.command()
@click.argument("files", nargs=-1, required=True, type=_PATH, metavar="FILE...")
@pipeline_option
@click.option(
    "--shard",
    "shards",
    multiple=True,
    metavar="SHARD",
    help="Execute FILE, a migration or a folder of migrations, on this shard "
    "(SOURCE/DATABASE.TABLE). Braces and wildcards name several: s{1..4}/app.t_*.",
)
@click.option(
    "--tables",
    multiple=True,
    metavar="[NAME=]PATH",
    help="Plan without any server, from CREATE TABLE files: a folder with SOURCE/DATABASE/*.sql; "
    "SOURCE/DATABASE=PATH; or SOURCE/DATABASE.TABLE=PATH. Braces name several: s{1..4}/app{1..9}.",
)
@click.option(
    "--file", "bundle", type=FILE, help="Plan from a bundle of `shardmerge export`, without Kafka."
)
@click.option(
    "--after",
    default="",
    metavar="VERSION",
    help="Leave out the migrations up to this one: they are done.",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default=ORDERS[0],
    show_default=True,
    help="by-shard: a shard executes all of FILE before the next shard begins. by-statement: all "
    "shards execute a statement before the next statement comes.",
)
@click.option(
    "--compare",
    "compared",
    multiple=True,
    metavar="NAME=VALUE,VALUE",
    help="Also plan with each of these values of a policy or of the mode, such as "
    "renames=map,hold,copy.",
)
@click.option(
    "--bound",
    type=click.IntRange(0),
    default=DEFAULT_BOUND,
    show_default=True,
    help="How many statements the search for a safe order may try.",
)
@click.option("--rows", "ask_rows", is_flag=True, help="Ask the sources how many rows tables have.")
@click.option("--markdown", is_flag=True, help="Markdown for a pull request.")
@json_option
def plan(
    files: tuple[Path, ...],
    path: Path,
    *,
    shards: tuple[str, ...],
    tables: tuple[str, ...],
    bundle: Path | None,
    after: str,
    order: str,
    compared: tuple[str, ...],
    bound: int,
    ask_rows: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """Show what the targets would do at each step of a rollout. Nothing is changed anywhere.

    FILE is a rollout file in YAML. With --shard it is a file or a folder of SQL migrations: of
    Flyway, Liquibase, golang-migrate, or any tool that executes SQL files in order. The present
    tables come from the pipeline's topics, which are only read, or from --tables or --file.

    Ends with 0 when no step holds or pauses a shard; with 1 when one does, or a shard is left held;
    with 2 when the call or a file is wrong; with 3 when Kafka does not answer.
    """
    with telling_errors(), _without_collection():
        if markdown and as_json:
            raise ConfigError("give --json or --markdown, not both", code="SM-5601")
        settings = [setting for text in compared for setting in settings_of(text)]
        given = _Given(files, shards, tables, bundle, after, order)
        inputs = _read_inputs(path, given, ask_rows=ask_rows)
        agents = SimulatedAgents(inputs.pipeline)
        present = _present(inputs)
        before = present(agents)
        steps = steps_of(inputs.entries, list(before.shards), inputs.pipeline)
        rows = row_counts(inputs.pipeline, _live(before)) if ask_rows else {}
        made, order_found = _planned(agents, before, steps, bound)
        found = alternatives(
            inputs.pipeline, present, settings, steps, commanded=inputs.present != "files"
        )
        report = shown_plan(
            Asked(agents, path, inputs.present, rows),
            made,
            order_found,
            tuple(found),
        )
    if as_json:
        print_json(report)
    elif markdown:
        click.echo(plan_markdown(report), nl=False)
    else:
        click.echo("\n".join(plan_lines(report)))  # one call: there can be 100,000 lines
    raise SystemExit(ExitCode.GOOD if report.clean else ExitCode.FOUND)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Switch garbage collection off: planning keeps all its states, so there is no garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # the states stay until the process ends: no collection looks at them
        gc.enable()


def _planned(
    agents: SimulatedAgents, before: AgentsState, steps: list[RolloutStep], bound: int
) -> tuple[Plan, SafeOrder | None]:
    """The plan, and what the search for a safe order finds; None when nothing is searched.

    In a large rollout that stops a shard, the steps are put off in a process of its own, while this
    one goes on with the plan.
    """
    beside: list[Beside[PutOff]] = []

    def put_off() -> PutOff:
        return putting_off(agents, before, steps, agents.tables_after(before, steps))

    def on_stop() -> None:
        if bound and not begins(len(steps), bound) and processors() > 1:
            beside.append(Beside(put_off))

    made = planned(agents, before, numbered(steps), on_stop)
    if is_clean(made) or not bound:
        return made, None
    known = beside[0].result if beside else None
    return made, safe_order(agents, made, bound, known)


def _read_inputs(path: Path, given: _Given, *, ask_rows: bool) -> _Inputs:
    text = path.read_text(encoding="utf-8")
    # When everything is in files, no server is asked. Then passwords need not be set.
    pipeline = parse_pipeline(text, LenientEnvironment(os.environ))
    described = table_files(given.tables, pipeline)
    if given.shards:
        entries = tuple(
            StepEntry(given.shards, each, after=given.after, order=given.order, where="--shard")
            for each in given.files
        )
    else:
        read = read_rollout(_rollout_file(given), pipeline)
        described += read.tables
        entries = read.steps
    if described and given.bundle:
        raise ConfigError(
            "the present tables come from CREATE TABLE files and from --file: give only one of "
            "them",
            code="SM-5601",
        )
    if ask_rows or not (described or given.bundle):
        pipeline = parse_pipeline(text, os.environ)
    return _Inputs(pipeline, entries, tuple(described), given.bundle)


def _rollout_file(given: _Given) -> Path:
    if len(given.files) != 1 or given.files[0].is_dir() or given.files[0].suffix == ".sql":
        raise ConfigError(
            "without --shard, FILE must be one rollout file in YAML",
            hint="for SQL files or folders, say with --shard which shards execute them",
            code="SM-5601",
        )
    if given.after or given.order != ORDERS[0]:
        raise ConfigError(
            "--after and --order need --shard",
            hint="in a rollout file, give each entry of steps its own after and order",
            code="SM-5601",
        )
    return given.files[0]


def _present(inputs: _Inputs) -> Callable[[SimulatedAgents], AgentsState]:
    """A function that gives what the agents know; topics and bundles are read once."""
    if inputs.tables:
        return lambda agents: from_tables(agents, inputs.tables)
    if inputs.bundle is not None:
        with inputs.bundle.open("rb") as file:
            state = from_bundle(inputs.pipeline, Bundle(file, str(inputs.bundle)))
    else:
        state = from_topics(inputs.pipeline)
    return lambda agents: state


def _live(state: AgentsState) -> list[ShardId]:
    return list(state.shards)
