"""The embedder that calls a server: any configured endpoint with OpenAI's `/embeddings`."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import SplitResult, urlsplit

import msgspec
import numpy as np

from hotset.errors import BadConfig, UpstreamFailed
from hotset.index.embed.port import Vectors, normalise
from hotset.typed import decode

_MOST_TEXTS = 64  # of a request: servers take at least so many
_MOST_REQUEST = 200_000  # characters of a request: some 60,000 tokens, where OpenAI takes 300,000
_MOST_CHARACTERS = 16_000  # of a text: about what 8,191 tokens, OpenAI's limit, hold of dense code
_MOST_REPLY = 1 << 26  # bytes; 64 vectors of 4,096 numbers take 6 MB


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    url: str
    """Up to and without `/embeddings`."""
    model: str
    size: int
    """Dimension of the model's vectors; a reply that differs is refused."""
    key: str | None = field(default=None, repr=False)
    seconds: float = 30.0
    """Timeout for connecting, and for each pause of the server."""


class Endpoint:
    """An `Embedder`. Every text goes to the server; an empty one does not, since many refuse it."""

    def __init__(self, address: EndpointAddress) -> None:
        self._address = address
        self._url = _parse_url(address.url)

    @property
    def id(self) -> str:
        """A server does not reveal its weights: the same model name and address count as the same
        model."""
        named = f"{self._url.geturl()}\n{self._address.model}\n{self.size}"
        return f"endpoint-1-{sha256(named.encode()).hexdigest()[:16]}"

    @property
    def size(self) -> int:
        return self._address.size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Raises `UpstreamFailed` if the server cannot be reached, refuses, or returns anything but
        these vectors."""
        vectors = np.zeros((len(texts), self.size), np.float32)
        for places in _batches(texts):
            vectors[places] = self._asked([_sent(texts[place]) for place in places])
        return normalise(vectors)

    def _asked(self, texts: list[str]) -> Vectors:
        body = msgspec.json.encode(
            {"model": self._address.model, "input": texts, "encoding_format": "float"}
        )
        status, reply = self._posted(body)
        if status != http.client.OK:
            raise UpstreamFailed(f"{self._where} answered {status}{_REASONS.get(status, '')}")
        try:
            rows = sorted(decode(reply, _Reply).data, key=lambda row: row.index)
        except msgspec.DecodeError as error:
            raise UpstreamFailed(f"{self._where} gave no list of vectors: {error}") from error
        if [row.index for row in rows] != list(range(len(texts))):
            raise UpstreamFailed(
                f"{self._where} gave {len(rows)} vectors for {len(texts)} texts, or numbered "
                f"them wrongly"
            )
        if odd := {len(row.embedding) for row in rows} - {self.size}:
            raise UpstreamFailed(
                f"{self._where} gave vectors of {odd.pop()} numbers; the configuration says "
                f"{self.size}"
            )
        vectors = np.array([row.embedding for row in rows], np.float64)
        if not np.abs(vectors).max() < np.finfo(np.float32).max:
            raise UpstreamFailed(f"{self._where} gave numbers that are none")
        return vectors.astype(np.float32)

    def _posted(self, body: bytes) -> tuple[int, bytes]:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._address.key:
            headers["authorization"] = f"Bearer {self._address.key}"
        connection = _connection(self._url, self._address.seconds)
        try:
            connection.request("POST", f"{self._url.path}/embeddings", body, headers)
            with connection.getresponse() as response:
                reply = response.read(_MOST_REPLY + 1)
        except (OSError, http.client.HTTPException) as error:
            raise UpstreamFailed(
                f"{self._where} cannot be asked: {error or type(error).__name__}"
            ) from error
        finally:
            connection.close()
        if len(reply) > _MOST_REPLY:
            raise UpstreamFailed(f"{self._where} gave more than {_MOST_REPLY:,} bytes")
        return response.status, reply

    @property
    def _where(self) -> str:
        return f"the embeddings endpoint at {self._url.hostname} (model {self._address.model})"


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Row]


_REASONS = {
    401: ": is the key right?",
    403: ": is the key allowed to use this model?",
    404: ": are the URL (without /embeddings) and the model's name right?",
    413: ": the request was too large for it",
    429: ": too many requests, or the account's limit is reached",
}


def _parse_url(url: str) -> SplitResult:
    parts = urlsplit(url.rstrip("/"))
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or parts.username
    ):
        raise BadConfig(
            "the URL of the embeddings endpoint must look like https://host/v1, without a "
            "name, a query or a fragment"
        )
    return parts


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Indexes of texts that are sent together, without empty ones."""
    batch: list[int] = []
    characters = 0
    for place, text in enumerate(texts):
        length = len(_sent(text))
        if not length:
            continue
        if batch and (len(batch) == _MOST_TEXTS or characters + length > _MOST_REQUEST):
            yield batch
            batch, characters = [], 0
        batch.append(place)
        characters += length
    if batch:
        yield batch


def _sent(text: str) -> str:
    return text[:_MOST_CHARACTERS].strip().encode("utf-8", "replace").decode()


def _connection(url: SplitResult, seconds: float) -> http.client.HTTPConnection:
    host = url.hostname or ""
    if url.scheme == "http":
        return http.client.HTTPConnection(host, url.port, timeout=seconds)
    import truststore  # noqa: PLC0415 - an endpoint on this machine needs none

    return http.client.HTTPSConnection(
        host, url.port, timeout=seconds, context=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
