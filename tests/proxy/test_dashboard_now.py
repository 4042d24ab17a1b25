"""What the view Now asks for: the timeline of a session, prices before an order, and pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotset.testing.proxy import LocalProxy
from tests.proxy.talking import code
from tests.proxy.test_orders import shortened_session
from tests.proxy.wire import call
from tests.waiting import wait_until


def ask(proxy: LocalProxy, path: str) -> Any:
    return call(proxy.address, "GET", f"/{proxy.address.token}/hotset/api/{path}").json()


def order(proxy: LocalProxy, **body: Any) -> Any:
    path = f"/{proxy.address.token}/hotset/api/act"
    before = proxy.machine.orders.latest
    headers = {"content-type": "application/json"}
    done = call(proxy.address, "POST", path, json.dumps(body).encode(), headers)
    assert done.status == 200, done.body
    wait_until(lambda: proxy.machine.orders.latest != before)
    return done.json()


def first_result(proxy: LocalProxy) -> str:
    segments = ask(proxy, "sessions/last/window")["segments"]
    return next(each["pages"][0] for each in segments if each["form"] == "excerpt")


@pytest.mark.row("X4")
def test_the_timeline_has_every_turn_and_what_happened_and_only_what_is_new_where_that_is_asked(
    tmp_path,
):
    with shortened_session(tmp_path) as (_desk, talk, _upstream, proxy):
        page = first_result(proxy)
        order(proxy, act="evict", about=page, at_once=True)
        talk.results(code("third", functions=2))
        proxy.wait_until_kept()
        line = ask(proxy, "sessions/last/timeline")
        turns = ask(proxy, "sessions/last/turns")
        window = ask(proxy, "sessions/last/window")
        rest = ask(proxy, "sessions/last/timeline?first=4")

    assert line["turns"] == [each["number"] for each in turns] == list(range(1, line["last"] + 1))
    for name in ("sent", "whole"):
        assert line[name] == [each[name] for each in turns]
    assert sum(line["spent"]) == pytest.approx(window["spent"])
    assert sum(line["everything"]) == pytest.approx(window["everything"])
    marks = {each["name"]: each for each in line["marks"]}
    assert marks["evicted"]["turn"] == marks["broke"]["turn"] == line["last"]
    assert marks["evicted"]["tokens"] > 0
    assert (marks["ordered"]["turn"], marks["ordered"]["cause"]) == (line["last"] - 1, "evict")
    assert rest["turns"] == line["turns"][3:]
    assert rest["sent"] == line["sent"][3:]


@pytest.mark.row("X4")
def test_the_price_of_an_order_is_told_before_it_is_given_and_so_is_why_it_cannot_be(tmp_path):
    with shortened_session(tmp_path) as (_desk, _talk, _upstream, proxy):
        page = first_result(proxy)
        segments = ask(proxy, "sessions/last/window")["segments"]
        prompt = next(each["pages"][0] for each in segments if each["kind"] == "prompt")
        quotes = {each["act"]: each for each in ask(proxy, f"price?page={page}")}
        mine = {each["act"]: each for each in ask(proxy, f"price?page={prompt}")}
        (off,) = ask(proxy, "price?session=last")
        assert ask(proxy, "orders") == []
        done = order(proxy, act="restore", about=page, at_once=True)

    assert set(quotes) == {"pin", "restore", "evict"}
    assert quotes["restore"]["price"] == done["price"]
    assert done["price"]["tokens"] > 0
    assert quotes["pin"]["price"] is None
    assert not any(each["refused"] for each in quotes.values())
    assert "the user's words" in mine["evict"]["refused"]
    assert (off["act"], off["refused"]) == ("off", "")
    assert off["price"]["tokens"] > 0


@pytest.mark.row("X4")
def test_what_a_page_cost_ends_where_it_left(tmp_path):
    with shortened_session(tmp_path) as (_desk, talk, _upstream, proxy):
        page = first_result(proxy)
        talk.results(code("third", functions=2))
        proxy.wait_until_kept()
        stays = ask(proxy, f"pages/{page}")
        order(proxy, act="evict", about=page, at_once=True)
        costs = []
        for mark in ("fourth", "fifth"):
            talk.results(code(mark, functions=2))
            proxy.wait_until_kept()
            costs.append(ask(proxy, f"pages/{page}")["cost"])
        gone = ask(proxy, f"pages/{page}")

    assert (stays["form"], gone["form"]) == ("excerpt", "gone")
    assert 0 < stays["cost"] == costs[0] == costs[1]


@pytest.mark.row("X4")
def test_pages_that_left_together_are_told_in_a_line_each(tmp_path):
    with shortened_session(tmp_path) as (_desk, _talk, _upstream, proxy):
        segments = ask(proxy, "sessions/last/window")["segments"]
        results = [each for each in segments if each["tool"] == "read_file"][:3]
        ids = [each["pages"][0] for each in results]
        lines = ask(proxy, f"pages?ids={','.join(ids)}")
        lost = call(
            proxy.address, "GET", f"/{proxy.address.token}/hotset/api/pages?ids={ids[0]},nope"
        )

    assert [each["id"] for each in lines] == ids
    assert [(each["kind"], each["turn"]) for each in lines] == [
        (each["kind"], each["turn"]) for each in results
    ]
    assert lost.status == 404
