"""A store in memory for each folder of tools, so that two objects over one folder share what they
keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotset.sources.tools.catalogue import Catalogue
from hotset.store.port import Store
from hotset.testing import RamStore

_STORES: defaultdict[Path, RamStore] = defaultdict(RamStore)


def store_of(folder: Path) -> Callable[[], Store]:
    return lambda: _STORES[folder]


def catalogue_in(folder: Path, **more: Any) -> Catalogue:
    return Catalogue(folder, store_of(folder), **more)
