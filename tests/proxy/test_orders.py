"""A person's orders, from the command line to the next request of a session that is under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hotset.nouns.knobs import Knobs, Limit
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import Desk, desk_in
from tests.proxy.conftest import stopped
from tests.proxy.talking import Talk, code
from tests.waiting import wait_until

_SHORT = Knobs(limit=Limit(2000, 1000), limits={}, early=False)


@contextmanager
def shortened_session(tmp_path: Path) -> Iterator[tuple[Desk, Talk, ScriptedUpstream, LocalProxy]]:
    """A session whose results were shortened."""
    desk = desk_in(tmp_path)
    reply = Say("Reading on.", calls=(Call("read_file", {"path": "a.py"}),))
    with (
        ScriptedUpstream(lambda _: reply, strict=True, now=stopped) as upstream,
        LocalProxy(
            desk.data,
            openai_url=f"{upstream.url}/v1",
            anthropic_url=upstream.url,
            project=desk.project,
            knobs=_SHORT,
            clock=stopped,
        ) as proxy,
    ):
        talk = Talk(proxy.address, "anthropic")
        talk.say("Read the files. " + code("words", functions=200))
        for mark in ("first", "second", "other"):
            talk.results(code(mark, functions=120))
        proxy.wait_until_kept()
        yield desk, talk, upstream, proxy
    desk.clear()


def _segments(desk: Desk) -> list[dict[str, Any]]:
    return desk.run("window", "--json").json()["segments"]


def _shortened(desk: Desk) -> str:
    """The page of the first result."""
    return next(each["pages"][0] for each in _segments(desk) if each["form"] == "excerpt")


def _ordered(desk: Desk, proxy: LocalProxy, *words: str) -> dict[str, Any]:
    before = proxy.machine.orders.latest
    ran = desk.run("window", *words, "--json")
    assert ran.code == 0, ran.err
    wait_until(lambda: proxy.machine.orders.latest != before)
    return ran.json()


@pytest.mark.row("X4")
def test_what_a_person_brings_back_at_once_is_whole_in_the_next_request_and_its_price_was_told(
    tmp_path,
):
    with shortened_session(tmp_path) as (desk, talk, upstream, proxy):
        page = _shortened(desk)
        tail = b"first_119"
        assert desk.run("recall", page).out.encode().count(b"first_119")
        assert tail not in upstream.requests[-1].decoded

        told = _ordered(desk, proxy, "restore", page, "--now")
        talk.results(code("third", functions=2))

        assert told["price"]["tokens"] > 0
        assert tail in upstream.requests[-1].decoded
        proxy.wait_until_kept()
        segment = next(each for each in _segments(desk) if page in each["pages"])
        assert (segment["form"], segment["order"], segment["cause"]) == (
            "full",
            "restore",
            "person",
        )
        assert "a person ordered: restore" in desk.run("events", "--type", "ordered").out
        before = upstream.requests[-1].decoded
        talk.results(code("fourth", functions=2))
        assert upstream.requests[-1].decoded.count(tail) == before.count(tail)


@pytest.mark.row("X4")
def test_without_haste_an_order_waits_for_a_cold_cache_and_breaks_no_prefix(tmp_path):
    with shortened_session(tmp_path) as (desk, talk, _upstream, proxy):
        _ordered(desk, proxy, "evict", _shortened(desk))
        talk.results(code("third", functions=2))
        proxy.wait_until_kept()
        assert desk.run("events", "--type", "eviction", "--json").json() == []
        assert not any(each["form"] == "gone" for each in _segments(desk))


@pytest.mark.row("X4")
def test_a_tool_that_is_never_shortened_and_a_session_that_is_switched_off_go_out_as_they_are(
    tmp_path,
):
    with shortened_session(tmp_path) as (desk, talk, upstream, proxy):
        _ordered(desk, proxy, "whole", "read_file")
        talk.results(code("third", functions=120))
        assert b"third_119" in upstream.requests[-1].decoded
        assert b"first_119" not in upstream.requests[-1].decoded

        proxy.wait_until_kept()
        _ordered(desk, proxy, "off", "last", "--now")
        talk.results(code("fourth", functions=120))
        sent = upstream.requests[-1].decoded
        assert b"first_119" in sent
        assert b"fourth_119" in sent
        assert b"retrieve_context" not in sent

        for each in desk.run("window", "orders", "--json").json():
            _ordered(desk, proxy, "undo", each["about"])
        talk.results(code("fifth", functions=120))
        assert b"fifth_119" not in upstream.requests[-1].decoded


@pytest.mark.row("X4")
def test_the_window_and_the_savings_tell_the_same_money(tmp_path):
    with shortened_session(tmp_path) as (desk, _talk, _upstream, _proxy):
        view = desk.run("window", "--json").json()
        total = desk.run("savings", "--session", "last", "--json").json()["total"]
        assert view["spent"] == pytest.approx(total["measured"]["dollars"])
        assert view["everything"] == pytest.approx(total["estimated"]["dollars"])


@pytest.mark.row("X4")
def test_what_cannot_be_ordered_is_refused_with_a_sentence_and_nothing_changes(tmp_path):
    with shortened_session(tmp_path) as (desk, _talk, _upstream, _proxy):
        prompt = next(each["pages"][0] for each in _segments(desk) if each["kind"] == "prompt")
        refused = desk.run("window", "evict", prompt)
        assert refused.code == 2
        assert "the user's words" in refused.err
        assert desk.run("window", "undo", prompt).code == 2
        assert desk.run("window", "pin").code == 2
        assert desk.run("window", "orders", "--json").json() == []
