"""Which files are indexed first: what was changed lately, what the project is made of; tests and what it carries along later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hotset.files.root import Stat
from hotset.sources.code.languages import language_of

_LATELY_NS = 7 * 24 * 3600 * 10**9  # before the latest change of any file
_CORE = frozenset(
    ("src", "lib", "app", "apps", "pkg", "cmd", "core", "internal", "packages", "crates", "server", "client", "api")
)
_TESTS = frozenset(("test", "tests", "spec", "specs", "__tests__", "testing", "e2e", "fixtures", "testdata"))
_ASIDE = frozenset(("doc", "docs", "example", "examples", "sample", "samples", "demo", "benchmark", "benchmarks", "bench"))
_CARRIED = frozenset(
    ("vendor", "vendored", "third_party", "third-party", "external", "extern", "deps", "generated", "gen", "migrations")
)


def in_order(files: Mapping[str, Stat]) -> list[str]:
    """Paths, the most useful first."""
    lately = max((stat.mtime_ns for stat in files.values()), default=0) - _LATELY_NS
    return sorted(files, key=lambda path: (_distance(path) + (0 if files[path].mtime_ns >= lately else 2), path))


def _distance(path: str) -> int:
    """From what somebody who works on the project would look at first."""
    *folders, name = path.lower().split("/")
    language = language_of(path)
    kind = 0 if language.grammar and language.name != "json" else 1 if language.name in ("markdown", "toml", "yaml") else 2
    return _place(folders, name) + kind


def _place(folders: Iterable[str], name: str) -> int:
    names = set(folders)
    if names & _CARRIED:
        return 8
    if names & _ASIDE:
        return 6
    if names & _TESTS or name.startswith("test_") or ".test." in name or ".spec." in name or "_test." in name:
        return 4
    return 0 if names & _CORE or not names else 1
