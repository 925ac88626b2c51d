"""``shardmerge agents`` and ``sink``: one part of a pipeline in this process."""

from __future__ import annotations

from pathlib import Path

import click

from shardmerge.cli.endings import imported
from shardmerge.cli.options import pipeline_option
from shardmerge.cli.parameters import Target
from shardmerge.schemas.model.names import TargetTable


@click.command()
@pipeline_option
@click.option("--datadir", help="Where this worker keeps its tables.  [default: shardmerge-agents]")
@click.option("--web-host", help="Address of the status pages.  [default: 127.0.0.1]")
@click.option("--web-port", type=int, help="Port of the status pages.  [default: 6066]")
@click.option("--log-level", help="DEBUG, INFO, WARNING or ERROR.  [default: INFO]")
def agents(
    path: Path,
    *,
    datadir: str | None,
    web_host: str | None,
    web_port: int | None,
    log_level: str | None,
) -> None:
    """Run one agents' worker, which decides, until TERM.

    What is not given here comes from the environment, see the reference. When something breaks it
    ends with another exit code than 0 and should be started again: `shardmerge run` does so.
    """
    given = {
        "--pipeline": path,
        "--datadir": datadir,
        "--web-host": web_host,
        "--web-port": web_port,
        "--log-level": log_level,
    }
    arguments = [
        str(w) for name, value in given.items() if value is not None for w in (name, value)
    ]
    raise SystemExit(imported("shardmerge.agents.app", "agents").main(arguments))


@click.command()
@pipeline_option
@click.option("--master", help="Spark's master URL.  [default: local[2]]")
@click.option("--metrics-host", help="Address of the metrics.  [default: 127.0.0.1]")
@click.option("--metrics-port", help="Port of the metrics; 0 for none.  [default: 0]")
@click.option("--metrics-per-shard", is_flag=True, help="Serve metrics of every shard, too.")
@click.option("--rebuild", type=Target(), hidden=True, help="For `shardmerge rebuild`.")
@click.option(
    "--standby", is_flag=True, help="Wait while another sink of the pipeline writes; take over."
)
def sink(
    path: Path,
    *,
    master: str | None,
    metrics_host: str | None,
    metrics_port: str | None,
    metrics_per_shard: bool,
    rebuild: TargetTable | None,
    standby: bool,
) -> None:
    """Run the sink, which applies rows and statements to the target, until TERM.

    One sink of a pipeline writes. With `--standby` a further one waits, and takes over when the one
    that writes ends, is killed, or loses the target. On a Spark cluster it starts Spark only then,
    unless the target is Iceberg. Without, it takes over at once, and the other one ends.

    What is not given here comes from the environment, see the reference.

    Ends with 0 when it was told to stop; with 1 when it cannot go on; with 2 when its settings or
    the pipeline file are wrong.
    """
    given = {
        "--pipeline": str(path),
        "--master": master,
        "--metrics-host": metrics_host,
        "--metrics-port": metrics_port,
    }
    arguments = [
        word for name, value in given.items() if value is not None for word in (name, value)
    ]
    arguments += ["--metrics-per-shard"] if metrics_per_shard else []
    arguments += ["--rebuild", str(rebuild)] if rebuild is not None else []
    arguments += ["--standby"] if standby else []
    job = imported("shardmerge.spark_sink.job", "spark")
    if rebuild is None:
        raise SystemExit(job.main(arguments))
    own = imported("shardmerge.cli.rebuild.own_decisions", "cli")
    raise SystemExit(job.main(arguments, own.decided_for_shadow))
