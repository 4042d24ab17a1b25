"""A program with a memory that is killed the moment it saw how a reply ended."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from hotset.nouns.page import Kind
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say

_PROGRAM = """
import os, signal, sys
import hotset
from tests.library.agents import client_of

api, url, folder = sys.argv[1:]
client = hotset.open(folder, data=folder + "/data").wrap(client_of(api, url))
prompt = [{"role": "user", "content": "a question that is asked once"}]
if api == "chat":
    stream = client.chat.completions.create(model="m", messages=prompt, stream=True)
    ends = (each.choices and each.choices[0].finish_reason for each in stream)
elif api == "responses":
    ends = (each.type == "response.completed" for each in client.responses.create(model="m", input=prompt, stream=True))
else:
    stream = client.messages.create(model="m", max_tokens=9, messages=prompt, stream=True)
    ends = (each.type == "message_delta" for each in stream)
if any(ends):
    os.kill(os.getpid(), signal.SIGKILL)
"""  # noqa: E501


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
@pytest.mark.rest_slow
def test_a_reply_that_a_program_saw_end_outlives_its_kill(upstream, tmp_path, api):
    up = upstream([Say("a reply that is said once")])
    command = [sys.executable, "-c", _PROGRAM, api, up.url, str(tmp_path)]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    with SqliteStore.open(tmp_path / "data") as store:
        kept = {(page.kind, store.content(page.digest)) for page in store.pages(Where())}
    assert (Kind.PROMPT, b"a question that is asked once") in kept
    assert (Kind.RESPONSE, b"a reply that is said once") in kept
