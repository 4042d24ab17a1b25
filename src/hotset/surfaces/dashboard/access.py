"""Who may see the dashboard: a browser that was opened by a link which works once, and from then on
sends a cookie."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from hotset.files.lru import Lru

PATH = "/hotset"
_OPEN = f"{PATH}/open/"
_LINK_SECONDS = 24 * 3600.0
_MOST_LINKS = 64
_COOKIE_SECONDS = 30 * 24 * 3600


class DashboardAccess:
    """Links that work once, and the cookie that they set. The cookie's value is made of the
    project's token, so it is good until that token is deleted."""

    def __init__(
        self, port: int, token: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = f"hotset_{port}"
        self._value = hmac.new(token.encode(), b"dashboard cookie", hashlib.sha256).hexdigest()
        self._monotonic = monotonic
        self._links: Lru[str, float] = Lru("dashboard links", count=_MOST_LINKS, shrinks=False)

    def make_link(self) -> str:
        """The path of a new link."""
        code = secrets.token_urlsafe(24)
        self._links.put(code, self._monotonic())
        return f"{_OPEN}{code}"

    def admits(self, path: str, cookie: str) -> bool:
        """True for a path of the dashboard with its cookie, and for a link: its code is the
        secret."""
        inside = path == PATH or path.startswith(f"{PATH}/")
        return inside and (path.startswith(_OPEN) or self.has_cookie(cookie))

    def open(self, path: str) -> str | None:
        """The `Set-Cookie` header for a link that is used now; None if it was used or is old."""
        made = self._links.pop(path.removeprefix(_OPEN))
        if made is None or self._monotonic() - made > _LINK_SECONDS:
            return None
        return (
            f"{self._name}={self._value}; Path={PATH}; HttpOnly; SameSite=Strict; "
            f"Max-Age={_COOKIE_SECONDS}"
        )

    def has_cookie(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self._name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(
            found.value.encode("utf-8", "replace"), self._value.encode()
        )
