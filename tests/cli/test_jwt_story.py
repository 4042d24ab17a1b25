"""The first prompt about a project that was indexed: the function that it is about stands behind
it, at the settings that hotset comes with."""

from __future__ import annotations

import pytest

from hotset.surfaces.proxy.address import Address
from hotset.testing import Say, ScriptedUpstream
from tests.cli.conftest import Desk, sending_to
from tests.proxy.talking import Talk, assert_each_extends_the_one_before
from tests.proxy.wire import DIALECTS

FILES = {
    "src/auth/jwt.py": '''"""Tokens of signed-in users."""

import base64
import hashlib
import hmac
import json
import time


def encode_token(claims: dict, secret: str, ttl: int = 3600) -> str:
    """A signed JWT with these claims."""
    payload = {**claims, "exp": int(time.time()) + ttl}
    head = _pack({"alg": "HS256", "typ": "JWT"})
    body = _pack(payload)
    return f"{head}.{body}.{_sign(head, body, secret)}"


def decode_token(token: str, secret: str) -> dict:
    """The claims of a JWT. Raises `ValueError` if the signature is wrong or it has expired."""
    head, body, signature = token.split(".")
    if not hmac.compare_digest(signature, _sign(head, body, secret)):
        raise ValueError("bad signature")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    if is_expired(claims):
        raise ValueError("the token has expired")
    return claims


def is_expired(claims: dict, leeway: int = 0) -> bool:
    """True once the expiration time of the token is over."""
    return claims["exp"] + leeway > time.time()


def _pack(value: dict) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _sign(head: str, body: str, secret: str) -> str:
    made = hmac.new(secret.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).decode().rstrip("=")
''',
    "src/auth/passwords.py": '''"""Passwords: hashed, never kept."""

import hashlib
import os


def hash_password(password: str) -> bytes:
    salt = os.urandom(16)
    return salt + hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


def check_password(password: str, known: bytes) -> bool:
    salt, digest = known[:16], known[16:]
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1) == digest
''',
    "src/shop/basket.py": '''"""A customer's basket."""


class Basket:
    def __init__(self) -> None:
        self.items: list[tuple[str, int]] = []

    def add(self, article: str, price: int) -> None:
        self.items.append((article, price))

    def total(self, rebate: float = 0.0) -> int:
        return round(sum(price for _, price in self.items) * (1 - rebate))
''',
    "src/shop/orders.py": '''"""Orders and how they are shipped."""

from dataclasses import dataclass


@dataclass
class Order:
    number: int
    customer: str
    lines: list[str]


def ship(order: Order, address: str) -> str:
    """The label of a parcel."""
    return f"{order.number} {order.customer} {address}"


def cancel(order: Order, reason: str) -> None:
    order.lines.clear()
''',
    "src/api/routes.py": '''"""HTTP routes of the shop."""

from src.auth.jwt import decode_token, encode_token
from src.auth.passwords import check_password


def login(request, users, secret):
    user = users[request["name"]]
    if not check_password(request["password"], user.password):
        return 401, "wrong password"
    return 200, encode_token({"sub": user.name}, secret)


def orders(request, store, secret):
    claims = decode_token(request["token"], secret)
    return 200, store.orders_of(claims["sub"])
''',
    "src/db/connection.py": '''"""The database connection, with a pool."""

import sqlite3


def connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5.0)
    connection.execute("PRAGMA journal_mode = WAL")
    return connection
''',
    "tests/test_basket.py": """from src.shop.basket import Basket


def test_a_rebate_is_taken_off():
    basket = Basket()
    basket.add("tea", 1000)
    assert basket.total(0.1) == 900
""",
    "README.md": "# Shop\n\nA small shop. Tokens are JWT; they expire after an hour.\n",
}
EXPIRY = 'return claims["exp"] + leeway > time.time()'
PROMPT = "Fix the JWT expiration bug"


@pytest.fixture
def shop(desk: Desk) -> Desk:
    for path, text in FILES.items():
        file = desk.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return desk


def _talk(ready: dict[str, object], dialect: str) -> Talk:
    root, _, token = str(ready["anthropic_base_url"]).rpartition("/")
    port = int(root.rpartition(":")[2])
    return Talk(Address(port, token, int(str(ready["pid"])), "", "", 0.0), dialect)


@pytest.mark.row("V7")
@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_first_prompt_about_an_indexed_project_brings_the_function_that_it_is_about(
    shop, dialect
):
    assert shop.run("index", "--yes").code == 0
    with (
        ScriptedUpstream(lambda _: Say("So be it.")) as upstream,
        shop.serving(env=sending_to(upstream)) as ready,
    ):
        talk = _talk(ready, dialect)
        talk.say(PROMPT)
        talk.say("Thanks. What is the weather like?")
        first, second = upstream.requests
        assert_each_extends_the_one_before([first, second])
        offered = shop.run("events", "--type", "prefetch", "--json").json()
        prefetches = shop.run("status", "--json").json()["proxy"]["metrics"]["prefetches"]

    sent = first.decoded.decode()
    assert sent.index(PROMPT) < sent.index("[AUTO-RETRIEVED: src/auth/jwt.py:")
    assert EXPIRY.replace('"', '\\"') in sent
    assert sent.count("AUTO-RETRIEVED") == 1
    assert second.decoded.decode().count("AUTO-RETRIEVED") == 1
    assert "AUTO-RETRIEVED" not in talk.wrote
    assert prefetches["offered"] == 1
    assert "jwt" not in str(offered)


@pytest.mark.row("V7")
@pytest.mark.slow
def test_it_is_silent_where_nothing_is_likely_or_nothing_was_indexed(shop):
    with (
        ScriptedUpstream(lambda _: Say("So be it.")) as upstream,
        shop.serving(env=sending_to(upstream)) as ready,
    ):
        _talk(ready, "anthropic").say(PROMPT)
    assert shop.run("index", "--yes").code == 0
    with (
        ScriptedUpstream(lambda _: Say("So be it.")) as likely,
        shop.serving(env=sending_to(likely)) as ready,
    ):
        for prompt in ("Make it faster", "What is this about?", "Write a poem", "Fix the bug"):
            _talk(ready, "anthropic").say(prompt)
    for request in (*upstream.requests, *likely.requests):
        assert b"[hotset prefetch" not in request.decoded
