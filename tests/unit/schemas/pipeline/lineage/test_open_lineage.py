"""The table ``[lineage]`` of the pipeline file."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.lineage.open_lineage import OpenLineage
from shardmerge.schemas.pipeline.text import pipeline_text
from tests.unit.spark_sink.lineage.lined import FILE, pipeline

HTTP = {"transport": "http", "url": "http://l:5000"}


def test_without_the_table_there_are_no_events() -> None:
    text = FILE.replace("WHERE", "").partition("[lineage]")[0]
    assert parse_pipeline(text, {}).lineage == OpenLineage()
    assert OpenLineage().transport == "off"


def test_a_written_out_pipeline_has_the_table() -> None:
    assert parse_pipeline(pipeline_text(pipeline()), {}) == pipeline()
    assert pipeline().lineage.max_inputs == 2


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"transport": "smoke"}, "transport must be one of off, http, kafka, file"),
        ({"transport": "http"}, "needs url"),
        ({"transport": "kafka"}, "needs topic"),
        ({"transport": "file"}, "needs path"),
        ({"url": "http://l:5000"}, "'off' has no url"),
        ({**HTTP, "topic": "t"}, "'http' has no topic"),
        ({"transport": "kafka", "topic": "t", "ca": "/ca.pem"}, "'kafka' has no ca"),
        ({**HTTP, "url": "http://u:p@l:5000"}, "hold no user"),
        ({**HTTP, "url": "ftp://l"}, "http:// or https://"),
        ({**HTTP, "api_key": "sesame"}, "env:NAME or file:PATH"),
        ({**HTTP, "interval_s": 0}, "be 1 or more"),
        ({**HTTP, "namespace": ""}, "namespace must have a name"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, str | int], what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        OpenLineage(**keys)  # type: ignore[arg-type]
    assert caught.value.code == "SM-7111"
    assert "sesame" not in str(caught.value)
