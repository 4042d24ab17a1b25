"""What a list of sessions calls each: the first words of the person, whatever clients put around them."""

from __future__ import annotations

import json

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.deposit import Asked
from hotset.nouns.message import DialectName
from hotset.testing.ram_store import RamStore
from hotset.testing.secrets import planted


def _message(role: str, *texts: str) -> dict[str, object]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ([_message("user", "Mend  the\nparser")], "Mend the parser"),
        ([_message("user", "<system-reminder>x</system-reminder>", "Mend the parser")], "Mend the parser"),
        ([_message("user", "Mend the parser", "the file parser.py says: ...")], "Mend the parser"),
        ([_message("user", "# AGENTS.md"), _message("user", "<environment/>"), _message("user", "Mend it")], "Mend it"),
        ([_message("user", "Generate a title for this conversation:"), _message("user", "Mend it")], "Mend it"),
        ([_message("user", "Mend it"), _message("assistant", "Done."), _message("user", "Thanks!")], "Mend it"),
        ([_message("user", "<env/>"), _message("assistant", "Hello"), _message("user", "Mend it")], "<env/>"),
        ([_message("assistant", "Hello"), _message("user", "Mend it")], ""),
    ],
)
def test_a_session_is_called_by_what_its_person_said_first(messages, title):
    body = json.dumps({"model": "gpt-5", "messages": messages}).encode()
    store = RamStore()
    store.keep(Asked(DIALECTS[DialectName.OPENAI_CHAT].parse(body), 1.0, "agent")).result()

    (session,) = store.sessions()
    assert session.title == title


@pytest.mark.parametrize("secret", planted(5, 20), ids=lambda each: each.kind)
def test_no_title_tells_a_secret(secret):
    body = json.dumps(
        {"model": "gpt-5", "messages": [_message("user", f"Mend it with\n{secret.secret} or\n{secret.text}")]}
    ).encode()
    store = RamStore()
    store.keep(Asked(DIALECTS[DialectName.OPENAI_CHAT].parse(body), 1.0, "agent")).result()

    (session,) = store.sessions()
    assert session.title.startswith("Mend it with")
    assert not secret.remains(session.title)
