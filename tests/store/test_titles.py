"""What a list of sessions calls each: the first words of the person, whatever clients put around
them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.deposit import RequestReceived
from hotset.nouns.message import DialectName
from hotset.testing.ram_store import RamStore
from hotset.testing.secrets import planted


def _message(role: str, *texts: str) -> dict[str, object]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ([_message("user", "Mend  the\nparser")], "Mend the parser"),
        (
            [_message("user", "<system-reminder>x</system-reminder>", "Mend the parser")],
            "Mend the parser",
        ),
        ([_message("user", "Mend the parser", "the file parser.py says: ...")], "Mend the parser"),
        (
            [
                _message("user", "# AGENTS.md"),
                _message("user", "<environment/>"),
                _message("user", "Mend it"),
            ],
            "Mend it",
        ),
        (
            [
                _message("user", "Generate a title for this conversation:"),
                _message("user", "Mend it"),
            ],
            "Mend it",
        ),
        (
            [
                _message("user", "Mend it"),
                _message("assistant", "Done."),
                _message("user", "Thanks!"),
            ],
            "Mend it",
        ),
        (
            [
                _message("user", "<env/>"),
                _message("assistant", "Hello"),
                _message("user", "Mend it"),
            ],
            "Mend it",
        ),
        ([_message("assistant", "Hello"), _message("user", "Mend it")], "Mend it"),
        ([_message("user", "<T> is no longer a type")], "<T> is no longer a type"),
        ([_message("user", "Why is <b>this</b> bold?\n<p>it</p>")], "Why is <b>this</b> bold?"),
        ([_message("user", '"both" or "neither"')], '"both" or "neither"'),
        ([_message("assistant", "Hello")], ""),
        ([_message("user", "")], ""),
    ],
)
def test_a_session_is_called_by_what_its_person_said_first(messages, title):
    assert _title(DialectName.OPENAI_CHAT, {"messages": messages}) == title


PROMPT = "Mend the parser so that it takes empty lines"
ENVIRONMENT = (
    "<environment_context>\n  <cwd>/p</cwd>\n  <shell>bash</shell>\n</environment_context>"
)
SETUP = (
    "This is the {}. We are setting up the context for our chat.\nToday's date is Monday.\nMy "
    "operating system is: linux"
)

OPENINGS = {
    # As real clients sent them (opencode 1.18, Qwen Code 0.15, aider 0.86, Codex 0.169), shortened.
    "opencode": [{"role": "system", "content": "You are"}, {"role": "user", "content": (f'"'
        f'{PROMPT}"')}],
    "opencode, for a title": [
        {"role": "user", "content": "Generate a title for this conversation:\n"},
        {"role": "user", "content": f'"{PROMPT}"'},
    ],
    "opencode, with quotes": [{"role": "user", "content": '"' + PROMPT.replace("empty", '\\"empty\\"') + '"'}],  # noqa: E501
    "qwen-code": [
        _message("user", SETUP.format("Qwen Code")),
        {"role": "assistant", "content": "Got it. Thanks for the context!"},
        _message("user", PROMPT),
    ],
    "gemini-cli": [
        _message("user", SETUP.format("Gemini CLI")),
        {"role": "assistant", "content": "Got it. Thanks for the context!"},
        _message("user", "<session_context>\nlinux\n</session_context>", PROMPT),
    ],
    "aider": [
        {"role": "system", "content": "Act as an expert"},
        {"role": "user", "content": ("I have *added these files to the chat* so you can go "
            "ahead.\n\na.py\n```\n1\n```\n")},
        {"role": "assistant", "content": "Ok, any changes I propose will be to those files."},
        {"role": "user", "content": PROMPT},
        {"role": "system", "content": "*SEARCH/REPLACE block* rules"},
    ],
    "aider, with a map": [
        {"role": "user", "content": ("Here are summaries of some files present in my "
            "git repository.\n\na.py")},
        {"role": "assistant", "content": ("Ok, I won't try and edit those files "
            "without asking first.")},
        {"role": "user", "content": PROMPT},
    ],
    "aider, with examples": [
        {"role": "user", "content": "Change the factorial to use math"},
        {"role": "assistant", "content": "To make this change ..."},
        {"role": "user", "content": ("I switched to a new code base. Please don't "
            "consider the above files.")},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": PROMPT},
    ],
    "cline": [
        _message(
            "user", f"<task>\n{PROMPT}\n</task>", ("# task_progress\n"
                "Keep a list"), "<environment_details>x</environment_details>"
        )
    ],
    "roo, in one part": [_message("user", (f"<user_message>\n{PROMPT}\n</user_message>\n\n"
        f"<details>\n</details>"))],
    "copilot": [_message("user", (f"<context>\nToday\n</context>\n<userRequest>\n"
        f"{PROMPT}\n</userRequest>"))],
    "a slash command": [
        _message("user", f"<command-message>mend is running</command-message>\n"
            f"<command-name>{PROMPT[:4]}</command-name>\n"
                 f"<command-args>{PROMPT[5:]}</command-args>")
    ],
    "goose": [_message("user", f"{PROMPT}\n<info-msg>\nIt is Monday\n</info-msg>")],
    "openhands": [_message("user", ("<RUNTIME_INFORMATION>\nport 1\n"
        "</RUNTIME_INFORMATION>"), PROMPT)],
    "continue": [_message("user", f"```py /p/a.py\nprint(1)\n```\n\n{PROMPT}")],
    "pi": [_message("user", PROMPT)],
}  # fmt: skip


@pytest.mark.parametrize("client", OPENINGS)
def test_the_words_around_a_prompt_are_not_its_title(client):
    said = PROMPT if client != "opencode, with quotes" else PROMPT.replace("empty", '"empty"')

    assert _title(DialectName.OPENAI_CHAT, {"messages": OPENINGS[client]}) == said


@pytest.mark.parametrize(
    "said",
    [
        [
            [
                "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nUse tabs.\n\n</INSTRUCTIONS>",
                ENVIRONMENT,
            ],
            [PROMPT],
        ],
        [["<user_instructions>\n\nUse tabs.\n\n</user_instructions>"], [ENVIRONMENT], [PROMPT]],
        [[ENVIRONMENT, PROMPT]],
        [[f"{ENVIRONMENT}\n\n{PROMPT}"]],
    ],
)
def test_codex_is_called_by_its_prompt_and_not_by_its_environment(said):
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}
        for texts in said
    ]

    assert _title(DialectName.OPENAI_RESPONSES, {"input": items}) == PROMPT


def test_reminders_before_behind_and_around_a_prompt_are_not_its_title():
    reminder = (
        "<system-reminder>\nAs you answer, know this: # claudeMd\nUse tabs.\n</system-reminder>"
    )

    for texts in (
        [reminder, PROMPT],
        [PROMPT, reminder],
        [f"{reminder}\n{PROMPT}\n{reminder}"],
        [reminder, reminder, PROMPT],
    ):
        body = {"max_tokens": 9, "messages": [_message("user", *texts)]}
        assert _title(DialectName.ANTHROPIC, body) == PROMPT


@pytest.mark.parametrize(
    "text", ["<a>" * 30_000, "<task>" * 30_000, "```\n" * 30_000, "<a></a>" * 30_000, '"' * 60_000]
)
@pytest.mark.rest_slow
def test_a_title_is_made_in_bounded_time(text):
    began = time.process_time()

    _title(DialectName.OPENAI_CHAT, {"messages": [_message("user", text)] * 64})

    assert time.process_time() - began < 5


def _title(dialect: DialectName, body: dict[str, Any]) -> str:
    store = RamStore()
    store.keep(
        RequestReceived(
            DIALECTS[dialect].parse(json.dumps({"model": "gpt-5", **body}).encode()), 1.0, "agent"
        )
    ).result()
    (session,) = store.sessions()
    return session.title


@pytest.mark.parametrize("secret", planted(5, 20), ids=lambda each: each.kind)
def test_no_title_tells_a_secret(secret):
    body = json.dumps(
        {
            "model": "gpt-5",
            "messages": [_message("user", f"Mend it with\n{secret.secret} or\n{secret.text}")],
        }
    ).encode()
    store = RamStore()
    store.keep(
        RequestReceived(DIALECTS[DialectName.OPENAI_CHAT].parse(body), 1.0, "agent")
    ).result()

    (session,) = store.sessions()
    assert session.title.startswith("Mend it with")
    assert not secret.remains(session.title)
