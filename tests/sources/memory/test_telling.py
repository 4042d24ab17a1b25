"""What a prompt is told unasked: what changes what the agent does next, in its own words with its
id, at most two memories, and mostly nothing."""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.proxy.wire import post

from hotset.nouns.deposit import Remembered
from hotset.nouns.knobs import Remembering
from hotset.nouns.memory import (
    Detail,
    Episode,
    MemoryKind,
    MemoryRecord,
    Pitfall,
    Procedure,
    Provenance,
    Standing,
    Trouble,
    Trust,
)
from hotset.nouns.page import SessionId
from hotset.sources.memory.kinds import memory_id
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy

TOOL = {
    "type": "function",
    "function": {"name": "shell", "parameters": {"type": "object", "properties": {}}},
}
QUIET = Remembering(quiet_seconds=3600.0, offer_seconds=20.0)


def remembered(
    kind: MemoryKind, text: str, detail: Detail = None, *, by: str = "person", sessions: int = 1
) -> MemoryRecord:
    places = tuple(f"session:s{number}" for number in range(1, sessions))
    return MemoryRecord(
        memory_id(kind, text),
        kind,
        text[:80],
        text,
        time.time() - 86_400.0,
        Provenance(by, None if by == "person" else SessionId("s0"), places=places),
        detail=detail,
        trust=Trust.PERSON if by == "person" else Trust.OUTCOME,
        tokens=20,
        time=time.time(),
    )


def stated(text: str) -> MemoryRecord:
    return remembered(MemoryKind.FACT, text)


RELEASE = remembered(
    MemoryKind.PROCEDURE,
    "To cut a release: 1. update CHANGELOG.md; 2. run `make bump`; 3. push the tag.",
    Procedure("to cut a release", ("update CHANGELOG.md", "run `make bump`", "push the tag")),
)
REFUSED = remembered(
    MemoryKind.PITFALL,
    "`make test` fails with `connection refused` on port 5433. What resolved it: ran `make db-up`.",
    Pitfall("`make test` fails with connection refused", "port 5433", "ran `make db-up`"),
    by="rules",
)
FACTS = [
    "We always store dates in UTC.",
    "Install with uv, never pip.",
    "Prices are integers in cents, never floats.",
    "Dana owns the checkout service; ask her before changing its API.",
    "Don't edit the files in src/gen by hand, they are generated from the OpenAPI spec.",
    "Commit messages are written in the imperative.",
    "The staging server is stage2.shop.example, reached over the VPN only.",
    "Our designers work from Lisbon.",
]
LIBRARY = [*map(stated, FACTS), RELEASE, REFUSED]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return keep(tmp_path / "data", *LIBRARY)


def keep(folder: Path, *memories: MemoryRecord) -> Path:
    with contextlib.closing(SqliteStore.open(folder)) as store:
        store.keep(Remembered(memories)).result(60)
    return folder


def told(folder: Path, *prompts: str) -> list[str]:
    """What is shown behind each prompt of one conversation."""
    shown: list[str] = []
    with (
        ScriptedUpstream([Say("Fine.") for _ in prompts]) as provider,
        LocalProxy(folder, openai_url=provider.openai_url, memory=QUIET) as proxy,
    ):
        talk: list[dict[str, Any]] = []
        for prompt in prompts:
            talk.append({"role": "user", "content": prompt})
            body = json.dumps({"model": "gpt-5.4", "messages": talk, "tools": [TOOL]}).encode()
            assert post(proxy.address, "openai-chat", body, {"x-session-id": "one"}).status == 200
            last = json.loads(provider.requests[-1].body)["messages"][-1]
            shown.append(str(last["content"]).partition("[hotset memory")[2])
            talk.append({"role": "assistant", "content": "Fine."})
    return shown


@pytest.mark.row("M3")
@pytest.mark.parametrize(
    ("prompt", "memory"),
    [
        ("Change the response of POST /checkout so that it returns a string.", LIBRARY[3]),
        ("The client lacks `refund`, add the method to src/gen/client.py.", LIBRARY[4]),
        ("Deploy the branch to the staging server so that QA can look.", LIBRARY[6]),
        ("Let's cut a release, version 2.4.0.", RELEASE),
        ("make test says OperationalError: connection refused on port 5433, why?", REFUSED),
    ],
)
def test_a_prompt_is_told_what_changes_what_is_done_next_in_its_own_words_with_its_id(
    shop: Path, prompt: str, memory: MemoryRecord
):
    (shown,) = told(shop, prompt)
    assert memory.id in shown
    assert memory.text in shown
    assert len(ids(shown)) <= 2


