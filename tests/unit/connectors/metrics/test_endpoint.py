from __future__ import annotations

import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.endpoint import exposition, serve
from shardmerge.connectors.metrics.family import Durations, Family, FamilyKind, Sample
from shardmerge.schemas.model.errors import ConfigError

OPEN = "application/openmetrics-text; version=1.0.0"


def every_sample() -> list[Sample]:
    return [
        Sample(
            family,
            tuple(f"a {label}" for label in family.labels),
            Durations().plus(0.2).plus(9000.0) if family.kind is FamilyKind.HISTOGRAM else 3.0,
        )
        for families in catalog.PROCESSES.values()
        for family in families
    ]


@pytest.mark.parametrize(
    ("accept", "parse"), [(OPEN, open_metrics), ("text/plain", plain)], ids=["open", "plain"]
)
def test_every_metric_is_written_in_both_formats_under_its_name(accept, parse) -> None:
    families: list[Family] = [sample.family for sample in every_sample()]
    answer = exposition(every_sample, accept)
    assert answer.content_type.startswith(accept.partition(";")[0])
    read = {family.name: family for family in parse(answer.body.decode())}
    assert len(read) == len(families)
    for family in families:
        found = read[family.name.removesuffix("_total")]
        assert (found.documentation, found.type) == (family.meaning, family.kind.value)
        sample = found.samples[0]
        assert sample.name in (family.name, f"{family.name}_bucket")
        assert set(sample.labels) - {"le"} == set(family.labels)


def test_a_histogram_has_cumulative_buckets() -> None:
    text = exposition(every_sample, "text/plain").body.decode()
    name = catalog.SINK_BATCHES.name
    assert f'{name}_bucket{{le="0.1"}} 0.0' in text
    assert f'{name}_bucket{{le="0.5"}} 1.0' in text
    assert f'{name}_bucket{{le="3600.0"}} 1.0' in text
    assert f'{name}_bucket{{le="+Inf"}} 2.0' in text
    assert f"{name}_sum 9000.2" in text


def test_an_endpoint_serves_what_is_collected_at_each_request_and_ends() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    value = 1
    stop = serve(lambda: [Sample(catalog.SINK_ROUND, (), value)], "127.0.0.1", port)
    try:
        for value in (2, 3):
            with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                assert f"{catalog.SINK_ROUND.name} {value}.0".encode() in answer.read()
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            serve(tuple, "127.0.0.1", port)
    finally:
        stop()
    serve(tuple, "127.0.0.1", port)()


def test_a_probe_is_told_whether_the_process_is_ready() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ready = False
    stop = serve(tuple, "127.0.0.1", port, lambda: ready)
    try:
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"http://127.0.0.1:{port}/ready")
        ready = True
        with urlopen(f"http://127.0.0.1:{port}/ready") as answer:
            assert (answer.status, answer.read()) == (200, b"ready\n")
    finally:
        stop()


def test_a_metric_has_a_name_of_its_own_that_says_its_type_and_unit() -> None:
    families = [sample.family for sample in every_sample()]
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert family.name.endswith("_total") == (family.kind is FamilyKind.COUNTER)
        assert family.name.removesuffix("_total").endswith(family.unit)
        assert family.meaning.endswith(".")


def test_every_metric_of_the_catalog_belongs_to_a_process() -> None:
    defined = {each.name for each in vars(catalog).values() if isinstance(each, Family)}
    assert defined == {sample.family.name for sample in every_sample()}
