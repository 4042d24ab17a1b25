"""Embedders that tests bring with them: one that knows a word which the documents do not have, and
one behind a URL."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hotset.testing.fakes import HashingEmbedder

DOCUMENTS = HashingEmbedder(64)


class Knowing(HashingEmbedder):
    """Lives in the documents' space, and takes one word of theirs for another."""

    def __init__(self, word: str, means: str) -> None:
        super().__init__(64)
        self.read: list[str] = []
        self._word, self._means = word, means

    def embed(self, texts: Sequence[str]) -> Any:
        self.read += texts
        return super().embed([text.replace(self._word, self._means) for text in texts])


Asked = tuple[str, dict[str, str], dict[str, Any]]
"""The path, headers and body of a request."""


@contextmanager
def endpoint(
    answer: Callable[[str, list[str]], tuple[int, object]],
) -> Iterator[tuple[str, list[Asked]]]:
    """A server on a free port: its URL, and what it was asked. A list of rows is put where the
    protocol has them."""
    seen: list[Asked] = []

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append(
                (self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            status, reply = answer(self.path, body["input"])
            if isinstance(reply, list) and reply:
                reply = {"object": "list", "data": reply, "model": body["model"]}
            data = (
                reply
                if isinstance(reply, bytes)
                else json.dumps(reply if isinstance(reply, (dict, list)) else {}).encode()
            )
            try:
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:  # whoever asked has left
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
