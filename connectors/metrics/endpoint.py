"""The endpoint that Prometheus reads: samples in, the text of OpenMetrics or of Prometheus out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from shardmerge.schemas.model.errors import ConfigError

from .family import BUCKETS_S, Durations, Family, FamilyKind, Sample, Samples


class _Samples(Collector):
    """Makes the client library's metrics when they are asked for."""

    def __init__(self, collect: Callable[[], Samples]) -> None:
        self._collect = collect

    def collect(self) -> Iterator[Metric]:
        """The metrics at this moment, each family once."""
        by_family: dict[Family, list[Sample]] = {}
        for sample in self._collect():
            by_family.setdefault(sample.family, []).append(sample)
        for family, samples in by_family.items():
            yield _metric(family, samples)


def _metric(family: Family, samples: Iterable[Sample]) -> Metric:
    metric: Metric
    match family.kind:
        case FamilyKind.HISTOGRAM:
            metric = HistogramMetricFamily(family.name, family.meaning, labels=family.labels)
        case FamilyKind.COUNTER:
            metric = CounterMetricFamily(family.name, family.meaning, labels=family.labels)
        case FamilyKind.GAUGE:
            metric = GaugeMetricFamily(family.name, family.meaning, labels=family.labels)
    metric.unit = family.unit
    for sample in samples:
        if isinstance(metric, HistogramMetricFamily):
            assert isinstance(sample.value, Durations)
            metric.add_metric(sample.labels, _buckets(sample.value), sample.value.sum_s)
        else:
            assert not isinstance(sample.value, Durations)
            metric.add_metric(sample.labels, sample.value)
    return metric


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Upper bound, and how many were at most that long."""
    found, total = [], 0
    for limit, count in zip((*BUCKETS_S, float("inf")), durations.counts, strict=True):
        total += count
        found.append((str(floatToGoString(limit)), float(total)))  # type: ignore[no-untyped-call]
    return found


@dataclass(frozen=True, slots=True)
class Exposition:
    """An answer to Prometheus: the bytes, and the Content-Type header."""

    body: bytes
    content_type: str


def registry_of(collect: Callable[[], Samples]) -> CollectorRegistry:
    """A registry that holds these samples only."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Samples(collect))
    return registry


def exposition(collect: Callable[[], Samples], accept: str) -> Exposition:
    """The samples in the format that the Accept header prefers."""
    encode, content_type = choose_encoder(accept)
    return Exposition(encode(registry_of(collect)), content_type)


def serve(collect: Callable[[], Samples], host: str, port: int) -> Callable[[], None]:
    """Serve the samples at ``/metrics`` in a thread.

    Args:
        collect: Called in that thread for each request.
        host: Address to listen on.
        port: Port to listen on.

    Returns:
        What stops the server.

    Raises:
        ConfigError: The address cannot be listened on.
    """
    try:
        server, thread = start_http_server(port, host, registry_of(collect))
    except OSError as error:
        raise ConfigError(
            f"metrics cannot be served on {host}:{port}: {error.strerror or error}",
            hint="another process may have the port: give each process one of its own",
            code="SM-5603",
        ) from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
