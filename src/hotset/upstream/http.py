"""Sends calls to the configured upstreams and returns their bytes unchanged."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping

import aiohttp
import truststore
from aiohttp import hdrs
from multidict import CIMultiDict
from yarl import URL

from hotset.config import Upstream
from hotset.errors import UpstreamFailed
from hotset.nouns.call import ClientCall, Response, header
from hotset.upstream.headers import back, onward

_CONNECT_SECONDS = 15.0
# well under what providers allow an idle connection, so that we rarely send into a closing one
_KEEPALIVE_SECONDS = 20.0
_WHOLE_BODY = 1 << 20  # a body up to this goes out in one write
_SLICE = 1 << 18
_STATUSES = range(200, 600)
"""Final statuses; a lower one is not the last word on a request."""
_NOT_ADDED = (hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE)


class HttpWire:
    """One connection pool for all upstreams. Created inside a running event loop."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_KEEPALIVE_SECONDS, ssl=_trust(upstreams)
            ),
            # The client decides how long to wait: a model may think for minutes.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_NOT_ADDED,
            read_bufsize=1 << 17,
            max_line_size=1 << 16,
            max_field_size=1 << 16,
        )

    @contextlib.asynccontextmanager
    async def send(self, call: ClientCall) -> AsyncIterator[Response]:
        """Raises `UpstreamFailed` if no reply began. Leaving the context early closes the
        connection."""
        upstream = self._upstreams[call.upstream]
        headers = CIMultiDict(onward(call.headers))
        if length := _length(call):
            headers[hdrs.CONTENT_LENGTH] = length
        try:
            reply = await self._client.request(
                call.method,
                URL(upstream.url + call.path, encoded=True),
                headers=headers,
                data=_data(call.body),
                allow_redirects=False,
                proxy=upstream.proxy,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UpstreamFailed(
                f"{upstream.name} at {_origin(upstream.url)} could not be reached: {_why(error)}"
            ) from error
        try:
            if reply.status not in _STATUSES:
                raise UpstreamFailed(
                    f"{upstream.name} at {_origin(upstream.url)} answered with the status "
                    f"{reply.status}, which is none"
                )
            yield Response(reply.status, back(tuple(reply.raw_headers)), _chunks(reply, upstream))
        finally:
            # A reply that was read to its end has returned its connection; any other must not be
            # read on.
            reply.close()

    async def close(self) -> None:
        await self._client.close()


async def _chunks(reply: aiohttp.ClientResponse, upstream: Upstream) -> AsyncIterator[bytes]:
    try:
        async for chunk in reply.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UpstreamFailed(f"{upstream.name} broke off in mid-reply: {_why(error)}") from error


def _data(body: bytes | AsyncIterator[bytes]) -> bytes | AsyncIterator[bytes] | None:
    if isinstance(body, bytes):
        return (body or None) if len(body) <= _WHOLE_BODY else _slices(body)
    return body


def _length(call: ClientCall) -> str:
    """The content length: given if the client gave one; otherwise empty, for chunks."""
    if isinstance(call.body, bytes):
        bodiless = not call.body and call.method in ("GET", "HEAD", "OPTIONS", "DELETE")
        return "" if bodiless else str(len(call.body))
    return header(call.headers, b"content-length")


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), _SLICE):
        yield bytes(view[start : start + _SLICE])


def _trust(upstreams: Mapping[str, Upstream]) -> ssl.SSLContext | bool:
    """The TLS context, only if some upstream needs it: reading the certificates takes tens of
    milliseconds."""
    wanted = any(upstream.url.startswith("https:") for upstream in upstreams.values())
    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if wanted else True


def _origin(url: str) -> str:
    return str(URL(url).origin())


def _why(error: BaseException) -> str:
    """The reason in a few words, never the error's own text: that could quote a header."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or type(error.os_error).__name__
    if isinstance(error, TimeoutError):
        return f"no connection within {_CONNECT_SECONDS:.0f} s"
    return type(error).__name__
