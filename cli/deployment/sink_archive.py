"""``shardmerge sink-archive``: packs what a Spark cluster's executors need to have installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from shardmerge.cli.endings import imported, telling_errors
from shardmerge.cli.options import FILE, json_option
from shardmerge.cli.screen import print_json
from shardmerge.cli.views.call_shapes import WrittenArchive


@click.command(name="sink-archive")
@click.option("--output", type=FILE, required=True, help="The archive; it must not exist.")
@click.option(
    "--python",
    help="Path of Python on the workers, of the same version as here.  [default: this one's]",
)
@json_option
def sink_archive(output: Path, *, python: str | None, as_json: bool) -> None:
    """Pack what the executors of a Spark cluster need, for `spark.archives`.

    The archive has this project and the packages that its executors import, in the versions that
    are installed here. Python itself is not in it, nor are Java and Spark.

    Ends with 0; with 2 when a package is missing or the file exists.
    """
    module = imported("shardmerge.spark_sink.process.environment_archive", "spark")
    # The one that an environment was made from: the environment is not on the workers.
    base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    there = python or base
    with telling_errors():
        packages = module.write_archive(output, there)
    written = WrittenArchive(str(output), there, packages)
    if as_json:
        print_json(written)
        return
    click.echo(f"wrote {output}: {', '.join(packages)}")
    click.echo(f"The workers need Python {sys.version_info[0]}.{sys.version_info[1]} at {there}.")
