"""The endpoint that Prometheus reads: samples in, the text of OpenMetrics or of Prometheus out."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import ThreadingWSGIServer, choose_encoder
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


def _server_class(host: str, port: int) -> type[ThreadingWSGIServer]:
    """A server for the kind of address that a host has, IPv6 included; raises ``OSError``."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    return type("_Server", (ThreadingWSGIServer,), {"address_family": family})


class _Quiet(WSGIRequestHandler):
    """Writes no line for a request."""

    def log_message(self, format: str, *args: object) -> None:
        """See the class."""


def serve(
    collect: Callable[[], Samples],
    host: str,
    port: int,
    is_ready: Callable[[], bool] = lambda: True,
) -> Callable[[], None]:
    """Serve the samples at ``/metrics`` in a thread, and at ``/ready`` whether the process is so.

    Args:
        collect: Called in that thread for each request.
        host: Address to listen on.
        port: Port to listen on.
        is_ready: Called in that thread: ``/ready`` answers 200, or 503 when it is not so.

    Returns:
        What stops the server.

    Raises:
        ConfigError: The address cannot be listened on.
    """
    metrics = make_wsgi_app(registry_of(collect))

    def app(environ: dict[str, Any], respond: Any) -> Any:
        if environ["PATH_INFO"] != "/ready":
            return metrics(environ, respond)
        good = is_ready()
        status = "200 OK" if good else "503 Service Unavailable"
        respond(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [b"ready\n" if good else b"not ready\n"]

    try:
        server = make_server(host, port, app, _server_class(host, port), handler_class=_Quiet)
    except OSError as error:
        raise ConfigError(
            f"metrics cannot be served on {host}:{port}: {error.strerror or error}",
            hint="another process may have the port: give each process one of its own",
            code="SM-5603",
        ) from None

    thread = Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
