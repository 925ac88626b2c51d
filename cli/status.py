"""``shardmerge status``: what runs, and what each target and shard is doing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import click

from shardmerge.agents.coordination.state.state_rows import header_key
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline

from .endings import ExitCode, telling_errors
from .options import FILE, json_option
from .parameters import read_pipeline
from .screen import progress_of, show
from .views.picture import Picture
from .views.reading import read_picture, read_table
from .views.shapes import PipelineStatus
from .views.status import pipeline_status


@click.command()
@click.option("--pipeline", "path", type=FILE, help="The pipeline file.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".local/demo"),
    show_default=True,
    help="Without --pipeline: the folder of the local stack, which `shardmerge up` or `demo` made.",
)
@json_option
def status(path: Path | None, directory: Path, as_json: bool) -> None:
    """Show what runs, and what each target and shard is doing.

    Everything comes from the topics, Kafka Connect and the target that the pipeline file names, so
    the pipeline may run anywhere.

    Ends with 0 when nothing needs somebody, with 1 when something does (a fault is printed for
    each); with 2 when the call or the pipeline file is wrong; with 3 when Kafka does not answer.
    """
    with telling_errors():
        found = _of_line(directory) if path is None else _of(read_pipeline(path))
    show([found], as_json=as_json)
    raise SystemExit(ExitCode.FOUND if found.faults else ExitCode.GOOD)


def _of(pipeline: Pipeline) -> PipelineStatus:
    return whole_status(pipeline).status


class WholeStatus(NamedTuple):
    """A pipeline's status, and from what it was made.

    Attributes:
        states: The targets as the agents' table has them.
    """

    status: PipelineStatus
    picture: Picture
    states: Mapping[TargetTable, TargetState]


def whole_status(pipeline: Pipeline) -> WholeStatus:
    """Ask the topics, Kafka Connect and the target's server.

    Raises:
        StackError: Kafka does not answer, or has no topics of this pipeline.
    """
    with progress_of("decisions") as progress:
        picture = read_picture(pipeline, progress, servers=True)
    with progress_of("the agents' table") as progress:
        rows = read_table(pipeline, progress)
    states = {}
    for target in picture.targets():
        if rows.get(header_key(target)) is not None:
            states[target] = rows.state(target)
    return WholeStatus(pipeline_status(picture, states), picture, states)


def _of_line(directory: Path) -> PipelineStatus:
    """The status of a local line, whose processes can be looked at as well."""
    # Only this needs the local stack, which is half of all imports.
    line = import_module("shardmerge.local.line").Line(directory)
    try:
        line.attach()
        down = [f"not up: {fault}" for fault in line.faults()]
        found = _of(line.pipeline)
    finally:
        line.leave()
    return dataclasses.replace(found, faults=(*down, *found.faults))
