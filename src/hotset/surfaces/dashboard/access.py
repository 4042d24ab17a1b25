"""Who may see the dashboard: a browser that was opened by a link which works once, and from then on
sends a cookie.

The address of every page names the project by a mark made of its token, `/hotset/~MARK/now`: a tab
asks its own project or is refused, also where one port serves several projects, or another one than
yesterday.
"""

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
_MARKED = f"{PATH}/~"
_MARK_DIGITS = 12
_LINK_SECONDS = 24 * 3600.0
_MOST_LINKS = 64
_COOKIE_SECONDS = 30 * 24 * 3600


class DashboardAccess:
    """Links that work once, and the cookie that they set. The cookie's value is made of the
    project's token, so it is good until that token is deleted."""

    def __init__(
        self, port: int, token: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.mark = _digest(token, b"dashboard mark")[:_MARK_DIGITS]
        """Names the project in addresses; opens nothing."""
        self._name = f"hotset_{port}_{self.mark}"
        self._value = _digest(token, b"dashboard cookie")
        self.is_over = False
        """The proxy stops: no page listens any more."""
        self._monotonic = monotonic
        self._links: Lru[str, float] = Lru("dashboard links", count=_MOST_LINKS, shrinks=False)

    @property
    def home(self) -> str:
        """The path of the project's dashboard."""
        return f"{_MARKED}{self.mark}/"

    def make_link(self) -> str:
        """The path of a new link."""
        code = secrets.token_urlsafe(24)
        self._links.put(code, self._monotonic())
        return f"{_OPEN}{code}"

    def knows(self, path: str) -> bool:
        """True for a link of this project that was not used yet."""
        return path.startswith(_OPEN) and path.removeprefix(_OPEN) in self._links

    def admits(self, path: str, cookie: str) -> bool:
        """True for a path of the dashboard with its cookie, and for a link: its code is the
        secret."""
        inside = path == PATH or path.startswith(f"{PATH}/")
        if not inside or (path.startswith(_MARKED) and mark_in(path) != self.mark):
            return False
        return path.startswith(_OPEN) or self.has_cookie(cookie)

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

    def close(self) -> None:
        """Safe from any thread."""
        self.is_over = True

    def plain(self, path: str) -> str:
        """A path of the dashboard without the project's mark."""
        marked = self.home.removesuffix("/")
        if path == marked or path.startswith(self.home):
            return PATH + path.removeprefix(marked)
        return path


def mark_in(path: str) -> str:
    """The mark of the project that a path of the dashboard names; empty if it names none."""
    return path.removeprefix(_MARKED).partition("/")[0] if path.startswith(_MARKED) else ""


def _digest(token: str, purpose: bytes) -> str:
    return hmac.new(token.encode(), purpose, hashlib.sha256).hexdigest()
