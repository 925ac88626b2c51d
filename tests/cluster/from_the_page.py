"""What the page about Spark clusters tells to make and to call."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.unit.docs.documents import DOCS, fences, shell_lines

from .conftest import ClusterLine
from .spark_cluster import SPARK

PAGE = (DOCS / "how-to" / "spark-cluster.md").read_text(encoding="utf-8")
SMALL = {"spark.executor.memory": "512m"}


def made_from_the_page(folder: Path, archive: Path) -> tuple[Path, Path]:
    """The page's program, and its settings with our archive and less memory."""
    (program,) = fences(PAGE, "python")
    (settings,) = fences(PAGE, "properties")
    text = settings.text.replace("environment.tar.gz", str(archive))
    text += "".join(f"{name} {value}\n" for name, value in SMALL.items())
    (folder / "sink.py").write_text(program.text)
    (folder / "spark-defaults.conf").write_text(text)
    return folder / "sink.py", folder / "spark-defaults.conf"


def call_of(program: str, line: ClusterLine, **replaced: str) -> list[str]:
    """The words after a program in the page's command line, with our files and addresses."""
    (found,) = (each for each in shell_lines(PAGE) if each.startswith(f"{program} --"))
    ours = {"spark://master:7077": line.cluster.url, "FILE": line.pipeline_file, **replaced}
    return [ours.get(word, word) for word in shlex.split(found)[len(program.split()) :]]


def submission(line: ClusterLine, folder: Path, **replaced: str) -> list[str]:
    """``spark-submit`` as the page calls it, with what the page tells to write into files."""
    program, settings = made_from_the_page(folder, line.archive)
    files = {"sink.conf": str(settings), "sink.py": str(program), **replaced}
    return [str(SPARK / "bin" / "spark-submit"), *call_of("spark-submit", line, **files)]
