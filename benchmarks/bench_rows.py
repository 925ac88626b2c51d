"""Rows of the sink's benchmark, in JSON and in Avro, and a registry that has their one schema."""

from __future__ import annotations

import io
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import fastavro
from msgspec import Raw
from msgspec.json import decode, encode

from shardmerge.connectors.kafka.registry import RegistryAddress

NUMBER = 1
_UNSIGNED = {"type": "bytes", "scale": 0, "precision": 64, "logicalType": "decimal"}
_COLUMNS: dict[str, Any] = {
    "id": _UNSIGNED, "customer": "int", "status": "string", "amount": "string",
    "quantity": ["null", "int"], "email": ["null", "string"], "note": ["null", "string"],
    "created": ["null", "long"], "changed": ["null", "string"], "due": ["null", "int"],
    "score": ["null", "double"], "flag": ["null", "int"],
}  # fmt: skip
_SOURCE: dict[str, Any] = {
    "version": "string", "connector": "string", "name": "string", "ts_ms": "long",
    "snapshot": ["null", "string"], "db": "string", "sequence": ["null", "string"],
    "ts_us": ["null", "long"], "ts_ns": ["null", "long"], "table": ["null", "string"],
    "server_id": "long", "gtid": ["null", "string"], "file": "string", "pos": "long",
    "row": "int", "thread": ["null", "long"], "query": ["null", "string"],
}  # fmt: skip


def _record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": "bench",
        "fields": [{"name": field, "type": kind} for field, kind in fields.items()],
    }


SCHEMA = _record(
    "Envelope",
    {
        "before": ["null", _record("Value", _COLUMNS)],
        "after": ["null", "Value"],
        "source": _record("Source", _SOURCE),
        "transaction": ["null", _record("block", {"id": "string", "total_order": "long"})],
        "op": "string",
        "ts_ms": ["null", "long"],
        "ts_us": ["null", "long"],
        "ts_ns": ["null", "long"],
    },
)
"""As Debezium's and Connect's Avro converters make it of the benchmark's table."""
_PARSED = fastavro.parse_schema(json.loads(json.dumps(SCHEMA).replace('"logicalType"', '"logic"')))
_MS = 1_700_000_000_000


def image(key: int, chance: random.Random) -> bytes:
    """A row as Debezium writes it."""
    return encode(
        {
            "id": key,
            "customer": chance.randrange(1_000_000),
            "status": chance.choice(("new", "paid", "sent", "back")),
            "amount": f"{chance.randrange(10**7)}.{chance.randrange(100):02d}",
            "quantity": chance.randrange(1000),
            "email": f"customer{chance.randrange(10**6)}@example.com",
            "note": None
            if chance.random() < 0.2
            else "a note of some length, as people write " * 2,
            "created": 1_700_000_000_000 + chance.randrange(10**10),
            "changed": f"2026-03-0{chance.randrange(1, 10)}T10:11:12.{chance.randrange(10**6):06}Z",
            "due": 20_000 + chance.randrange(1000),
            "score": chance.random(),
            "flag": chance.randrange(2),
        }
    )


def event(shard: int, number: int, op: str, before: bytes | None, after: bytes | None) -> bytes:
    """A row record's value as Debezium writes it."""
    source = {
        "version": "3.6.1.Final", "connector": "mysql", "name": "bench", "ts_ms": 0,
        "snapshot": "false", "db": "app", "sequence": None, "table": f"t{shard}",
        "server_id": 101, "gtid": None, "file": "binlog.000001", "pos": 1000 + number * 400,
        "row": 0, "thread": 7, "query": None,
    }  # fmt: skip
    images = (None if raw is None else Raw(raw) for raw in (before, after))
    envelope = {**dict(zip(("before", "after"), images, strict=True)), "source": source}
    return encode({**envelope, "transaction": None, "op": op})


def avro_of(value: bytes) -> bytes:
    """A record's value in JSON → the same row in Avro."""
    envelope = decode(value)
    for image in (envelope["before"], envelope["after"]):
        if image is not None:
            number: int = image["id"]
            image["id"] = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    times = {"ts_ms": _MS, "ts_us": _MS * 1_000, "ts_ns": _MS * 1_000_000}
    envelope = {**envelope, **times, "source": {**envelope["source"], **times}}
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _PARSED, envelope)
    return b"\0" + NUMBER.to_bytes(4, "big") + body.getvalue()


class Form(Protocol):
    """How records are written."""

    def value(self, shard: int, payload: bytes) -> bytes:
        """A record's value with that envelope."""
        ...

    def key(self, shard: int, key: int) -> bytes:
        """The key of a row."""
        ...


class Bare:
    """JSON without schemas."""

    def value(self, shard: int, payload: bytes) -> bytes:
        """The envelope itself."""
        return payload

    def key(self, shard: int, key: int) -> bytes:
        """Enough to choose the partition: nobody reads it."""
        return b"%d" % key


class Avro:
    """Avro in Confluent's framing."""

    def value(self, shard: int, payload: bytes) -> bytes:
        """The envelope in Avro."""
        return avro_of(payload)

    def key(self, shard: int, key: int) -> bytes:
        """Keys are in JSON in every format."""
        return b"%d" % key


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path == f"/schemas/ids/{NUMBER}"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": json.dumps(SCHEMA)} if known else {}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def registry() -> Iterator[RegistryAddress]:
    """A registry that knows the schema, while the context lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield RegistryAddress(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
