"""Colour and moving things: only where someone watches, and never against their will."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.deposit import Remembered, ReplyReceived, RequestReceived
from hotset.nouns.memory import Fact, MemoryId, MemoryKind, MemoryRecord, Provenance
from hotset.nouns.message import DialectName, Reply
from hotset.nouns.page import Kind
from hotset.nouns.turn import Outcome
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.cli.terminal import one_line, plain, size, span
from tests.cli.conftest import NOW, Desk


def on_a_terminal(desk: Desk, *arguments: str, env: Mapping[str, str] | None = None) -> bytes:
    """What a person would see on the screen."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        desk.command(*arguments),
        env=desk.environ({"TERM": "xterm", **(env or {})}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # the other end is closed
            pass
        process.wait(120)
    os.close(ours)
    return seen


def test_a_terminal_gets_colour_and_a_pipe_does_not(filled: Desk):
    assert b"\x1b[" in on_a_terminal(filled, "show", "last")
    assert b"\x1b[" not in filled.run("show", "last").raw


@pytest.mark.parametrize("command", [("show", "last"), ("doctor",), ("sessions",)])
def test_no_color_is_honoured(filled: Desk, command: tuple[str, ...]):
    assert b"\x1b[3" not in on_a_terminal(filled, *command, env={"NO_COLOR": "1"})


def test_export_does_not_pour_data_into_a_terminal(filled: Desk):
    assert b"give a file with -o" in on_a_terminal(filled, "export")


def test_numbers_are_written_for_people():
    assert [size(n) for n in (0, 999, 1500, 123_456, 5_000_000_000)] == [
        "0 B",
        "999 B",
        "1.5 KB",
        "123 KB",
        "5.0 GB",
    ]
    assert [span(s) for s in (0.2, 12, 90, 7200, 200_000)] == [
        "0.2 s",
        "12 s",
        "2 min",
        "2 h",
        "2 days",
    ]


def test_text_from_elsewhere_cannot_steer_the_terminal():
    assert plain("a\x1b[2Jb\x07c\u202ed") == "a�[2Jb�c�d"
    assert one_line(b"two\nlines\r\x1b[A of text", 12) == "two lines �…"
    assert one_line(b"short", 12) == "short"


ATTACK = "\x1b]0;owned\x07\x1b[2J\x1b[8m\x9b31m\u202egnp.exe\u200b\ralert  all is well\x1b[35m"
"""A title for the window, a cleared screen, hidden text, C1, a turned direction, a line written
over."""
STEERS = re.compile(
    r"\x1b(?!\[(?:[012]|3[1-7])m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]|\r(?!\n)|well\x1b"
)
COMMANDS = (
    ("sessions",),
    ("show", "last"),
    ("show", "last", "--full"),
    ("diff", "last", "last"),
    ("savings",),
    ("status",),
    ("doctor",),
    ("search", "owned"),
    ("memory", "list", "--standing", "any"),
    ("memory", "search", "owned"),
    ("memory", "graph"),
    ("memory", "timeline"),
    ("memory", "index"),
    ("verify",),
    ("tools", "list"),
    ("show", ATTACK),
    ("recall", ATTACK.replace("\0", "")),
    ("sessions", "--since", ATTACK),
)


def hostile(folder: Path) -> list[str]:
    """A store in which every field that somebody else chooses tries to steer a terminal. Gives ids
    of a memory and a page."""
    dialect = DIALECTS[DialectName.ANTHROPIC]
    call = {
        "type": "tool_use",
        "id": f"toolu_{ATTACK}",
        "name": f"Read{ATTACK}",
        "input": {"file_path": ATTACK},
    }
    image = {"type": "base64", "media_type": f"image/png{ATTACK}", "data": "aGk="}
    messages: list[dict[str, Any]] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"owned {ATTACK}"},
                {"type": "image", "source": image},
            ],
        },
        {"role": "assistant", "content": [call]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": ATTACK}],
        },
    ]
    body = {"model": f"model{ATTACK}", "max_tokens": 9, "system": ATTACK, "messages": messages}
    with closing(SqliteStore.open(folder)) as store:
        asked = RequestReceived(
            dialect.parse(json.dumps(body).encode()), NOW, f"agent{ATTACK}", key=f"key{ATTACK}"
        )
        told = store.keep(asked).result(120)
        assert told.turn is not None
        failed = ReplyReceived(
            told.turn, NOW + 1, Outcome.REFUSED, 500, ATTACK.encode(), Reply(error=f"error{ATTACK}")
        )
        store.keep(failed).result(120)
        source = Provenance(
            f"by{ATTACK}", told.turn.session, f"agent{ATTACK}", (), (f"place{ATTACK}",)
        )
        memory = MemoryRecord(
            MemoryId("sem-7ha2c0de"),
            MemoryKind.FACT,
            f"owned {ATTACK}",
            f"owned text {ATTACK}",
            NOW,
            source,
            Fact(ATTACK),
            (f"topic{ATTACK}",),
            why=ATTACK,
        )
        store.keep(Remembered((memory,))).result(120)
        page = next(page for page in store.pages(Where()) if page.kind is Kind.PROMPT)
    return [memory.id, page.id]


@pytest.mark.parametrize("as_json", [False, True])
def test_no_field_of_what_is_kept_can_steer_the_terminal(desk: Desk, as_json: bool):
    memory, page = hostile(desk.data)
    more = (("memory", "show", memory), ("memory", "why", memory), ("recall", page))
    said, seen = 0, {}
    for command in (*COMMANDS, *more):
        ran = desk.run(*command, *(["--json"] if as_json else []))
        said += "owned" in ran.out
        if command[0] == "recall" and ran.code == 0 and not as_json:
            continue  # the exact bytes, in a pipe
        if found := STEERS.search(ran.out + ran.err):
            seen[command] = (ran.out + ran.err)[max(0, found.start() - 40) : found.end() + 20]
        if as_json and ran.out:
            json.loads(ran.out)
    assert seen == {}
    assert said > 5, "nothing of it was shown: this would prove nothing"


@pytest.mark.parametrize(
    "command",
    [
        ("show", "last"),
        ("sessions",),
        ("memory", "show", "--quiet"),
        ("recall",),
        ("show", "last", "--json"),
    ],
)
@pytest.mark.rest_slow
def test_on_a_terminal_nothing_but_our_own_colours_is_obeyed(desk: Desk, command: tuple[str, ...]):
    memory, page = hostile(desk.data)
    more = {"memory": [memory], "recall": [page]}.get(command[0], [])
    screen = on_a_terminal(desk, *command, *more).decode().replace("\r\n", "\n")
    assert "owned" in screen
    assert STEERS.search(screen) is None, repr(screen)


def test_json_says_what_is_kept_though_it_writes_it_harmlessly(desk: Desk):
    hostile(desk.data)
    (line,) = desk.run("sessions", "--json").json()
    assert line["model"] == f"model{ATTACK}"
