"""The library does to a session what the proxy does to it: the same bytes upstream, the same rows
in the store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

import hotset
from hotset.config import Summarising
from hotset.store.sqlite import SqliteStore
from hotset.testing.proxy import LocalProxy
from tests.library.agents import APIS, SCRIPT, client_of, work
from tests.library.conftest import facts, sent

BUDGET = 5000
NAMED = {"x-hotset-session": "same"}


@pytest.mark.row("X2")
@pytest.mark.parametrize("awaits", [False, True], ids=["blocks", "awaits"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.rest_slow
def test_a_session_through_a_wrapped_client_is_the_session_through_the_proxy(
    tmp_path, upstream, api, stream, awaits
):
    through_proxy = upstream(SCRIPT)
    proxy = LocalProxy(
        tmp_path / "proxy",
        openai_url=through_proxy.openai_url,
        anthropic_url=through_proxy.anthropic_url,
        budget=BUDGET,
    )
    proxy.config = replace(
        proxy.config, summary=Summarising(every=0)
    )  # they are made in the background, sooner or later
    with proxy:
        door = f"http://127.0.0.1:{proxy.address.port}/{proxy.address.token}"
        told = work(
            api,
            client_of(api, door, awaits=awaits, default_headers=NAMED),
            stream=stream,
            awaits=awaits,
        )
    through_library = upstream(SCRIPT)
    config = replace(proxy.config, folder=tmp_path / "library", budget=0)
    with hotset.Memory(config, partial(SqliteStore.open, config.folder)) as memory:
        client = memory.wrap(
            client_of(api, through_library.url, awaits=awaits), session="same", budget=BUDGET
        )
        assert work(api, client, stream=stream, awaits=awaits) == told == "Every one of them."

    assert sent(through_library) == sent(through_proxy)
    assert len(through_library.requests) == len(SCRIPT)
    kept = facts(tmp_path / "library")
    assert kept == facts(tmp_path / "proxy")
    assert kept["references"], "the session must be long enough for pages to leave"
    assert len(kept["bills"]) == len(SCRIPT) - 2
