"""Sessions that belong to another: subagents, and what goes on after a client summed its past
up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.call import Headers
from hotset.nouns.deposit import ReplyReceived, RequestReceived
from hotset.nouns.message import DialectName
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event, Outcome
from hotset.runtime import clients
from hotset.store.exchange import read_lines, write_lines
from hotset.store.kinship import LINKED, parents, parents_in
from hotset.store.port import Store
from hotset.store.sealed import SealedRows
from hotset.store.sqlite import SqliteStore
from hotset.store.store_files import DATABASE
from hotset.testing.ram_store import RamStore

TASK = "Look through the folder for every use of the tokenizer and report the lines"
REPLY = (
    "The tokenizer is used in lex.py, and lines are counted there "
    "from nought; the parser counts "
    "from one, so they differ."
)
SUMMARY = """The person wants the parser to take empty lines, without a change of its public names.
Done so far: lex.py was read; it drops every newline, which is why no empty line arrives.
Left to do: keep newlines in lex.py, skip them in parse.py, and add a test for both."""
SETUP = (
    "This is the Qwen Code. We are setting up the context for our "
    "chat.\nMy operating system is: "
    "linux"
)
TOOLS = [{"type": "function", "function": {"name": "agent", "parameters": {"type": "object"}}}]


@pytest.fixture(params=["sqlite", "ram"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(
        SqliteStore.open(tmp_path / "store") if request.param == "sqlite" else RamStore()
    ) as opened:
        yield opened


@dataclass
class Client:
    """A client of Chat Completions, as far as a store sees it."""

    store: Store
    headers: Headers = ()
    agent: str = "QwenCode/0.15.10 (linux)"
    ticks: Iterator[int] = field(default_factory=lambda: count(1))

    def asks(
        self,
        *messages: dict[str, Any],
        says: str = "",
        calls: dict[str, Any] | None = None,
        **more: Any,
    ) -> SessionId:
        """One call and its reply: a text, and calls by the name of their tool."""
        dialect = DIALECTS[DialectName.OPENAI_CHAT]
        body = {"model": "gpt-5", "messages": messages, "tools": TOOLS, **more}
        headers = ((b"user-agent", self.agent.encode()), *self.headers)
        asked = RequestReceived(
            dialect.parse(json.dumps(body).encode()),
            float(next(self.ticks)),
            clients.agent(headers),
            clients.session_key(headers),
            clients.client(headers),
            parents=clients.parent_keys(headers),
        )
        kept = self.store.keep(asked).result(120)
        assert kept.turn is not None
        choice = {
            "index": 0,
            "message": answer(says, calls or {}),
            "finish_reason": "tool_calls" if calls else "stop",
        }
        raw = json.dumps(
            {"id": "c", "object": "chat.completion", "model": "gpt-5", "choices": [choice]}
        ).encode()
        reply = dialect.read(raw, streamed=False)
        self.store.keep(
            ReplyReceived(kept.turn, float(next(self.ticks)), Outcome.DONE, 200, raw, reply)
        ).result(120)
        return kept.turn.session


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def answer(says: str, calls: dict[str, Any]) -> dict[str, Any]:
    made = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(calls.items())
    ]
    return {"role": "assistant", "content": says, **({"tool_calls": made} if made else {})}


def parent(store: Store, child: SessionId) -> tuple[str, str, str] | None:
    found = parents(store.events(name=LINKED)).get(child)
    return (found.session, found.kinship, found.evidence) if found else None


OPENING = (user(SETUP), assistant("Got it. Thanks for the context!"))


def test_a_subagent_is_known_by_the_call_that_told_it_what_to_do(store):
    client = Client(store)
    asked = (*OPENING, user("Mend the parser"))
    calls = {"agent": {"description": "look", "prompt": TASK}}
    main = client.asks(*asked, says="I let one look.", calls=calls)
    sub = client.asks(*OPENING, user(TASK), says=REPLY)
    result = {"role": "tool", "tool_call_id": "call_0", "content": REPLY}
    assert client.asks(*asked, answer("I let one look.", calls), result, says="Done.") == main

    assert sub != main
    assert parent(store, sub) == (main, "subagent", "call")
    assert parent(store, main) is None
    assert [session.title for session in store.sessions()] == ["Mend the parser", TASK]


@pytest.mark.parametrize(
    ("tool", "told", "prompt"),
    [
        ("Task", {"prompt": "Find uses"}, "Find uses"),
        ("new_task", {"mode": "code", "message": "Find uses"}, ("<task>\nFind uses\n</task>\n"
            "<details>x</details>")),
        ("codebase_investigator", {"objective": TASK}, (f"Your task:\n{TASK}\n\nReport "
            f"when you are done.")),
        ("bash", {"command": f'qwen -p "{TASK}"'}, TASK),
        ("mcp__work__agent", {"tasks": [{"prompt": ("Another "
            "thing")}, {"prompt": "Find uses"}]}, "Find uses"),
    ],
)  # fmt: skip
def test_whatever_the_tool_is_called_its_words_tell(store, tool, told, prompt):
    client = Client(store)
    main = client.asks(user("Mend the parser"), calls={"read": {"path": "a"}, tool: told})

    assert parent(store, client.asks(user(prompt))) == (main, "subagent", "call")


def test_subagents_of_one_reply_and_subagents_of_subagents_are_found(store):
    client = Client(store)
    main = client.asks(
        user("Mend it"), calls={"agent": {"prompt": TASK}, "task": {"prompt": f"{TASK} again"}}
    )
    one = client.asks(
        user(TASK), says="I ask another", calls={"agent": {"prompt": "Count the lines of it"}}
    )
    below = client.asks(user("Count the lines of it"))
    two = client.asks(user(f"{TASK} again"))

    assert [parent(store, each)[0] for each in (one, below, two)] == [main, one, main]


def test_sessions_that_have_nothing_to_do_with_each_other_have_no_parent(store):
    client = Client(store)
    client.asks(
        user("Mend the parser"),
        says="I let one look.",
        calls={"agent": {"prompt": TASK, "kind": "explore"}},
    )

    strangers = [
        client.asks(user("Mend the tokenizer, please, and tell me what you did with it")),
        client.asks(user("explore")),
        client.asks(user("Look through the folder")),
        client.asks(*OPENING, user("Mend the parser")),
        Client(store, agent="other/1").asks(user(TASK)),
        client.asks(user(f"{SUMMARY}\nHow does that sound to you?")),
        client.asks(
            user("Hello"),
            assistant("Hello, how can I be of help to you today? " * 3),
            user("Mend it"),
        ),
    ]

    assert [parent(store, each) for each in strangers] == [None] * len(strangers)


def test_a_prompt_that_is_said_again_is_no_continuation_of_a_reply_that_repeats_it(store):
    client = Client(store)
    for _ in range(3):
        session = client.asks(user(SUMMARY), says=f"You said:\n{SUMMARY}")
        assert parent(store, session) is None


def test_a_call_that_was_answered_starts_no_more_subagents(store):
    client = Client(store)
    call = {"agent": {"prompt": TASK}}
    client.asks(user("Mend it"), calls=call)
    result = {"role": "tool", "tool_call_id": "call_0", "content": "Done"}
    client.asks(user("Mend it"), answer("", call), result, says="Thank you.")

    assert parent(store, client.asks(user(TASK))) is None


@pytest.mark.parametrize(
    "before",
    [
        OPENING,
        (
            user("I have *added these files to the chat* so you can go ahead.\na.py"),
            assistant("Ok, I will change those files."),
        ),
    ],
    ids=["qwen-code", "aider"],
)
def test_two_sessions_of_one_day_are_two_though_their_client_says_the_same_before(store, before):
    client = Client(store)

    one = client.asks(*before, user("Mend the parser"), says="Done.")
    two = client.asks(*before, user("Write the docs"), says="Written.")
    more = client.asks(*before, user("Mend the parser"), assistant("Done."), user("Thanks"))

    assert one == more != two
    assert [session.title for session in store.sessions()] == ["Mend the parser", "Write the docs"]
    assert parent(store, two) is None


@pytest.mark.parametrize(
    "successor",
    [
        (user(SUMMARY), assistant("Got it. Thanks for the additional context!"), user("Go on")),
        (
            user(
                f"This session is being continued from a previous conversation.\n\n{SUMMARY}\n"
                f"Please continue."
            ),
        ),
        (user(f"<summary>\n{SUMMARY}\n</summary>"), user("Go on")),
        (
            user("I spoke to you previously about a number of things.\n" + SUMMARY),
            assistant("Ok."),
            user("Go on"),
        ),
        (
            user(
                "\n".join(
                    ["What came before:", *SUMMARY.splitlines()[:2], "The rest is not known."]
                )
            ),
        ),
    ],
    ids=["qwen-code", "continued", "tagged", "aider", "in part"],
)
def test_what_goes_on_after_a_summary_is_known_by_it(store, successor):
    client = Client(store)
    said = (*OPENING, user("Mend the parser"), assistant("I read lex.py."))
    main = client.asks(*said[:3], says="I read lex.py.")
    reply = (
        f"<analysis>\nThe person wants it short.\n</analysis>\n\n{SUMMARY}"
        if len(successor) == 1
        else SUMMARY
    )
    assert client.asks(*said, user("Sum up what was said so far."), says=reply) == main

    child = client.asks(*successor)

    assert parent(store, child) == (main, "continuation", "summary")


def test_a_summary_that_holds_no_words_of_the_person_is_called_as_its_parent(store):
    client = Client(store)
    client.asks(user("Mend the parser"), says=SUMMARY)
    client.asks(user(f"This session is being continued from a previous conversation.\n{SUMMARY}"))

    assert [session.title for session in store.sessions()] == ["Mend the parser", "Mend the parser"]


def test_what_goes_on_behind_another_past_is_known_by_what_the_model_said_there(store):
    client = Client(store)
    main = client.asks(user("Mend the parser"), says=REPLY)

    child = client.asks(
        user("We talked about a parser."),
        assistant("Ok."),
        user("What is wrong?"),
        assistant(REPLY),
        user("Go on"),
    )

    assert child != main
    assert parent(store, child) == (main, "continuation", "reply")


def test_what_a_client_lets_the_model_say_is_no_link(store):
    client = Client(store)
    example = (user("Change the factorial"), assistant(REPLY))
    client.asks(*example, user("Mend the parser"), says="Done.")

    assert (
        parent(
            store, client.asks(user("Another way to put it"), *example[1:], user("Write the docs"))
        )
        is None
    )


def test_metadata_that_names_a_session_links_to_it_and_a_user_does_not(store):
    client = Client(store)
    named, person = (
        {"user": name} for name in ("user_1_account__session_2d7e4c1a-77c1-4f6e", "somebody")
    )
    main = client.asks(user("Mend the parser"), says="Done.", **named)
    client.asks(user("Write the docs"), **person)

    assert parent(store, client.asks(user("A new beginning"), **named)) == (
        main,
        "continuation",
        "metadata",
    )
    assert parent(store, client.asks(user("Another beginning"), **person)) is None


@pytest.mark.parametrize(
    ("of_parent", "of_child"),
    [
        ({"x-session-id": "ses_1"}, {"x-session-id": "ses_2", "x-parent-session-id": "ses_1"}),
        (
            {"session-id": "1", "thread-id": "1"},
            {
                "session-id": "1",
                "thread-id": "2",
                "x-codex-parent-thread-id": "1",
                "x-openai-subagent": "collab_spawn",
            },
        ),
        (
            {"x-claude-code-session-id": "1"},
            {"x-claude-code-session-id": "1", "x-claude-code-agent-id": "a"},
        ),
        ({"x-hotset-session": "1"}, {"x-hotset-session": "2", "x-hotset-parent": "1"}),
    ],
    ids=["opencode", "codex", "claude-code", "ours"],
)
def test_a_header_names_the_parent(store, of_parent, of_child):
    one, two = (
        Client(store, tuple((name.encode(), value.encode()) for name, value in each.items()))
        for each in (of_parent, of_child)
    )
    main = one.asks(user("Mend the parser"))
    sub = two.asks(user("Find uses"), says="Found.")
    more = two.asks(user("Find uses"), assistant("Found."), user("More"))

    assert sub == more != main
    assert parent(store, sub) == (main, "subagent", "header")
    assert parent(store, main) is None
    assert len(list(store.events(name=LINKED))) == 1


def test_a_subagent_of_a_subagent_is_named_by_a_header(store):
    def of(thread: str, above: str) -> Client:
        given = {
            "session-id": "1",
            "thread-id": thread,
            **({"x-codex-parent-thread-id": above} if above else {}),
        }
        return Client(
            store, tuple((name.encode(), value.encode()) for name, value in given.items())
        )

    main, one, two, lost = (
        of(*each).asks(user("Hello")) for each in (("1", ""), ("2", "1"), ("3", "2"), ("5", "4"))
    )

    assert [parent(store, each) for each in (one, two)] == [
        (main, "subagent", "header"),
        (one, "subagent", "header"),
    ]
    assert parent(store, lost) == (main, "subagent", "header"), (
        "of an agent that was not kept, the session is still known"
    )


def test_a_parent_that_is_not_kept_is_no_parent(store):
    child = Client(store, ((b"x-session-id", b"2"), (b"x-parent-session-id", b"1"))).asks(
        user("Hello")
    )

    assert parent(store, child) is None


def test_a_session_is_not_its_own_parent(store):
    child = Client(store, ((b"x-session-id", b"1"), (b"x-parent-session-id", b"1"))).asks(
        user("Hello")
    )

    assert parent(store, child) is None


def test_a_link_survives_a_restart_and_goes_with_its_session(tmp_path):
    with closing(SqliteStore.open(tmp_path / "one")) as store:
        main = Client(store).asks(user("Mend it"), calls={"agent": {"prompt": TASK}})
    with closing(SqliteStore.open(tmp_path / "one")) as store:
        sub = Client(store).asks(user(TASK))
    with (
        closing(SqliteStore.open(tmp_path / "one")) as store,
        closing(SqliteStore.open(tmp_path / "two")) as other,
    ):
        assert parent(store, sub) == (main, "subagent", "call")
        for session in (sub, main):
            other.load(
                read_lines(write_lines(SealedRows(lambda session=session: store.dump(session))))
            )
        assert parent(other, sub) == parent(store, sub)
        assert list(store.verify()) == list(other.verify()) == []


def test_links_in_a_circle_are_cut():
    def linked(child: str, above: object) -> Event:
        return Event(LINKED, 1.0, SessionId(child), 1, {"parent": above, "kinship": "strange"})  # type: ignore[dict-item]

    found = parents(
        [
            linked("a", "b"),
            linked("b", "c"),
            linked("c", "a"),
            linked("d", "d"),
            linked("a", "e"),
            linked("e", 7),
        ]
    )

    assert {child: each.session for child, each in found.items()} == {"a": "b", "b": "c"}
    chain = [linked(f"s{number}", f"s{number + 1}") for number in range(10_000)]
    assert len(parents(chain)) == 10_000


def test_a_damaged_link_costs_itself_and_no_list(tmp_path):
    with closing(SqliteStore.open(tmp_path)) as store:
        main = Client(store).asks(
            user("Mend it"), calls={"agent": {"prompt": TASK}, "task": {"prompt": f"{TASK} again"}}
        )
        one, two = (Client(store).asks(user(text)) for text in (TASK, f"{TASK} again"))
        assert {child: each.session for child, each in parents_in(store).items()} == {
            one: main,
            two: main,
        }
    with closing(apsw.Connection(str(tmp_path / DATABASE))) as connection:
        connection.execute("UPDATE event SET time = 7 WHERE session = ?", (two,))
    with closing(SqliteStore.open(tmp_path)) as store:
        assert list(parents_in(store)) == [one]


def test_a_damaged_call_of_another_session_keeps_no_session_from_being_kept(tmp_path):
    with closing(SqliteStore.open(tmp_path)) as store:
        Client(store).asks(user("Mend it"), calls={"agent": {"prompt": TASK}})
    with closing(apsw.Connection(str(tmp_path / DATABASE))) as connection:
        connection.execute("UPDATE page SET size = size + 1 WHERE kind = 'tool_call'")
    with closing(SqliteStore.open(tmp_path)) as store:
        sub = Client(store).asks(user(TASK))

        assert parent(store, sub) is None
        assert len(list(store.sessions())) == 2
