"""``shardmerge drift``: shows, heals and adopts what somebody changed on the target's tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from shardmerge.cli.command import give, print_given
from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import ShowGroup, json_option, pipeline_option, wait_option
from shardmerge.cli.parameters import Target, by_option, read_pipeline
from shardmerge.cli.screen import print_json
from shardmerge.connectors.clock import now_ms
from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.drift import Adoptions, Difference, needs_somebody
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.schemas.target.drift import adoption_of
from shardmerge.schemas.target.drift_healing import Healing

from .drift_reader import DriftReader, TargetDrift, open_reader
from .drift_shapes import healing_lines, lines, planned, shown

_only_option = click.option(
    "--only", "subjects", multiple=True, metavar="SUBJECT",
    help="Only this difference, for example index:by_name; repeatable.",
)  # fmt: skip
_by_option = by_option("the name is recorded")


@click.group(cls=ShowGroup)
def drift() -> None:
    """Show what somebody changed on the target's tables by hand; heal it or adopt it.

    `shardmerge drift --pipeline FILE` is short for `shardmerge drift show --pipeline FILE`.
    """


@drift.command()
@click.argument("target", type=Target(), metavar="[TARGET]", required=False)
@pipeline_option
@json_option
def show(target: TargetTable | None, path: Path, as_json: bool) -> None:
    """Show how the table of TARGET (by default of every target) differs from what was decided.

    The command compares the tables now. The sink also compares them from time to time, so the
    command can say since when a difference is there.

    An Iceberg target is read by a Spark that is started for this. A target that was cut over is not
    compared: its table is its applications'.

    Ends with 0 when nothing differs, or no difference does harm to rows; with 1 when a difference
    can do harm, or a table is not compared; with 2 when the call or the pipeline file is wrong;
    with 3 when the target does not answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        with open_reader(pipeline, path) as reader:
            if target is not None:
                found, cut_over = [_known(reader, target)], list[TargetTable]()
            else:
                known, cut_over = reader.targets(), sorted(reader.cut_over())
                found = [reader.read(each) for each in known if each not in cut_over]
        for each in found:
            if as_json:
                print_json(shown(each))
                continue
            for line in lines(shown(each)):
                click.echo(line)
        for name in cut_over:
            click.echo(f"{name}: was cut over, and is not compared", err=True)
        if not (found or cut_over or as_json):
            click.echo("the sink has made no table yet")
    raise SystemExit(ExitCode.GOOD if all(each.is_clean for each in found) else ExitCode.FOUND)


