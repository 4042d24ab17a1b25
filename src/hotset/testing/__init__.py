"""Fakes and contract checks for tests, ours and yours. Each name is imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.testing.dialect_contract import check_dialect
    from hotset.testing.fakes import Clock, HashingEmbedder
    from hotset.testing.index_contract import check_index
    from hotset.testing.ram_store import RamStore
    from hotset.testing.secrets import planted
    from hotset.testing.source_contract import check_source
    from hotset.testing.store_contract import check_store
    from hotset.testing.upstream.script import Call, Say
    from hotset.testing.upstream.server import ScriptedUpstream

__all__ = [
    "Call",
    "Clock",
    "HashingEmbedder",
    "RamStore",
    "Say",
    "ScriptedUpstream",
    "check_dialect",
    "check_index",
    "check_source",
    "check_store",
    "planted",
]

_HOMES = {
    "Call": "hotset.testing.upstream.script",
    "Clock": "hotset.testing.fakes",
    "HashingEmbedder": "hotset.testing.fakes",
    "RamStore": "hotset.testing.ram_store",
    "Say": "hotset.testing.upstream.script",
    "ScriptedUpstream": "hotset.testing.upstream.server",
    "check_dialect": "hotset.testing.dialect_contract",
    "check_index": "hotset.testing.index_contract",
    "check_source": "hotset.testing.source_contract",
    "check_store": "hotset.testing.store_contract",
    "planted": "hotset.testing.secrets",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
