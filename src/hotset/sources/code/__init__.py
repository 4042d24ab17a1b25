"""The project's own files as entries of the index: found, read safely, sealed, parsed, cut and kept
up to date.

Read `indexer.py` first: it goes from a folder to the index. `scan` says which files, `texts`
makes them text and seals it, `parsers` has them parsed in processes that may die, `chunks` cuts
them, `manifest` remembers. `project_index` says whether all that is up to date, `file_reader`
and `code_search` answer agents.

Each name below is imported when it is first used: a process that only asks for consent pays for
nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sources.code.code_search import DATA, find_code, list_code
    from hotset.sources.code.file_reader import CodeText, get_file, outline_path
    from hotset.sources.code.index_consent import Consent, ConsentAnswer, keep_answer, read_consent
    from hotset.sources.code.indexer import index_project, manifest_identity, watch_project
    from hotset.sources.code.manifest import IndexProgress, IndexReport, Manifest, Totals
    from hotset.sources.code.parsers import GRAMMARS, Parsers
    from hotset.sources.code.prefetches import Prefetches
    from hotset.sources.code.project_index import (
        below,
        catch_up,
        has_code,
        index_folder,
        indexing_lock,
        is_up_to_date,
        settle,
        take_out,
        unchanged,
        who_indexes,
    )
    from hotset.sources.code.source import CodeSource

_HOMES = {
    "index_consent": "Consent ConsentAnswer keep_answer read_consent",
    "file_reader": "CodeText get_file outline_path",
    "indexer": "index_project manifest_identity watch_project",
    "manifest": "IndexProgress IndexReport Manifest Totals",
    "parsers": "GRAMMARS Parsers",
    "project_index": (
        "below catch_up has_code index_folder indexing_lock is_up_to_date settle take_out "
        "unchanged who_indexes"
    ),
    "code_search": "DATA find_code list_code",
    "source": "CodeSource",
    "prefetches": "Prefetches",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "DATA",
    "GRAMMARS",
    "CodeSource",
    "CodeText",
    "Consent",
    "ConsentAnswer",
    "IndexProgress",
    "IndexReport",
    "Manifest",
    "Parsers",
    "Prefetches",
    "Totals",
    "below",
    "catch_up",
    "find_code",
    "get_file",
    "has_code",
    "index_folder",
    "index_project",
    "indexing_lock",
    "is_up_to_date",
    "keep_answer",
    "list_code",
    "manifest_identity",
    "outline_path",
    "read_consent",
    "settle",
    "take_out",
    "unchanged",
    "watch_project",
    "who_indexes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
