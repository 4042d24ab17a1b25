"""What is offered with a prompt: within its bounds, nothing twice, the same for the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.knobs import Knobs, Prefetch, Prefetching
from hotset.nouns.search import Entry, EntryId, Hits, IndexHit, Sort
from hotset.window.offers import choose_texts
from hotset.window.prefetch import (
    ABOVE,
    SIGNS,
    WEIGHTS,
    WITHIN,
    PrefetchWeights,
    Prompt,
    Verdict,
    asked_in,
    candidates,
    found_by_both,
    is_in_window,
    judge,
    likelihood,
    queries,
    weigh,
)
from tests.window.talk import count

ON = Prefetch(mode=Prefetching.ON, excerpt=0.5, hint=0.3)
SURE = PrefetchWeights(
    excerpt=(9.0,) + (0.0,) * (len(SIGNS) - 1), hint=(9.0,) + (0.0,) * (len(SIGNS) - 1)
)
"""Everything is likely."""

PROMPT = Prompt("Please mend the rounding in src/shop/basket.py", 7200.0)


def entry(number: int, path: str = "", **more: object) -> Entry:
    path = path or f"src/shop/file{number}.py"
    text = "\n".join(
        f"    total = total + price_of_item_{number}_{line} * 1758" for line in range(12)
    )
    given = Entry(
        EntryId(f"e{number}"),
        f"p{number}",
        Sort.PAGE,
        text,
        "file",
        f"read_file {path}",
        "s1",
        "",
        3,
        3600.0,
        path,
    )
    return replace(given, **more)


def hits(*entries: Entry) -> list[Hits]:
    return [
        Hits(
            tuple(
                IndexHit(each, 1.0 - at / 100, 10.0 - at / 10, 0.5)
                for at, each in enumerate(entries)
            )
        )
    ]


@dataclass(frozen=True)
class Offer:
    """What a plan takes."""

    excerpts: tuple[Candidate, ...]
    hints: tuple[Candidate, ...]

    def __bool__(self) -> bool:
        return bool(self.excerpts or self.hints)

    @property
    def text(self) -> str:
        return "\n".join((ABOVE, *(each.body for each in (*self.excerpts, *self.hints))))

    @property
    def tokens(self) -> int:
        taken = (*self.excerpts, *self.hints)
        return count(ABOVE.encode()) + sum(each.tokens for each in taken) if taken else 0


def offered(
    found: list[Hits],
    knobs: Prefetch = ON,
    window: tuple[str, ...] = (),
    free: int = 100_000,
    weights: PrefetchWeights = SURE,
):
    given = candidates(
        PROMPT, found, slot=OfferSlot.BEHIND_PROMPT, knobs=knobs, count=count, weights=weights
    )
    choices = choose_texts(given, free, Knobs(prefetch=knobs), count, lambda: window)
    taken = [each.candidate for each in choices if each.is_taken]
    return Offer(
        tuple(each for each in taken if each.kind is OfferKind.EXCERPT),
        tuple(each for each in taken if each.kind is OfferKind.HINT),
    )


def given_to_a_model(entry: Entry) -> Candidate:
    return Candidate(
        "code",
        OfferKind.EXCERPT,
        entry.path,
        OfferSlot.BEHIND_PROMPT,
        "text",
        120,
        0.9,
        origin=entry,
    )


entries = st.lists(
    st.builds(entry, st.integers(0, 30), st.sampled_from(["", "a/x.py", "b/y.py"])), max_size=12
)


@pytest.mark.row("V7")
@given(entries, st.integers(0, 3000), st.sampled_from(Prefetching))
def test_an_offer_keeps_its_bounds_whatever_was_found(found, free, mode):
    knobs = structs.replace(ON, mode=mode, lines=5)
    made = offered(hits(*found), knobs, free=free)

    assert len(made.excerpts) <= knobs.excerpts
    assert len(made.hints) <= knobs.hints
    assert made.tokens <= max(0, free * knobs.share)
    if made:
        assert count(made.text.encode()) <= made.tokens
    for each in made.excerpts:
        assert len(each.body.split("\n")) <= 1 + knobs.lines
    for each in made.hints:
        assert "\n" not in each.body
    paths = [each.key for each in (*made.excerpts, *made.hints)]
    assert len(paths) == len(set(paths))
    assert mode is Prefetching.ON or not made.excerpts
    assert mode is not Prefetching.OFF or not made


@given(entries)
@pytest.mark.slow
def test_the_same_finds_make_the_same_offer_in_whichever_order_they_come(found):
    every = list({each.id: each for each in found}.values())
    (one,) = hits(*every)
    assert offered([one]) == offered([Hits(tuple(reversed(one.hits)))])


@pytest.mark.row("V7")
@given(entries, st.sets(st.integers(0, 11)))
def test_nothing_is_offered_that_stands_in_the_window(found, standing):
    window = tuple(each.text for at, each in enumerate(found) if at in standing)
    made = offered(hits(*found), window=window)
    for each in (*made.excerpts, *made.hints):
        assert each.origin.text not in window


def test_what_stands_numbered_or_cut_in_the_window_stands_there():
    text = entry(1).text
    numbered = "\n".join(f"{at:6}→{line}" for at, line in enumerate(text.split("\n"), 40))
    half = "\n".join(text.split("\n")[:7])

    assert is_in_window(text, [numbered])
    assert is_in_window(numbered, [text])
    assert is_in_window(text, ["other", half])
    assert not is_in_window(text, ["\n".join(text.split("\n")[5:8])])
    assert is_in_window("}\n)\n", [])  # says nothing, so nothing is missing


@pytest.mark.parametrize("lacks", ["by_words", "by_meaning"])
def test_what_only_one_signal_found_is_not_offered(lacks):
    hit = replace(hits(entry(1))[0].hits[0], **{lacks: None})
    assert not found_by_both(hit)
    assert not offered([Hits((hit,))])


def test_an_excerpt_says_where_it_stands_and_how_sure_it_is():
    numbered = "\n".join(f"{at:6}→    total_{at} = total + 1758 * {at}" for at in range(40, 50))
    code = entry(2, "lib/tax.py", sort=Sort.CODE, kind="python", lines=(10, 21))
    made = offered(hits(entry(1, "src/shop/basket.py", text=numbered), code))

    page, file = (each.body.split("\n")[0] for each in made.excerpts)
    assert (
        page == "[AUTO-RETRIEVED: src/shop/basket.py:40-49 in session s1, turn 3 | confidence 1.00]"
    )
    assert file == "[AUTO-RETRIEVED: lib/tax.py:10-21 | confidence 1.00]"


def test_an_excerpt_that_is_cut_says_which_lines_it_shows():
    made = offered(
        hits(entry(2, "lib/tax.py", sort=Sort.CODE, kind="python", lines=(10, 21))),
        structs.replace(ON, lines=4),
    )
    assert (
        made.excerpts[0].body.split("\n")[0]
        == "[AUTO-RETRIEVED: lib/tax.py:10-13 | confidence 1.00]"
    )
    assert len(made.excerpts[0].body.split("\n")) == 5


def test_a_hint_is_one_line_with_the_call_that_brings_the_page_back():
    made = offered(
        hits(entry(1, "src/shop/basket.py")), structs.replace(ON, mode=Prefetching.HINTS)
    )
    assert [each.body for each in made.hints] == [
        (
            "[RELATED: src/shop/basket.py in session s1, turn 3 read_file | confidence 1.00 | "
            'retrieve_context(id="p1")]'
        )
    ]


def test_an_edit_is_never_shown_as_what_stands_in_a_file():
    made = offered(hits(entry(1, kind="tool_call")))
    assert not made.excerpts
    assert [each.origin.id for each in made.hints] == ["e1"]


@pytest.mark.parametrize("kind", ["prompt", "response", "tool_result", "web_fetch"])
def test_what_is_about_no_file_is_not_offered(kind):
    assert not offered(hits(entry(1, kind=kind)))


def test_a_file_that_the_prompt_names_is_likelier_than_one_that_it_does_not():
    named, other = (
        likelihood(signs, WEIGHTS.excerpt)
        for _, signs in weigh(
            PROMPT,
            hits(entry(1, "/home/me/src/shop/basket.py"), entry(2, "/home/me/src/shop/tax.py")),
        )
    )
    assert named > 0.5 > other


def test_the_index_is_asked_for_each_file_that_a_prompt_names_and_for_no_phrase():
    asked = queries(
        Prompt('Why does src/a.py say "not found" and tax.rs not? It is version 1.24.'),
        Prefetch(found=9, found_in_named=2),
    )
    assert [query.only.path for query in asked] == ["", "**/src/a.py", "**/tax.rs"]
    assert [query.most for query in asked] == [9, 2, 2]
    assert all('"' not in query.words for query in asked)


def test_files_that_only_a_client_names_are_not_asked_for():
    said = (
        "<system-reminder>See docs/rules.md.</system-reminder>Mend "
        "src/a.py.<environment_context>src/b.py"
    )
    assert asked_in(said) == "Mend src/a.py."
    assert asked_in("a < b, and <b>this</b> stays") == "a < b, and <b>this</b> stays"


@pytest.mark.row("V8")
def test_what_was_offered_is_used_when_an_action_copies_a_line_of_it_or_is_about_its_file():
    given = given_to_a_model(entry(1, "/home/me/src/shop/basket.py"))
    line = given.origin.text.split("\n")[3].strip()
    other = b'{"path": "src/other.py"}'

    copied = judge(given, [other, b'{"old_string": "%s"}' % line.encode()])
    read = judge(given, [other, b'{"path": "/home/me/src/shop/basket.py"}'])
    shell = judge(given, [b'{"cmd": "cat src/shop/basket.py"}'])

    assert copied is not None
    assert read is not None
    assert shell is not None
    assert (copied.verdict, copied.saved) == (Verdict.USED, 120)
    assert (read.verdict, read.saved) == (Verdict.USED, 0)
    assert shell.verdict is Verdict.USED


def test_what_nobody_touched_is_wasted_after_some_actions_and_not_before():
    given = given_to_a_model(entry(1))
    other = b'{"path": "src/other.py"}'

    assert judge(given, [other] * (WITHIN - 1)) is None
    wasted, expanded = judge(given, [other] * WITHIN), judge(given, [other], {"p1"})
    assert wasted is not None
    assert expanded is not None
    assert wasted.verdict is Verdict.WASTED
    assert expanded.verdict is Verdict.EXPANDED


@pytest.mark.row("V7")
def test_of_a_file_the_stretch_that_answers_the_prompt_is_shown_whatever_makes_its_file_likely():
    """The weights that say how likely a file is used speak of files: a word more in a stretch is
    not to make it less likely."""
    imports = replace(entry(1, "src/shop/basket.py"), lines=(1, 12))
    rounding = replace(entry(2, "src/shop/basket.py"), lines=(40, 51))
    found = [Hits((IndexHit(rounding, 2.0, 20.0, 0.8), IndexHit(imports, 0.5, 4.0, 0.3)))]

    made = offered(found, structs.replace(ON, excerpt=0.1, hint=0.99), weights=WEIGHTS)

    assert [each.origin.lines for each in made.excerpts] == [(40, 51)]
