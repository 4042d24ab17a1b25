"""Which headers are forwarded: all but those of a single connection, and ours."""

from __future__ import annotations

from hotset.nouns.call import Headers

_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_OURS = b"x-hotset-"
_CORS = b"access-control-"
_READABLE = frozenset((b"gzip", b"deflate", b"zstd", b"identity", b"*"))


def onward(headers: Headers) -> list[tuple[str, str]]:
    """A client's headers as the upstream gets them. The sender sets the length anew."""
    dropped = _HOP_BY_HOP | _named_by_connection(headers) | {b"host", b"content-length", b"expect"}
    return [
        (
            name.decode("latin-1"),
            _readable_only(value)
            if name.lower() == b"accept-encoding"
            else value.decode("latin-1"),
        )
        for name, value in headers
        if name.lower() not in dropped and not name.lower().startswith(_OURS)
    ]


def back(headers: Headers) -> Headers:
    """An upstream's headers as the client gets them: none of our own names, and none that lets a
    web page read the reply."""
    dropped = _HOP_BY_HOP | _named_by_connection(headers)
    return tuple(
        (name, value)
        for name, value in headers
        if name.lower() not in dropped and not name.lower().startswith((_OURS, _CORS))
    )


def _readable_only(accepted: bytes) -> str:
    """The accepted codings that we can decode, too: a reply that we cannot decode could not be
    kept."""
    codings = [coding.strip() for coding in accepted.split(b",")]
    kept = [coding for coding in codings if coding.split(b";")[0].strip().lower() in _READABLE]
    return (
        b", ".join(kept or [b"identity"]).decode("latin-1")
        if kept != codings
        else accepted.decode("latin-1")
    )


def _named_by_connection(headers: Headers) -> set[bytes]:
    return {
        token.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for token in value.split(b",")
    }
