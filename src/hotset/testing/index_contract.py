"""The contract of an index: hotset can use any adapter that passes `check_index`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hotset.index.port import Index, Watermark
from hotset.nouns.search import Entry, EntryId, Filter, Hits, Query, Sort
from hotset.testing.contract import checks_in, on_fresh

OpenIndex = Callable[[], Index]
"""Opens a new, empty index."""

# seconds for a search: a contract is about what is found, not about how fast this machine is today
_PATIENT = 10.0


def check_index(open_index: OpenIndex) -> None:
    """Raises an AssertionError with a sentence if the index breaks its contract."""
    for check in CHECKS:
        check(open_index)


@on_fresh
def check_what_was_added_is_found_at_once(index: Index) -> None:
    for fold in (False, True):
        entry = _entry(f"added {fold}", f"the quick zebra number {fold} jumps over the fence")
        index.add([entry])
        if fold:
            assert index.fold(), "an index without other users could not be folded"
        assert _first(index, f"zebra {fold}") == entry, (
            "an entry that was just added is not found, or not whole"
        )
        assert index.entries([entry.id]) == [entry], (
            "an entry by its id is not the one that was added"
        )


@on_fresh
def check_what_was_removed_is_gone_at_once(index: Index) -> None:
    index.add(
        [
            _entry("a", "a giraffe eats leaves", whole="zoo"),
            _entry("b", "a giraffe sleeps", whole="zoo"),
        ]
    )
    index.add([_entry("c", "a giraffe in a book", whole="book")])
    index.fold()
    index.add([_entry("d", "a giraffe came today", whole="zoo")])
    assert _ids(index, "giraffe") == {"a", "b", "c", "d"}, (
        "not all entries are found, folded and not folded"
    )
    index.remove(["zoo", "nowhere"])
    assert _ids(index, "giraffe") == {"c"}, "entries of a removed whole are found"
    assert not index.entries([EntryId("a"), EntryId("d")]), (
        "entries of a removed whole can still be read"
    )
    index.fold()
    assert _ids(index, "giraffe") == {"c"}, "removed entries came back with a fold"


@on_fresh
def check_what_was_purged_is_gone_and_the_rest_is_found(index: Index) -> None:
    index.add(
        [
            _entry("a", "a walrus on the ice", whole="sea"),
            _entry("b", "a walrus in a bath", whole="house"),
        ]
    )
    index.fold()
    index.purge(["sea"])
    assert _ids(index, "walrus") == {"b"}, "what was purged is found, or something else is not"
    index.fold()
    assert _ids(index, "walrus") == {"b"}, (
        "what was purged is found once it was folded, or something else is not"
    )


@on_fresh
def check_an_entry_takes_the_place_of_its_older_self(index: Index) -> None:
    old = _entry("a", "an antelope was here")
    new = replace(old, text="a walrus is here", turn=7)
    for fold in (False, True):
        index.add([old])
        if fold:
            index.fold()
        index.add([new])
        assert index.entries([old.id]) == [new], "an entry was not replaced by its newer self"
        assert _first(index, "walrus") == new, "the newer text of an entry is not found"
        assert not any(hit.entry == old for hit in _search(index, "antelope").hits), (
            "the older text of an entry is found"
        )


@on_fresh
def check_a_whole_is_replaced_at_once(index: Index) -> None:
    first, second = (
        _entry("f#1", "the ferret", whole="f"),
        _entry("f#2", "the marmot", whole="f"),
    )
    index.replace("f", [first, second])
    index.fold()
    third = _entry("f#3", "the badger", whole="f")
    index.replace("f", [replace(first, lines=(5, 9)), third])
    assert _first(index, "ferret") == replace(first, lines=(5, 9)), (
        "an entry that only moved is not where it moved"
    )
    assert _first(index, "badger") == third, "a new entry of a replaced whole is not found"
    assert not index.entries([second.id]), "an entry that its whole no longer has is still there"
    index.replace("f", [])
    assert not index.wholes(Sort.CODE), "a whole without entries is still listed"


@on_fresh
def check_wholes_are_listed_by_sort(index: Index) -> None:
    index.add(
        [
            _entry("1", "one", whole="x", sort=Sort.CODE),
            _entry("2", "two", whole="x", sort=Sort.CODE),
        ]
    )
    index.add([_entry("3", "three", whole="y", sort=Sort.PAGE)])
    assert list(index.wholes(Sort.CODE)) == ["x"], (
        "the wholes of a sort are not those that were added, each once"
    )
    assert list(index.wholes(Sort.PAGE)) == ["y"], "wholes of another sort are listed"
    assert not index.wholes(Sort.TOOL), "a sort that has no entries has wholes"


@on_fresh
def check_watermarks_come_with_entries(index: Index) -> None:
    assert index.watermark("store") == 0, "a source that was never followed has a watermark"
    index.add([_entry("a", "text")], Watermark("store", 5))
    index.add([], Watermark("other", 2))
    index.remove(["a"], Watermark("store", 9))
    assert (index.watermark("store"), index.watermark("other")) == (9, 2), (
        "a watermark is not the last that was set"
    )
    index.replace("b", [_entry("b", "text", whole="b")], Watermark("store", 4))
    assert index.watermark("store") == 4, "a source that begins anew cannot set its watermark back"
    assert index.state().watermarks == {"store": 4, "other": 2}, (
        "the state does not tell the watermarks"
    )


@on_fresh
def check_every_condition_of_a_filter_holds(index: Index) -> None:
    every = [
        Entry(
            id=EntryId(f"e{number}"),
            whole=f"w{number}",
            sort=(Sort.PAGE, Sort.CODE, Sort.TOOL)[number % 3],
            text=f"the same words in every entry {number}",
            kind=("python", "markdown")[number % 2],
            session=f"s{number % 4}",
            agent=("main", "sub")[number % 2],
            turn=number,
            time=1000.0 + number,
            path=f"src/pkg{number % 3}/mod{number}.{('py', 'md')[number % 2]}",
        )
        for number in range(24)
    ]
    filters: tuple[tuple[Filter, Callable[[Entry], bool]], ...] = (
        (Filter(), lambda _: True),
        (Filter(sorts=frozenset({Sort.CODE, Sort.TOOL})), lambda e: e.sort is not Sort.PAGE),
        (Filter(kinds=frozenset({"markdown"})), lambda e: e.kind == "markdown"),
        (Filter(sessions=frozenset({"s1", "s2", "none"})), lambda e: e.session in {"s1", "s2"}),
        (Filter(agents=frozenset({"sub"})), lambda e: e.agent == "sub"),
        (Filter(turns=(3, 8)), lambda e: 3 <= e.turn <= 8),
        (Filter(since=1010.0), lambda e: e.time >= 1010.0),
        (Filter(until=1010.0), lambda e: e.time < 1010.0),
        (Filter(since=1003.0, until=1004.0), lambda e: e.time == 1003.0),
        (Filter(path="src/pkg1"), lambda e: e.path.startswith("src/pkg1/")),
        (Filter(path="src/pkg"), lambda _: False),
        (Filter(path="src/pkg0/mod3.md"), lambda e: e.path == "src/pkg0/mod3.md"),
        (Filter(path="*.py"), lambda e: e.path.endswith(".py")),
        (
            Filter(path="src/*/mod1?.md"),
            lambda e: e.path.endswith(".md") and e.turn >= 10 and e.turn < 20,
        ),
        (Filter(sessions=frozenset({"none"})), lambda _: False),
        (
            Filter(
                kinds=frozenset({"python"}), agents=frozenset({"main"}), turns=(0, 4), path="src"
            ),
            lambda e: e.turn in {0, 2, 4},
        ),
    )
    there: list[Entry] = []
    for portion, fold in ((every[:16], False), ([], True), (every[16:], False), ([], True)):
        index.add(portion)
        there += portion
        if fold:
            index.fold()
        for only, fits in filters:
            found = {hit.entry.id for hit in _search(index, "same words", only, most=50).hits}
            assert found == {e.id for e in there if fits(e)}, (
                f"the filter {only} did not let through what it should"
            )


@on_fresh
def check_words_are_data(index: Index) -> None:
    index.add([_entry("a", "plain text about otters")])
    index.fold()
    index.add([_entry("b", "more text about otters")])
    for words in _AWKWARD:
        _search(index, words)
        found = _ids(index, f"otters {words}" if '"' not in words else "otters")
        assert found == {"a", "b"}, f"a question with {words[:20]!r} in it is not answered"
    assert not _search(index, "").hits, "an empty question was answered"
    assert not _search(index, "otters", most=0).hits, "nothing was asked for, and something given"


@on_fresh
def check_a_phrase_in_quotes_must_occur(index: Index) -> None:
    index.add(
        [
            _entry("a", "def parseHttpDate(text): the date of a header"),
            _entry("b", "parse the http date of a letter"),
        ]
    )
    for _ in range(2):
        assert _ids(index, "parse http date") == {"a", "b"}, (
            "an identifier does not come apart into its words"
        )
        assert _ids(index, '"parseHttpDate"') == {"a"}, (
            "an identifier in quotes is found where it does not occur"
        )
        assert _ids(index, '"the http date"') == {"b"}, (
            "a phrase in quotes is found where it does not occur"
        )
        assert _ids(index, '"date the http"') == set(), (
            "a phrase in quotes is found in another order"
        )
        assert _first(index, "parseHttpDate").id == "a", (
            "who names an identifier does not find it first"
        )
        index.fold()


@on_fresh
def check_any_text_comes_back_as_it_was(index: Index) -> None:
    texts = (
        "",
        "\0",
        "a\0b lemur",
        "\udcff lemur",
        "zażółć lemur 漢字",
        "lemur " * 5000,
        "[sealed:key:1a2b] lemur",
        "\r\n\t lemur",
    )
    entries = [
        replace(_entry(f"t{number}", text), title=text[:50], path=text[:50])
        for number, text in enumerate(texts)
    ]
    index.add(entries)
    for _ in range(2):
        assert index.entries([entry.id for entry in entries]) == entries, (
            "a text did not come back as it was"
        )
        wanted = {entry.id for entry in entries if "lemur" in entry.text}
        assert _ids(index, "lemur", most=20) >= wanted, (
            "a text with odd characters is not found by its words"
        )
        index.fold()


@on_fresh
def check_the_state_tells_what_there_is(index: Index) -> None:
    assert index.state().entries == 0, "an empty index has entries"
    index.add([_entry("a", "one"), _entry("b", "two", whole="b")])
    assert index.state().entries == 2, "the state does not count the entries"
    index.fold()
    state = index.state()
    assert (state.entries, state.lag) == (2, 0), "something lags behind after a fold"
    assert state.bytes > 0, "an index with entries takes no room"
    assert not state.troubles, "there are troubles where nothing went wrong"


@on_fresh
def check_what_was_looked_at_is_found_in_no_time(index: Index) -> None:
    hot, cold = (
        _entry("hot", "a penguin that everybody looks at"),
        _entry("cold", "a penguin", whole="cold"),
    )
    index.add([hot, cold])
    for _ in range(3):
        index.touch([hot.id])
    hurried = Query("penguin", deadline=0.0005)
    assert [hit.entry for hit in index.search(hurried).hits] == [hot], (
        "a hot entry is not found in a hurry"
    )
    assert index.search(hurried).lacking, "an answer in a hurry does not say what it lacks"
    index.remove([hot.whole])
    assert not index.search(hurried).hits, "a removed entry is found because it was hot"


CHECKS = checks_in(globals())

_AWKWARD = (
    '"',
    '"" " \'',
    "NEAR(a b, 5) AND OR NOT * ^ : {col}: -x +y",
    "'; DROP TABLE entry; --",
    "(((((((((((((((((((((a+)+)+)+)+)+)+)+)+)+$",
    "title:x body:[a TO z] path:/.*/ _exists_:doc",
    "%s %n \\ \0 \udcff \u202e 漢字 \U0001f9a6",
    "x" * 100_000,
)


def _entry(id: str, text: str, whole: str = "", sort: Sort = Sort.CODE) -> Entry:
    return Entry(EntryId(id), whole or id, sort, text)


def _search(index: Index, words: str, only: Filter | None = None, most: int = 10) -> Hits:
    return index.search(Query(words, only or Filter(), most, _PATIENT))


def _first(index: Index, words: str) -> Entry:
    hits = _search(index, words).hits
    assert hits, f"nothing is found for {words!r}"
    return hits[0].entry


def _ids(index: Index, words: str, most: int = 10) -> set[str]:
    """Ids found by words; vector search may add more, which is allowed."""
    return {
        hit.entry.id for hit in _search(index, words, most=most).hits if hit.by_words is not None
    }
