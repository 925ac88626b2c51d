"""A pipeline file of two sources whose tables ``app.t_1``, … are merged into ``merged.t``."""

from __future__ import annotations

from shardmerge.cli.planning.inputs.present import LenientEnvironment
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline

PIPELINE = """
[pipeline]
name = "shop"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[[sources]]
name = "s1"
host = "s1"
port = 3306
user = "u"
password = "${NOT_SET_ANYWHERE}"
server_id = 1
[[sources]]
name = "s2"
host = "s2"
port = 3306
user = "u"
password = "${NOT_SET_ANYWHERE}"
server_id = 2
[[routes]]
database = "app"
table = 't_\\d+'
target = "merged.t"
[target]
host = "t"
port = 1
user = "u"
password = "${NOT_SET_ANYWHERE}"
"""


def pipeline() -> Pipeline:
    """The pipeline of the file."""
    return parse_pipeline(PIPELINE, LenientEnvironment())
