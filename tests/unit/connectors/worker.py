"""A Connect worker's REST interface in a thread: scripted answers, recorded requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Worker:
    """Answers each (method, path) from its script; the last answer of a script repeats.

    Attributes:
        script: Answers as (status, body).
        requests: What was asked, in order: method, path, body.
        headers: Of each of these.
    """

    url: str = ""
    script: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def on(self, method: str, path: str, *answers: tuple[int, Any]) -> None:
        """Script the answers to a request."""
        self.script[method, path] = list(answers)

    def asked(self, method: str) -> list[str]:
        """Paths of the requests of a method."""
        return [path for m, path, _ in self.requests if m == method]


@contextmanager
def running_worker() -> Iterator[Worker]:
    """A worker on a free port."""
    worker = Worker()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One packet for each answer: a second one would wait for the first one's acknowledgement.
        wbufsize = -1

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            worker.requests.append((self.command, self.path, body))
            worker.headers.append(dict(self.headers.items()))
            answers = worker.script.get((self.command, self.path), [(404, {"message": "none"})])
            status, content = answers.pop(0) if len(answers) > 1 else answers[0]
            data = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    worker.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield worker
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