@drift.command()
@click.argument("target", type=Target(), metavar="TARGET")
@pipeline_option
@_only_option
@click.option("--harmless", is_flag=True, help="Heal also differences that do no harm to rows.")
@click.option("--yes", is_flag=True, help="Execute the statements; without it they are only shown.")
@_by_option
@json_option
def heal(
    target: TargetTable,
    path: Path,
    *,
    subjects: tuple[str, ...],
    harmless: bool,
    yes: bool,
    by: str,
    as_json: bool,
) -> None:
    """Give the table of TARGET its decided definition again.

    Shows the statements, and which data they destroy. With --yes it executes them. The sink
    executes no statement on the table meanwhile, but goes on writing rows. Differences that do no
    harm stay, unless --harmless is given or --only names them. The journal in the control database
    keeps each statement and who gave the command.

    Ends with 0 when no difference is left to heal; with 1 when one is left; with 2 when the call or
    the pipeline file is wrong; with 3 when the target does not answer, or refuses a statement.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        with open_reader(pipeline, path) as reader:
            found = _known(reader, target)
            wanted = _named(found, subjects, harmless=harmless)
            plan = reader.plan(found, wanted)
            by_hand = [each for each in plan if not each.sql]
            if yes and by_hand:
                raise _not_healed(target, by_hand)
            for line in () if as_json else healing_lines(planned(plan), ""):
                click.echo(line)
            if yes and plan:
                found = reader.heal(target, plan, wanted, by)
            if as_json:
                print_json(shown(found))
        left = [each for each in found.differences if each.subject in wanted]
        if not as_json:
            _tell_left(left, done=yes)
    raise SystemExit(ExitCode.FOUND if left else ExitCode.GOOD)


@drift.command()
@click.argument("target", type=Target(), metavar="TARGET")
@pipeline_option
@_only_option
@_by_option
@wait_option
@json_option
def adopt(
    target: TargetTable,
    path: Path,
    *,
    subjects: tuple[str, ...],
    by: str,
    wait: float,
    as_json: bool,
) -> None:
    """Tell the coordinator that the changes by hand on TARGET are to stay.

    The changed definitions count as decided from then on, so they are no differences any more. The
    command is recorded and can be replayed, as every command is. Without --only it adopts every
    difference that can be adopted.

    Ends with 0 when the coordinator has decided it; with 1 when nothing can be adopted, or the
    command is refused or not answered in time; with 2 when the call or the pipeline file is wrong;
    with 3 when the target or Kafka does not answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        with open_reader(pipeline, path) as reader:
            found = _known(reader, target)
        adoptions = _adoptions(found, _named(found, subjects, harmless=True), subjects)
        if not adoptions:
            click.echo(f"{target}: there is nothing to adopt", err=True)
            raise SystemExit(ExitCode.FOUND)
        said = OperatorCommand(
            id=ChangeId(topics.commands(pipeline).name, 0),
            target=target,
            kind=CommandKind.ADOPT,
            argument=str(Adoptions(adoptions)),
            by=by,
            ts_ms=now_ms(),
        )
        given = give(pipeline, said, wait)
        is_done = print_given(given, said, wait, as_json=as_json)
    raise SystemExit(ExitCode.GOOD if is_done else ExitCode.FOUND)


def _known(reader: DriftReader, target: TargetTable) -> TargetDrift:
    if target not in reader.targets():
        raise ConfigError(
            f"the sink of this pipeline has made no table {target}",
            hint="shardmerge drift --pipeline FILE lists the tables that it made",
            code="SM-5601",
        )
    if target in reader.cut_over():
        raise ConfigError(
            f"{target} was cut over: its applications may change the table",
            hint="`shardmerge cutover TARGET --undo` takes it back, see docs/how-to/cut-over.md",
            code="SM-6810",
        )
    return reader.read(target)


def _named(found: TargetDrift, subjects: Sequence[str], *, harmless: bool) -> tuple[str, ...]:
    """The subjects that a call names; without names, all that the call may handle."""
    known = {each.subject: each for each in found.differences}
    if unknown := [each for each in subjects if each not in known]:
        raise ConfigError(
            f"{found.target} has no difference {', '.join(unknown)}",
            hint=f"its differences are: {', '.join(known) or 'none'}",
            code="SM-5601",
        )
    return tuple(subjects) or tuple(
        each.subject for each in found.differences if harmless or needs_somebody(each.kind)
    )


def _not_healed(target: TargetTable, by_hand: Sequence[Healing]) -> ConfigError:
    told = "; ".join(f"{each.subject}: {each.reason}" for each in by_hand)
    return ConfigError(
        f"no statement heals some of the differences of {target}: {told}",
        hint="make these by hand, or name the others with --only",
        code="SM-6809",
    )


def _adoptions(
    found: TargetDrift, wanted: Sequence[str], named: Sequence[str]
) -> tuple[Adoption, ...]:
    assert found.compared is not None
    made = []
    for each in found.differences:
        if each.subject not in wanted:
            continue
        adoption = adoption_of(each, found.compared.found)
        if isinstance(adoption, Adoption):
            made.append(adoption)
        elif named:
            raise ConfigError(f"{each.subject} cannot be adopted: {adoption}", code="SM-6808")
        else:
            click.echo(f"{each.subject} is not adopted: {adoption}", err=True)
    return tuple(made)


def _tell_left(left: Sequence[Difference], *, done: bool) -> None:
    if not left:
        click.echo("no difference is left to heal" if done else "there is nothing to heal")
    elif done:
        click.echo(f"still different: {', '.join(each.subject for each in left)}")
    else:
        click.echo("nothing was executed: repeat the command with --yes")
