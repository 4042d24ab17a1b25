"""A page table outlives its proxy: after a restart, a kill or in another process the same prefix is
sent, to the byte."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hotset.nouns.knobs import Knobs
from hotset.nouns.message import Usage
from hotset.surfaces.proxy.address import Address
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.conftest import Pair
from tests.proxy.talking import (
    OURS,
    SHORTENING,
    Talk,
    assert_each_extends_the_one_before,
    code,
    looking,
    read,
    retrieve,
)
from tests.proxy.test_killed import serving
from tests.proxy.wire import DIALECTS

_FUNCTIONS = 300  # more than `SHORTENING` shows of any file
_BY_DEFAULT = 700  # more than is shown of any file where nobody says otherwise
_BEFORE, _AFTER = 4, 3
"""Turns before and after the other proxy takes over."""

Place = Callable[[int], Address]
"""Where the client sends its n-th request."""


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["document", "stream"])
def stream(request):
    return request.param


def _script(dialect: str) -> list[Say]:
    """Files are read, one of them is asked for again behind the client's back, and beside a call of
    the client's."""
    return [
        Say("First.", calls=(read("0.py", id="one"),)),
        looking("1.py"),
        Say("I need more.", calls=(retrieve(dialect, "one", symbol="zero_222"),)),
        looking("2.py"),
        Say("Both.", calls=(read("3.py"), retrieve(dialect, "one", symbol="zero_111"))),
        looking("4.py"),
        looking("5.py"),
        looking("6.py"),
        Say("Done."),
    ]


def _work(place: Place, dialect: str, *, stream: bool, functions: int = _FUNCTIONS) -> Talk:
    """The same session, wherever its requests go."""
    marks = {"cache_control": {"type": "ephemeral"}} if dialect == "anthropic" else {}
    talk = Talk(place(0), dialect, stream, marks)
    talk.say("Read the files.")
    for turn in range(1, _BEFORE + _AFTER + 1):
        talk.address = place(turn)
        talk.results(code("zero" if turn == 1 else f"part{turn}", functions))
    assert talk.text == "Done."
    assert not any(ours in talk.wrote for ours in OURS)
    return talk


@contextlib.contextmanager
def _proxy(
    folder: Path, upstream: ScriptedUpstream, knobs: Knobs | None = SHORTENING
) -> Iterator[LocalProxy]:
    with LocalProxy(
        folder, openai_url=upstream.openai_url, anthropic_url=upstream.anthropic_url, knobs=knobs
    ) as proxy:
        yield proxy


@functools.cache
def _undisturbed(dialect: str, *, stream: bool, functions: int = _FUNCTIONS) -> Usage:
    """What the session costs with one proxy from beginning to end."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedUpstream(_script(dialect), strict=True) as upstream,
        _proxy(
            Path(folder) / "data", upstream, SHORTENING if functions == _FUNCTIONS else None
        ) as proxy,
    ):
        _work(lambda _: proxy.address, dialect, stream=stream, functions=functions)
        assert_each_extends_the_one_before(upstream.requests)
        return upstream.bill


@pytest.mark.row("X3")
@pytest.mark.rest_slow
def test_a_restart_in_mid_session_breaks_no_prefix(tmp_path, dialect, stream):
    with (
        ScriptedUpstream(_script(dialect), strict=True) as upstream,
        contextlib.ExitStack() as stack,
    ):
        proxy = stack.enter_context(_proxy(tmp_path / "data", upstream))

        def place(turn: int) -> Address:
            nonlocal proxy
            if turn == _BEFORE:
                stack.close()
                proxy = stack.enter_context(_proxy(tmp_path / "data", upstream))
            return proxy.address

        _work(place, dialect, stream=stream)

        assert_each_extends_the_one_before(upstream.requests)
        assert upstream.bill == _undisturbed(dialect, stream=stream)
        assert upstream.bill.cache_read > upstream.bill.input


@pytest.mark.row("X3")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.slow
def test_a_kill_in_mid_session_breaks_no_prefix(tmp_path, dialect):
    with (
        ScriptedUpstream(_script(dialect), strict=True) as upstream,
        serving(tmp_path / "data", upstream.url) as up,
    ):

        def place(turn: int) -> Address:
            if turn == _BEFORE:  # right behind a reply of which a part was hidden
                up.kill()
                up.start()
            return up.address

        _work(place, dialect, stream=True, functions=_BY_DEFAULT)

        assert_each_extends_the_one_before(upstream.requests)
        assert upstream.bill == _undisturbed(dialect, stream=True, functions=_BY_DEFAULT)


@pytest.mark.row("X3")
@pytest.mark.rest_slow
def test_two_proxies_that_take_turns_break_no_prefix(tmp_path, dialect, stream):
    """As behind a load balancer: neither saw what the other one decided but in the store that they
    share."""
    with (
        ScriptedUpstream(_script(dialect), strict=True) as upstream,
        _proxy(tmp_path / "data", upstream) as one,
        _proxy(tmp_path / "data", upstream) as two,
    ):
        proxies = [Pair(each.address, upstream, tmp_path / "data") for each in (one, two)]

        def place(turn: int) -> Address:
            for each in proxies:
                each.settle()
            return proxies[(turn // 2 + turn) % 2].address

        _work(place, dialect, stream=stream)

        assert_each_extends_the_one_before(upstream.requests)
        assert upstream.bill == _undisturbed(dialect, stream=stream)
