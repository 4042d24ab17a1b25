"""What fails while nobody waits is told; whether the program is about to end is seen in
`tests/library/test_wrap.py`."""

from __future__ import annotations

import asyncio

import pytest

from hotset.runtime.background import Background


@pytest.mark.parametrize(
    "error", [RuntimeError("as when no thread can be started"), ValueError("any other")]
)
def test_what_fails_is_told_with_the_name_of_the_work(error):
    told = []

    async def fails() -> None:
        raise error

    async def story() -> None:
        await Background(lambda *failure: told.append(failure)).spawn(fails(), "sweep")

    asyncio.run(story())
    assert told == [("sweep", error)]
