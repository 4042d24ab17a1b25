"""Secrets of every kind, planted in a project and said in its sessions: none comes out of any door,
and nothing else is lost.

The store keeps what was said, byte for byte; that is its promise, and it is the one place that is
not searched here.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import hotset
from hotset.nouns.knobs import Knobs, Prefetch, Prefetching
from hotset.sealing.doubts import decode_base64
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.secrets import Planted, kinds, planted
from tests.cli.conftest import Desk
from tests.cli.test_mcp import talk
from tests.proxy.talking import Talk
from tests.proxy.wire import DIALECTS

CANARY = "marmalade"
"""Stands beside every secret: where it is found, a secret that was not sealed would be, too."""

TOGETHER = 8  # secrets of one file
QUESTIONS = (
    CANARY,
    "deploy of service on staging failed",
    "client token password secret api key",
    "BEGIN PRIVATE KEY",
)
THE_STORE = "store.db"
ENOUGH = 20  # prompts with which something of a file was sent


class Traces:
    """Where something of a secret that is long enough to be of use stands in bytes, whatever their
    case."""

    def __init__(self, secrets: Iterable[Planted], apart_from: Iterable[Planted] = ()) -> None:
        """Beginnings that secrets of a kind share are no traces where others are allowed to
        stand."""
        self._kinds = {
            window: each.kind
            for each in secrets
            for piece in pieces(each)
            for window in windows(piece)
        }
        for each in apart_from:
            for piece in pieces(each):
                for window in windows(piece):
                    self._kinds.pop(window, None)

    def kinds_in(self, content: bytes) -> set[str]:
        found = (
            self._kinds.get(window)
            for run in _PRINTED.findall(content.lower())
            for window in windows(run)
        )
        return {kind for kind in found if kind is not None}


_TELLING = 12  # characters, as `Planted.remains` has it
_PRINTED = re.compile(rb"[!-~]{12,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


def pieces(secret: Planted) -> Iterator[bytes]:
    """The lines of a secret, and the base64 in which it may be wrapped."""
    for line in secret.secret.replace("\\n", "\n").splitlines():
        if len(line) >= _TELLING and " " not in line and not line.startswith("-----"):
            yield line.lower().encode()
    for wrapped in _BASE64.findall(secret.text):
        if secret.secret.encode() in (decode_base64(wrapped.encode()) or b""):
            yield wrapped.lower().encode()


def windows(run: bytes) -> Iterator[bytes]:
    return (run[at : at + _TELLING] for at in range(len(run) - _TELLING + 1))


def files(secrets: Sequence[Planted]) -> dict[str, str]:
    """The project: a few secrets a file, in one way of writing after the other."""
    groups = [secrets[at : at + TOGETHER] for at in range(0, len(secrets), TOGETHER)]
    writers = (
        as_code,
        as_json,
        as_yaml,
        as_notebook,
        as_log,
        as_history,
        as_notes,
        as_git_config,
        as_settings,
        as_script,
    )
    made = {}
    for number, group in enumerate(groups):
        name, text = writers[number % len(writers)](number, [each.text for each in group])
        made[name] = text
    return made


def as_code(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return (
        f"src/client_{number}.py",
        f'"""Sells {CANARY}."""\n\n\ndef connect_{number}():\n    pass\n\n\n' + "\n\n".join(texts),
    )


def as_json(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return f"data/state_{number}.json", json.dumps(
        {"about": CANARY, "notes": list(texts)}, indent=2
    )


def as_yaml(number: int, texts: Sequence[str]) -> tuple[str, str]:
    blocks = "".join(f"note{at}: |\n{indented(text, '  ')}\n" for at, text in enumerate(texts))
    return f"deploy/stage_{number}.yaml", f"about: {CANARY}\n{blocks}"


def as_notebook(number: int, texts: Sequence[str]) -> tuple[str, str]:
    cells = [
        {"cell_type": "code", "source": text.splitlines(keepends=True), "outputs": []}
        for text in (CANARY, *texts)
    ]
    return f"work/trial_{number}.ipynb", json.dumps({"cells": cells, "nbformat": 4}, indent=1)


def as_log(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return f"logs/run_{number}.log", f"2026-03-01T10:22:31Z INFO {CANARY}\n" + "\n".join(texts)


def as_history(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return f"notes/typed_{number}.sh_history.txt", f"echo {CANARY}\n" + "\n".join(texts)


def as_notes(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return f"docs/page_{number}.md", f"# About {CANARY}\n\n" + "\n\n".join(
        f"```\n{text}\n```" for text in texts
    )


def as_git_config(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return f"conf/part_{number}.gitconfig", f"[user]\n\tname = {CANARY}\n" + "\n".join(texts)


def as_settings(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return f"web/settings_{number}.ts", f"// {CANARY}\n" + "".join(
        f"export const s{at} = `{text}`;\n" for at, text in enumerate(texts)
    )


def as_script(number: int, texts: Sequence[str]) -> tuple[str, str]:
    return f"bin/run_{number}.sh", f"#!/bin/sh\n# {CANARY}\n" + "\n".join(texts)


def indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.splitlines())


BY_NAME = (
    ".env",
    ".env.production",
    "id_rsa",
    ".netrc",
    ".npmrc",
    "credentials.json",
    "deploy/server.pem",
    ".bash_history",
)


def furnish(
    project: Path, outside: Path, in_files: Sequence[Planted], by_name: Sequence[Planted]
) -> list[str]:
    """Writes the project; gives the paths of what may be read."""
    written = files(in_files)
    everything = "\n".join(each.text for each in by_name)
    closed = {**dict.fromkeys((*BY_NAME, ".git/config"), everything)}
    for path, text in {**written, **closed}.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    outside.mkdir()
    (outside / "elsewhere.py").write_text(everything)
    (project / "linked.py").symlink_to(outside / "elsewhere.py")
    (project / "linked").symlink_to(outside)
    os.link(outside / "elsewhere.py", project / "hard.py")
    return list(written)


def converse(proxy: LocalProxy, upstream_says: list[Say], secrets: Sequence[Planted]) -> None:
    """A secret in a prompt, in a reply, in the arguments of a call and in its result; sessions of
    three such turns."""
    fours = [secrets[at : at + 4] for at in range(0, len(secrets) - 3, 4)]
    for at in range(0, len(fours), 3):
        speaking = Talk(proxy.address, DIALECTS[at // 3 % len(DIALECTS)], stream=at % 2 == 0)
        for number, (prompt, reply, argument, result) in enumerate(fours[at : at + 3]):
            call = Call(
                "read_file", {"path": f"src/{CANARY}.py", "text": argument.text}, f"c{at}n{number}"
            )
            upstream_says += [Say(f"{CANARY}\n{reply.text}", (call,)), Say("Done.")]
            speaking.say(
                f"{behind_its_first_line(prompt.text)}\n{CANARY} in src/client_0.py, connect_0"
            )
            speaking.results(f"{CANARY}\n{result.text}")
            assert speaking.answer is not None
            assert speaking.answer.status == 200


def ask_about(proxy: LocalProxy, upstream: ScriptedUpstream, replies: list[Say]) -> None:
    """Prompts that name a function, until what stands around it was sent along with some: the index
    is opened in the background."""
    offered = 0
    for number in range(1000):
        replies.append(Say("So be it."))
        Talk(proxy.address, DIALECTS[number % len(DIALECTS)]).say(
            f"Deploy {number} of {CANARY} failed again: what of connect_{number % 10}?"
        )
        offered += b"[AUTO-RETRIEVED: " in upstream.requests[-1].decoded
        if offered >= ENOUGH:
            return
        time.sleep(0.02)  # polls: the index is opened beside the calls
    raise AssertionError("hardly anything was sent ahead")


def behind_its_first_line(text: str) -> str:
    """So that a title is made of the secret, and not of what stands before it."""
    return text.partition("\n")[2]


@contextmanager
def everything_logged() -> Iterator[io.StringIO]:
    """What any logger says at any level, with tracebacks."""
    said = io.StringIO()
    root, ours = logging.getLogger(), logging.getLogger("hotset")
    handler = logging.StreamHandler(said)
    before = root.level, ours.level
    root.addHandler(handler)
    root.setLevel(1)
    ours.setLevel(1)
    try:
        yield said
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        ours.setLevel(before[1])


@pytest.mark.row("V17")
@pytest.mark.slow
def test_of_hundreds_of_secrets_none_comes_out_of_any_door(desk: Desk, tmp_path: Path):
    each_kind = len(kinds())
    in_files = planted(seed=17, n=10 * each_kind)
    by_name = planted(seed=18, n=each_kind)
    said = planted(seed=19, n=4 * each_kind)
    assert len(in_files) >= 400
    assert len(set(kinds())) >= 20
    paths = furnish(desk.project, tmp_path / "outside", in_files, by_name)
    replies: list[Say] = []
    doors: dict[str, bytes] = {}

    with everything_logged() as log, ScriptedUpstream(lambda _: replies.pop(0)) as upstream:
        ran = desk.run("index", "--yes")
        doors["index"] = ran.raw + ran.err.encode()
        prefetching = Knobs(prefetch=Prefetch(Prefetching.ON, excerpt=0.0, hint=0.0, seconds=5.0))
        with LocalProxy(
            desk.data,
            project=desk.project,
            openai_url=upstream.openai_url,
            anthropic_url=upstream.anthropic_url,
            knobs=prefetching,
        ) as proxy:
            converse(proxy, replies, said)
            until_now = len(upstream.requests)
            ask_about(proxy, upstream, replies)
        requests = [request.decoded for request in upstream.requests]
        doors["sent ahead"] = b"\n".join(requests[until_now:])
        doors |= through_the_command_line(desk)
        doors |= through_the_tools(desk, paths)
    doors["log"] = log.getvalue().encode()
    kept = {
        str(path.relative_to(desk.data)): path for path in desk.data.rglob("*") if path.is_file()
    }
    doors |= {
        name: path.read_bytes() for name, path in kept.items() if not name.startswith(THE_STORE)
    }

    of_any, of_files = (
        Traces([*in_files, *by_name, *said]),
        Traces([*in_files, *by_name], apart_from=said),
    )
    assert {
        name: found for name, content in doors.items() if (found := of_any.kinds_in(content))
    } == {}
    assert of_files.kinds_in(b"\n".join(requests)) == set()
    speaking = {name for name, content in doors.items() if CANARY.encode() in content}
    assert {"search", "export", "search_code", "get_file", "outline"} <= speaking
    assert any(name.startswith("index/") for name in speaking)
    assert b"[secret:" in doors["sessions"]


def through_the_command_line(desk: Desk) -> dict[str, bytes]:
    commands = {
        "index status": [("index", "--status"), ("index", "--json")],
        "search": [
            ("search", each, "-n", "200", *how) for each in QUESTIONS for how in ((), ("--json",))
        ],
        "export": [("export",)],
        "status": [("status",), ("status", "--json")],
        "doctor": [("doctor",), ("doctor", "--json")],
        "sessions": [("sessions", "-n", "999"), ("sessions", "-n", "999", "--json")],
        "savings": [("savings",), ("savings", "--json")],
        "verify": [("verify",)],
    }
    return {
        door: b"\n".join(ran.raw + ran.err.encode() for ran in (desk.run(*each) for each in some))
        for door, some in commands.items()
    }


def through_the_tools(desk: Desk, paths: Sequence[str]) -> dict[str, bytes]:
    most = {"max_tokens": 20_000}
    unreadable = (*BY_NAME, ".git/config", "linked.py", "linked/elsewhere.py", "hard.py")
    folders = sorted({path.partition("/")[0] for path in paths})
    calls = [
        *(("search_code", {"query": each, **most}) for each in QUESTIONS),
        *(("get_file", {"path": each, **most}) for each in (*paths, *unreadable)),
        *(("outline", {"path": each, **most}) for each in ("", *folders, *paths, *unreadable)),
    ]
    _, _, answers = talk(desk, calls)
    doors: dict[str, bytes] = {}
    for (name, _), (text, _) in zip(calls, answers, strict=True):
        doors[name] = doors.get(name, b"") + text.encode() + b"\n"
    return doors


@pytest.mark.row("V17")
@pytest.mark.slow
def test_a_search_of_what_was_said_shows_no_secret_of_it_to_a_model_or_a_program(desk: Desk):
    said = planted(seed=19, n=4 * len(kinds()))
    replies: list[Say] = []
    with (
        ScriptedUpstream(lambda _: replies.pop(0)) as upstream,
        LocalProxy(
            desk.data, openai_url=upstream.openai_url, anthropic_url=upstream.anthropic_url
        ) as proxy,
    ):
        converse(proxy, replies, said)
    _, _, answers = talk(
        desk, [("search_history", {"query": each, "max_tokens": 20_000}) for each in QUESTIONS]
    )
    with hotset.open(desk.project, data=desk.data) as memory:
        found = [memory.search(each, max_tokens=20_000).text for each in QUESTIONS]

    assert CANARY in answers[0][0]
    assert CANARY in found[0]
    assert (
        Traces(said).kinds_in("\n".join([*(text for text, _ in answers), *found]).encode()) == set()
    )
