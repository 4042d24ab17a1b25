"""A memory over a scripted upstream that keeps the provider's rules."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hotset
from hotset.store.port import Store, Where
from hotset.store.sqlite import SqliteStore
from hotset.testing import ScriptedUpstream
from tests.proxy.conftest import stopped

_MOMENT = re.compile(rb"(20\d\d-\d\d-\d\d |@ )\d\d:\d\d")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch, tmp_path):
    """Nothing of the machine's own settings, and no summaries: they are made in the background,
    sooner or later."""
    monkeypatch.setenv("HOTSET_SUMMARY_EVERY", "0")
    monkeypatch.setenv("HOTSET_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("HOTSET_HOME", str(tmp_path / "home"))


@pytest.fixture
def upstream() -> Iterator[Callable[..., ScriptedUpstream]]:
    with contextlib.ExitStack() as stack:
        yield lambda script=None: stack.enter_context(
            ScriptedUpstream(script, now=stopped, strict=True)
        )


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Callable[..., hotset.Memory]]:
    """Opens memories in a folder of their own; they end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            hotset.open(tmp_path, data=tmp_path / "data", **settings)
        )


def sent(upstream: ScriptedUpstream) -> list[bytes]:
    """Every body that arrived, without the time of day."""
    return [_MOMENT.sub(b"20..", request.body) for request in upstream.requests]


def facts(folder: Path) -> dict[str, list[object]]:
    """What a store holds of its one session, without the times and the names of turns, which differ
    in every run."""
    with contextlib.closing(SqliteStore.open(folder)) as store:
        (session,) = store.sessions()
        return {
            "session": [session.id, session.agent, session.dialect, session.title],
            "turns": [
                (
                    t.number,
                    t.branch,
                    t.model,
                    t.streamed,
                    t.head,
                    t.tail,
                    t.outcome,
                    t.status,
                    t.stop,
                    t.usage,
                )
                for t in store.turns(session.id)
            ],
            "pages": [
                (p.id, p.turn, p.kind, p.digest, p.chain, p.position, p.tool, p.call)
                for p in store.pages(Where())
            ],
            **_table(store, session.id),
            "references": [
                (r.id, r.kind, r.pages, r.turns, r.tokens) for r in store.references(session.id)
            ],
            "bills": [
                (
                    b.turn,
                    b.model,
                    b.upstream,
                    b.sent,
                    b.whole,
                    b.usage,
                    b.calls,
                    b.faults,
                    b.refaults,
                    b.broke,
                )
                for b in store.bills()
            ],
            "events": sorted(
                (e.name, e.turn, str(e.detail.get("tool")), str(e.detail.get("cause")))
                for e in store.events(session.id)
            ),
        }


def _table(store: Store, session) -> dict[str, list[object]]:
    table = store.table([node.chain for node in store.nodes(session)])
    shown = [
        (spot.chain, spot.position, row.form, _MOMENT.sub(b"20..", row.text), row.cause)
        for spot, row in table.shown.items()
    ]
    return {"shown": shown, "hidden": list(table.hidden)}
