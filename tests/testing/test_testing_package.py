"""`hotset.testing` costs nothing until something of it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hotset.testing
from hotset.testing import Clock


def test_importing_it_imports_nothing_heavy():
    code = (
        "import sys, hotset.testing; print([m for m in ('asyncio', 'msgspec', 'aiohttp', "
        "'starlette') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_it_names_what_it_has_and_refuses_what_it_has_not():
    assert {"ScriptedUpstream", "RamStore", "Clock", "check_store", "check_dialect"} <= set(
        dir(hotset.testing)
    )
    with pytest.raises(AttributeError, match="has no attribute 'MockStore'"):
        hotset.testing.MockStore  # noqa: B018


def test_a_clock_stands_still_until_it_is_moved():
    clock = Clock(100.0)
    assert clock() == clock() == 100.0
    assert clock.advance(5.5) == clock() == 105.5
    clock.set(7.0)
    assert clock() == 7.0
