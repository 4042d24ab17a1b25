"""Who may come in: an exact Host, no foreign Origin, and the token, in the path or in a header. No
CORS, ever."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from hotset.nouns.call import Headers

_TOKEN_HEADER = b"x-hotset-token"
_PLAIN = re.compile(r"[A-Za-z0-9/%:@!$&'()*+,;=\-._~]*")
_FRIENDLY_FETCHES = (b"", b"none", b"same-origin")


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    message: str


class Guard:
    def __init__(self, port: int, token: str) -> None:
        hosts = {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}
        if port == 80:
            hosts |= {"127.0.0.1", "localhost", "[::1]"}
        self._hosts = frozenset(host.encode() for host in hosts)
        self._origins = frozenset(b"http://" + host for host in self._hosts)
        self._token = token.encode()

    def admit(self, path: str, headers: Headers) -> str | Refusal:
        """The path behind the token, or why not."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        hosts = values.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return Refusal(421, "this address answers only to its own host name")
        if any(origin.lower() not in self._origins for origin in values.get(b"origin", ())):
            return Refusal(403, "requests from other origins are refused")
        if any(site not in _FRIENDLY_FETCHES for site in values.get(b"sec-fetch-site", ())):
            return Refusal(403, "requests from other sites are refused")
        first, _, rest = path.removeprefix("/").partition("/")
        given = values.get(_TOKEN_HEADER, [])
        admitted = (
            "/" + rest
            if self._is_token(first.encode())
            else path
            if len(given) == 1 and self._is_token(given[0])
            else ""
        )
        if admitted and self._has_token(admitted.encode()):
            return Refusal(
                404,
                "the path has this project's token twice; `hotset status` shows the right base URL",
            )
        if admitted:
            return admitted
        return Refusal(
            401, "the base URL lacks this project's token; `hotset status` shows the right one"
        )

    def without_token(self, headers: Headers) -> Headers:
        """The headers of a request that was let in, without those in which the token stands: a
        `Referer`, a cookie."""
        return tuple((name, value) for name, value in headers if not self._has_token(value))

    def query_without_token(self, query: bytes) -> bytes:
        return (
            b"&".join(part for part in query.split(b"&") if not self._has_token(part))
            if self._has_token(query)
            else query
        )

    def _has_token(self, text: bytes) -> bool:
        return self._token in text or (b"%" in text and self._token in unquote_to_bytes(text))

    def _is_token(self, given: bytes) -> bool:
        return hmac.compare_digest(given, self._token)


def encoded(path: bytes) -> str:
    """A raw path as text, with every byte that has no place in a URL percent-encoded."""
    text = path.decode("latin-1")
    return text if _PLAIN.fullmatch(text) else quote(path, safe="/%:@!$&'()*+,;=-._~")
