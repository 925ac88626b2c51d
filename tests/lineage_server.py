"""A lineage server on this machine: it holds each event against the specification, and keeps it."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.lineage_schema import faults


class LineageServer:
    """Takes events at ``/api/v1/lineage``; ``stop`` is as if it were killed.

    Attributes:
        events: What came, in its order.
        faults: What was wrong with them.
        keys: The keys that came with them.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.keys: set[str | None] = set()
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> LineageServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen: at first on a free port, and later on the same one."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.take(self.path, self.headers["Authorization"], json.loads(body))
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """The test looks at the events."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, path: str, key: str | None, event: dict[str, Any]) -> None:
        self.faults += faults(event)
        if path != "/api/v1/lineage":
            self.faults.append(f"an event came to {path}")
        self.keys.add(key)
        self.events.append(event)

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def of(self, job: str, state: str) -> list[dict[str, Any]]:
        """The events of a job with a state."""
        return [e for e in self.events if (e["job"]["name"], e["eventType"]) == (job, state)]


def rows(event: dict[str, Any]) -> int:
    """How many rows an event says that its run has written."""
    [output] = event["outputs"]
    return int(output["outputFacets"]["outputStatistics"]["rowCount"])
