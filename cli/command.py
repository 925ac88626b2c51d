"""``shardmerge command``: sends an operator's command, and prints the coordinator's answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import click
from confluent_kafka import Consumer, KafkaException, TopicPartition

from shardmerge.connectors.access.kafka import check_admitted, client_error
from shardmerge.connectors.access.kafka import consumer as consumer_of
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.kafka.client_offsets import valid_offset
from shardmerge.connectors.kafka.command_topic import send_command
from shardmerge.connectors.kafka.record_formats import record_format
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.policies import SETTABLE
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.given_commands import KINDS, given_command
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId

from .options import json_option, pipeline_option, wait_option
from .parameters import by_option, login_name, read_pipeline
from .screen import print_json
from .views.call_shapes import GivenCommand
from .views.decisions import decision_line
from .views.picture import Decided

_SEND_S = 30.0
_HELP = f"""Tell a target's coordinator what to do, and print its answer.

\b
skip             Ignore the held change of --shard.
replace          Treat the held change of --shard as the ALTER TABLE in ARGUMENT.
set-schema       Take the CREATE TABLE in ARGUMENT as the schema of --shard.
unlock-execute   Execute the change with which --shard waits for the DDL lock, without
                 waiting for the other shards.
unlock-discard   Ignore that change on all shards that made it.
disable          Keep the target's schema as it is, until enable.
enable           Execute what the shards changed since disable.
pause            Let the rows of --shard wait, until resume.
resume           Let the rows of --shard go on.
reread           Read the table of --shard again, into the target.
leave            Take --shard out of the target. ARGUMENT "delete": its rows, too.
set-mode         Set the mode: ARGUMENT is optimistic, pessimistic, or "" for that of the
                 routes.
set-policy       Set a policy: ARGUMENT is NAME=VALUE as in a route, or NAME= for that of
                 the routes. NAME: {", ".join(SETTABLE)}.

ARGUMENT may be @FILE: the text is read from the file. Every command is recorded in the
pipeline's topics and can be replayed. The exit code is 1 when the command is refused, or is not
answered in time; then it stays recorded, and the agents carry it out later.
"""
_KINDS = [kind.value for kind in KINDS]


@dataclass(frozen=True, slots=True)
class Given:
    """A command that is in the log.

    Attributes:
        id: The command's id; its answer has the same one.
        answer: None when none came in time.
    """

    id: ChangeId
    answer: Decision | None


@click.command(help=_HELP)
@click.argument("kind", type=click.Choice(_KINDS), metavar="KIND")
@click.argument("argument", default="")
@pipeline_option
@click.option(
    "--shard",
    metavar="SOURCE/DATABASE.TABLE",
    default="",
    help="The shard that the command concerns.",
)
@click.option(
    "--target",
    metavar="DATABASE.TABLE",
    default="",
    help="The target that it concerns; by default that of the shard's route.",
)
@by_option("the record keeps it")
@json_option
@wait_option
def command(
    kind: str,
    argument: str,
    *,
    path: Path,
    shard: str,
    target: str,
    by: str,
    as_json: bool,
    wait: float,
) -> None:
    """Give a command, print its answer; see ``_HELP``."""
    try:
        pipeline = read_pipeline(path)
        if argument.startswith("@"):
            argument = Path(argument[1:]).read_text(encoding="utf-8")
        said = command_of(pipeline, kind, argument, shard, target, by=by)
        given = give(pipeline, said, wait)
    except (ShardMergeError, OSError, UnicodeDecodeError) as error:
        raise click.UsageError(str(error)) from error
    is_done = print_given(given, said, wait, as_json=as_json)
    if given.answer is None:
        click.echo("  The agents carry it out when they run: see whether they do.", err=True)
    raise SystemExit(0 if is_done else 1)


def command_of(
    pipeline: Pipeline, kind: str, argument: str, shard: str, target: str, *, by: str = ""
) -> OperatorCommand:
    """The command that a command line means.

    Args:
        pipeline: Whose target it is for.
        kind: Of the command.
        argument: Of the command; "" without one.
        shard: As ``source/database.table``; "" without.
        target: As ``database.table``; "" for that of the shard's route.
        by: Who gives it.

    Raises:
        ConfigError: Something is missing, too much, or not written as it must be.
    """
    by = by.strip() or login_name()
    return given_command(pipeline, kind, argument, shard, target, by=by, ts_ms=now_ms())


def give(pipeline: Pipeline, said: OperatorCommand, wait_s: float) -> Given:
    """Write a command into the log and wait for its answer.

    Raises:
        StackError: Kafka cannot be reached, or the pipeline has no topics yet.
    """
    ddl = topics.ddl(pipeline).name
    format_ = record_format(pipeline.kafka)
    check_admitted(pipeline.kafka)
    consumer = consumer_of(
        pipeline.kafka,
        {
            "group.id": f"{pipeline.name}-command",  # required by the client, never joined
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
            "fetch.message.max.bytes": topics.MAX_RECORD_BYTES,
            "log_level": 0,
        },
    )
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(ddl, 0), timeout=_SEND_S)
        end = valid_offset(end, ddl, 0)
        sent = send_command(pipeline, format_, said)
        consumer.assign([TopicPartition(ddl, 0, end)])
        return Given(sent, _answer(consumer, format_, sent, wait_s))
    except KafkaException as error:
        raise client_error(pipeline.kafka, error, f"topic {ddl}") from error
    finally:
        consumer.close()


def print_given(given: Given, said: OperatorCommand, wait_s: float, *, as_json: bool) -> bool:
    """Print a command's answer, or that none came.

    Returns:
        Whether the command was answered, and not refused.
    """
    if as_json:
        print_json(shape_of(given, said))
    elif given.answer is not None:
        tell(given.answer)
    if given.answer is None:
        click.echo(f"{given.id} is recorded, but was not answered within {wait_s:.0f} s", err=True)
    return given.answer is not None and given.answer.outcome is not Outcome.REFUSED


def tell(answer: Decision) -> None:
    """Print an answer."""
    click.echo(f"{answer.outcome}, version {answer.version}: {answer.reason}")
    for statement in answer.statements:
        click.echo(f"  {statement.kind}: {statement.sql}")
        click.echo(f"    because {coded(statement.code, statement.reason)}")
    for warning in answer.notices:
        click.echo(f"  warning: {coded(warning.code, warning.text)}")
    if answer.code:
        click.echo(f"  {answer.code}: see `shardmerge explain-code {answer.code}`")
    if answer.hint:
        click.echo(f"  {answer.hint}")


def shape_of(given: Given, said: OperatorCommand) -> GivenCommand:
    """What ``--json`` prints of a command that was given."""
    answer = None
    if given.answer is not None:
        now = now_ms()
        answer = decision_line(Decided.of(given.answer, now), said.by, None)
    return GivenCommand(str(given.id), answer)


def _answer(
    consumer: Consumer, format_: RecordFormat, sent: ChangeId, wait_s: float
) -> Decision | None:
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        decision = format_.read(message.value() or b"")
        if isinstance(decision, Decision) and decision.id == sent:
            return decision
    return None
