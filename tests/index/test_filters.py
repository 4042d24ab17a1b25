"""Filters let through the same entries whoever applies them: one look at an entry, SQLite, tantivy
or numpy."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hotset.index.filters import matches_filter, path_matcher
from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Filter, Query, Sort
from hotset.testing.fakes import HashingEmbedder

_NAMES = st.sampled_from(["", "a", "b", "c"])
_PATHS = st.sampled_from(
    ["", "a.py", "src/a.py", "src/x/b.py", "src/x/b.md", "docs/[id].md", "src2/a.py"]
)
_ENTRY = st.builds(
    Entry,
    id=st.integers(0, 10**9).map(lambda number: EntryId(str(number))),
    whole=_NAMES,
    sort=st.sampled_from(Sort),
    text=st.sampled_from(["same words", "same words, and others"]),
    kind=_NAMES,
    session=_NAMES,
    agent=_NAMES,
    turn=st.integers(-3, 9),
    time=st.sampled_from([0.0, 1.0, 1.5, 2.0, 1e12]),
    path=_PATHS,
)
_SOME = st.frozensets(st.sampled_from(["a", "b", "nobody"]), max_size=2)
_TIMES = st.none() | st.sampled_from([-1.0, 0.0, 1.0, 1.5, 3.0, float("inf")])
_FILTER = st.builds(
    Filter,
    sorts=st.frozensets(st.sampled_from(Sort), max_size=3),
    kinds=_SOME,
    sessions=_SOME,
    agents=_SOME,
    turns=st.none()
    | st.tuples(st.integers(-4, 10), st.integers(-4, 10))
    | st.just((-(10**30), 10**30)),
    since=_TIMES,
    until=_TIMES,
    path=st.sampled_from(
        [
            "",
            "src",
            "src/",
            "./src/x",
            "*.py",
            "**/b.*",
            "src/*/b.py",
            "docs/[id].md",
            "[ab].py",
            "[",
            "none",
            "a.py",
            "x",
            "**/*.{py,md}",
        ]
    ),
)


@pytest.mark.row("V2")
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    folded=st.lists(_ENTRY, max_size=12),
    later=st.lists(_ENTRY, max_size=6),
    removed=_NAMES,
    filters=st.lists(_FILTER, min_size=6, max_size=12),
)
def test_every_engine_agrees_with_one_look_at_the_entry(
    folded, later, removed, filters, tmp_path_factory
):
    with LocalIndex(
        tmp_path_factory.mktemp("index") / "i", HashingEmbedder(64), folds=False
    ) as index:
        index.add(folded)
        index.fold()
        index.add(later)
        index.remove([removed])
        there = {entry.id: entry for entry in [*folded, *later]}
        for only in filters:
            hits = index.search(Query("same words", only, most=100, deadline=30.0))
            expected = {
                id
                for id, entry in there.items()
                if entry.whole != removed and matches_filter(only, entry)
            }
            assert not hits.lacking
            assert {hit.entry.id for hit in hits.hits if hit.by_words is not None} == expected
            assert {hit.entry.id for hit in hits.hits if hit.by_meaning is not None} == expected


@pytest.mark.parametrize(
    ("wanted", "path", "fits"),
    [
        ("src", "src/a/b.py", True),
        ("src", "src2/a.py", False),
        ("src/a.py", "src/a.py", True),
        ("./src/", "src/a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/x/a.py", False),
        ("src/**/a.py", "src/a.py", True),
        ("src/**/a.py", "src/x/y/a.py", True),
        ("src/**", "src/x/y", True),
        ("a?c", "x/abc", True),
        ("a?c", "x/a/c", False),
        ("[!a]bc", "xbc", True),
        ("[!a]bc", "abc", False),
        ("[a-c].md", "b.md", True),
        ("[id].tsx", "app/[id].tsx", False),
        ("app/[id].tsx", "app/[id].tsx", True),
        ("a+(b).py", "a+(b).py", True),
        ("a.*", "aXpy", False),
        ("*\udcff", "a\udcff", True),
        ("[", "[", True),
        (".", "anything", True),
        ("a.py", "deep/down/a.py", True),
        ("a.py", "deep/down/ba.py", False),
        ("a.py", "a.py", True),
        ("./a.py", "deep/a.py", False),
        ("down", "deep/down/a.py", True),
        ("down/", "deep/down/a.py", False),
        ("src/a.py", "deep/src/a.py", False),
        ("**/*.{ts,tsx}", "web/a.tsx", True),
        ("**/*.{ts,tsx}", "a.ts", True),
        ("**/*.{ts,tsx}", "a.tsxx", False),
        ("*.{ts,tsx}", "web/deep/a.ts", True),
        ("{src,test}/**/*.{p{y,yi},md}", "test/x/a.pyi", True),
        ("{src,test}/**/*.{p{y,yi},md}", "docs/a.md", False),
        ("{src,test}", "deep/test", True),
        ("{id}.tsx", "app/{id}.tsx", True),
        ("a{b,c", "x/a{b,c", True),
        ("*{b,c", "x/a{b,c", True),
        ("*{[,]x", "x/a{,x", True),
    ],
)
def test_a_path_is_a_folder_a_file_or_a_pattern(wanted, path, fits):
    assert path_matcher(wanted)(path) is fits


def test_a_pattern_made_to_be_slow_is_not_slow():
    fits = path_matcher("*a" * 500 + "b")
    assert not fits("a" * 4000)
