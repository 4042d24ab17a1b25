"""`hotset replay --html`: one page to look at and to share."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.conftest import Desk
from tests.cli.test_replay import messages, write

_NO_END = {"meta", "path", "br", "link", "img"}


class Page(HTMLParser):
    """Which elements a page has, whether each is closed, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        if tag not in _NO_END:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in _NO_END:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page_of(desk: Desk, *arguments: str) -> tuple[str, Page]:
    out = desk.home / "report.html"
    done = desk.run("replay", *arguments, "--html", str(out))
    assert done.code == 0, done.err
    assert str(out) in done.err
    source = out.read_text("utf-8")
    return source, Page(source)


@pytest.fixture
def recorded(desk: Desk) -> Path:
    folder = desk.home / ".codex" / "sessions"
    folder.mkdir(parents=True)
    write(folder / "secret-client.json", steps=40)
    write(folder / "other.json", steps=20)
    return folder


def test_the_page_says_in_money_and_percent_what_json_says_in_percent(desk: Desk, recorded: Path):
    _, page = page_of(desk, str(recorded), "--window", "9000")
    told = desk.run("replay", str(recorded), "--window", "9000", "--json").json()

    saved = 100 - told["policies"]["default"]["cost_with_faults_pct"]
    headline = re.search(r"would have cost \$([\d.]+) less: (\d+) %", page.text)
    assert headline is not None, page.text
    assert float(headline[2]) == pytest.approx(saved, abs=0.6)
    assert page.text.count("gpt-4o, ") == 2  # a row of bars for each session
    assert "actions in 100 that lack something" in page.text
    assert "results of read" in page.text
    assert len(page.open) == 0


def test_the_page_loads_nothing_and_runs_nothing(desk: Desk, recorded: Path):
    source, page = page_of(desk, str(recorded), "--window", "9000")

    assert not page.tags & {"script", "link", "img", "iframe", "object", "form", "a"}
    assert not page.names & {"src", "href", "srcset", "onclick", "onload"}
    assert "url(" not in source
    assert "//" not in re.sub(r"<!doctype[^>]*>", "", source)
    assert "prefers-color-scheme: dark" in source


def test_nothing_of_what_was_said_and_no_path_is_on_the_page(desk: Desk, recorded: Path):
    said = messages(20)
    said[1]["tool_calls"][0]["function"]["name"] = "mcp__acme_payroll__read"
    said[0]["content"] = "Prepare the Zanzibar merger"
    (recorded / "third.json").write_text(json.dumps({"model": "gpt-4o", "messages": said}))

    source, _ = page_of(desk, str(recorded), "--window", "9000")
    elsewhere, page = page_of(desk, str(recorded / "third.json"), "--window", "9000")

    for word in ("Zanzibar", "acme", "payroll", "secret-client", "third", "part_3", str(desk.home)):
        assert word not in source + elsewhere
    assert "tools over MCP" in page.text
    assert "hotset replay PATH --window 9000 --html report.html" in page.text


def test_the_page_names_the_command_that_prints_it_again(desk: Desk, recorded: Path):
    _, page = page_of(desk, str(recorded), "--window", "9000", "--set", "keep=8", "--all")

    command = "hotset replay ~/.codex/sessions --set keep=8 --window 9000 --all --html report.html"
    assert command in page.text


def test_a_model_without_a_price_is_said_to_be_a_guess(desk: Desk, tmp_path: Path):
    session = {"model": "nobody-knows-<1>", "messages": messages(20)}
    (tmp_path / "odd.json").write_text(json.dumps(session))

    source, page = page_of(desk, str(tmp_path / "odd.json"), "--window", "9000")

    assert "No list price is known for nobody-knows-<1>" in page.text
    assert "<1>" not in source


def test_the_page_needs_hotsets_own_policy(desk: Desk, recorded: Path):
    done = desk.run("replay", str(recorded), "--policy", "mask", "--html", "report.html")

    assert done.code == 2
    assert "--policy default" in done.err
