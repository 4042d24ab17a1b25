"""Plain HTTP with nothing in between, so that a test sees each byte that a client would."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any

from hotset.surfaces.proxy.address import Address

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
DIALECTS = tuple(PATHS)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def json(self) -> Any:
        return json.loads(self.body)


def question(dialect: str, *words: str, stream: bool = False, **more: Any) -> bytes:
    """A request in which user and assistant speak in turns, beginning with the user."""
    said = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(words)]
    body: dict[str, Any] = {"model": "model-1", "stream": stream, **more}
    body["input" if dialect == "openai-responses" else "messages"] = said
    if dialect == "anthropic":
        body.setdefault("max_tokens", 100)
    return json.dumps(body).encode()


def post(
    address: Address, dialect: str, body: bytes, headers: dict[str, str] | None = None
) -> Answer:
    return call(
        address,
        "POST",
        f"/{address.token}{PATHS[dialect]}",
        body,
        {"content-type": "application/json", **(headers or {})},
    )


def call(
    address: Address,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=120)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


def raw(address: Address, request: bytes) -> bytes:
    """Sends bytes as they are and gives back everything until the connection closes."""
    with socket.create_connection(("127.0.0.1", address.port), timeout=120) as connection:
        connection.sendall(request)
        got = b""
        while chunk := connection.recv(65536):
            got += chunk
        return got