@pytest.mark.row("M3")
def test_a_prompt_that_needs_no_memory_is_told_nothing(shop: Path):
    prompts = [
        "Good morning!",
        "What is the difference between a left join and an inner join?",
        "Translate this into French: the prices of the checkout are in cents.",
        "Make the header sticky on small screens.",
        "Who invented the checkout?",
        "thanks, that is all",
    ]
    assert told(shop, *prompts) == [""] * len(prompts)


def test_a_memory_is_told_once_in_a_conversation(shop: Path):
    first, second = told(shop, "Let's cut a release, 2.4.0.", "And now cut the release 2.4.1.")
    assert RELEASE.id in first
    assert RELEASE.id not in second


def test_what_was_forgotten_replaced_or_came_from_outside_is_not_told(tmp_path: Path):
    aside = [
        replace(RELEASE, standing=Standing.FORGOTTEN),
        replace(REFUSED, trust=Trust.OUTSIDE),
        replace(LIBRARY[3], standing=Standing.SUPERSEDED),
    ]
    folder = keep(tmp_path / "data", *LIBRARY[4:8], *aside)
    asked = ["Let's cut a release, 2.4.0.", "Change the API of the checkout service."]
    assert told(folder, *asked, "make test: connection refused on port 5433") == [""] * 3


def test_one_memory_alone_is_told_where_it_fits(tmp_path: Path):
    folder = keep(tmp_path / "data", RELEASE)
    fits, other = told(folder, "Let's cut a release, 2.4.0.", "Add a button to the start page.")
    assert RELEASE.text in fits
    assert other == ""


@pytest.mark.row("M2")
def test_an_error_that_only_an_episode_knows_brings_what_resolved_it(tmp_path: Path):
    trouble = Trouble(
        "ModuleNotFoundError",
        "ModuleNotFoundError: No module named 'libcairo'",
        "shell",
        "python render.py",
        ("ran `apt-get install libcairo2`",),
        is_resolved=True,
    )
    episode = remembered(
        MemoryKind.EPISODE,
        "Draw the charts of the report. Done.",
        Episode("Draw the charts of the report", troubles=(trouble,), artifacts=("render.py",)),
        by="rules",
    )
    folder = keep(tmp_path / "data", *LIBRARY, episode)
    failed = "Traceback:\n  File \"/srv/a.py\"\nModuleNotFoundError: No module named 'cairo'\nhelp"
    quoted, plain = told(folder, failed, "Draw another chart for the report.")
    assert episode.id in quoted
    assert "apt-get install libcairo2" in quoted
    assert episode.id not in plain


def test_the_checks_of_most_changes_are_told_with_the_first_change_and_not_again(tmp_path: Path):
    checks = remembered(
        MemoryKind.PROCEDURE,
        "After a change in shop: 1. run `make lint`; 2. run `make test`.",
        Procedure("After a change in shop", ("run `make lint`", "run `make test`")),
        by="rules",
        sessions=4,
    )
    changes = [
        replace(
            remembered(
                MemoryKind.EPISODE, f"Work {at}.", Episode(f"Work {at}", artifacts=("a.py",))
            ),
            source=Provenance("rules", SessionId(f"s{at}")),
            created=checks.created + 1,
        )
        for at in range(4)
    ]
    folder = keep(tmp_path / "data", *LIBRARY, checks, *changes)
    work = "Make the header of the start page sticky on small screens."
    chat, first, second = told(folder, "Hello there!", work, "Now make the footer sticky, too.")
    assert (chat, checks.text in first, second) == ("", True, "")
    (said,) = told(folder, f"{work} Run `make lint` behind it.")
    assert checks.id not in said

    seldom = [
        replace(each, id=memory_id(MemoryKind.EPISODE, str(at)), source=source)
        for at, each in enumerate(changes * 3)
        for source in [Provenance("rules", SessionId(f"other{at}"))]
    ]
    keep(folder, *seldom)
    assert checks.id not in told(folder, work)[0]


@pytest.mark.row("M3")
def test_work_that_a_prompt_goes_on_with_is_listed(tmp_path: Path):
    done = [
        replace(
            remembered(MemoryKind.EPISODE, f"{title}. Done.", Episode(title), by="rules"),
            title=title,
            topics=(topic,),
        )
        for title, topic in (("Import bank statements", "bank statements"), ("Sort tags", "tags"))
    ]
    folder = keep(tmp_path / "data", *LIBRARY, *done)
    named, unknown = told(folder, "Go on with the bank statements.", "Go on with the penguins.")
    assert "Import bank statements" in named
    assert "Sort tags" not in named
    assert unknown == ""


def ids(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\b(?:sem|proc|pit|ep)-[a-z0-9-]+", text))
