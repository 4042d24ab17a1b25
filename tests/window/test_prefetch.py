"""What is offered with a prompt: within its bounds, nothing twice, the same for the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.knobs import Knobs, Prefetch, Prefetching
from hotset.nouns.search import Entry, EntryId, Hits, IndexHit, Sort
from hotset.text.client_notes import asked_in
from hotset.window.offers import choose_texts
from hotset.window.prefetch import (
    ABOVE,
    CALIBRATION,
    SIGNS,
    WITHIN,
    HintCalibration,
    Verdict,
    candidates,
    is_known,
    judge,
    likelihood,
    query_for,
    weigh,
)
from tests.window.talk import count

ON = Prefetch(mode=Prefetching.ON)
SURE = HintCalibration((9.0,) + (0.0,) * (len(SIGNS) - 1), 0.0)
"""Everything is likely."""

PROMPT = "Please mend how the price of an item is rounded in the basket"


def entry(number: int, path: str = "", **more: object) -> Entry:
    path = path or f"src/shop/file{number}.py"
    lines = (f"    total = total + price_of_item_{number}_{line} * 1758" for line in range(11))
    text = "\n".join((f"def round_{number}(total):", *lines))
    made = Entry(
        id=EntryId(f"{path}#{number}"),
        whole=path,
        sort=Sort.CODE,
        text=text,
        kind="python",
        title=f"{path} def round_{number}(total)",
        time=3600.0,
        path=path,
        lines=(10, 21),
    )
    return replace(made, **more)


def hits(*entries: Entry) -> Hits:
    return Hits(
        tuple(
            IndexHit(each, 1.0 - at / 100, 10.0 - at / 10, 0.5) for at, each in enumerate(entries)
        )
    )


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
    found: Hits,
    knobs: Prefetch = ON,
    *,
    window: tuple[str, ...] = (),
    free: int = 100_000,
    by: HintCalibration = SURE,
    prompt: str = PROMPT,
):
    slot = OfferSlot.BEHIND_PROMPT
    made = candidates(prompt, found, lambda each: each, slot=slot, knobs=knobs, count=count, by=by)
    choices = choose_texts(made, free, Knobs(prefetch=knobs), count, lambda: window)
    taken = [each.candidate for each in choices if each.is_taken]
    return Offer(
        tuple(each for each in taken if each.kind is OfferKind.EXCERPT),
        tuple(each for each in taken if each.kind is OfferKind.HINT),
    )


def given_to_a_model(entry: Entry, kind: OfferKind = OfferKind.EXCERPT) -> Candidate:
    slot = OfferSlot.BEHIND_PROMPT
    return Candidate("code", kind, entry.path, slot, "text", 120, 0.9, origin=entry)


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
    one = hits(*every)
    assert offered(one) == offered(Hits(tuple(reversed(one.hits))))


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
    half = "\n".join(text.split("\n")[:8])

    assert offered(hits(entry(1)))
    assert not offered(hits(entry(1)), window=(numbered,))
    assert not offered(hits(entry(1)), window=("other", half))
    assert offered(hits(entry(1)), window=("\n".join(text.split("\n")[2:4]),))


@pytest.mark.row("V7")
@pytest.mark.parametrize("lacks", ["by_words", "by_meaning"])
def test_what_only_one_signal_found_is_not_offered(lacks):
    hit = replace(hits(entry(1)).hits[0], **{lacks: None})
    assert not offered(Hits((hit,)))


@pytest.mark.row("V7")
def test_an_excerpt_says_where_it_stands_and_how_sure_it_is():
    made = offered(hits(entry(2, "lib/tax.py")))
    body = made.excerpts[0].body.split("\n")
    assert body[0] == "[AUTO-RETRIEVED: lib/tax.py:10-21 | confidence 1.00]"
    assert "\n".join(body[1:]) == entry(2).text


def test_an_excerpt_that_is_cut_says_which_lines_it_shows():
    made = offered(hits(entry(2, "lib/tax.py")), structs.replace(ON, lines=4))
    body = made.excerpts[0].body.split("\n")
    assert body[0] == "[AUTO-RETRIEVED: lib/tax.py:10-13 | confidence 1.00]"
    assert len(body) == 5


@pytest.mark.row("V7")
def test_a_hint_is_one_line_with_the_symbol_that_the_prompt_is_about_and_its_own_line():
    small = Entry(
        id=EntryId("x"),
        whole="lib/tax.py",
        sort=Sort.CODE,
        text="def rate(kind):\n    return 7\n\n\ndef round_price(price):\n    return int(price)\n",
        kind="python",
        title="lib/tax.py def rate(kind); def round_price(price)",
        path="lib/tax.py",
        lines=(30, 35),
    )
    made = offered(hits(small), structs.replace(ON, mode=Prefetching.HINTS))
    assert [each.body for each in made.hints] == [
        "[RELATED: lib/tax.py:34 def round_price(price) | confidence 1.00]"
    ]


@pytest.mark.row("V7")
def test_no_file_is_offered_that_the_prompt_names_itself():
    named = offered(hits(entry(1, "src/shop/basket.py")), prompt=f"{PROMPT}, basket.py")
    assert not named
    assert offered(hits(entry(1, "src/shop/basket.py")))


@pytest.mark.parametrize(
    ("other", "prompt", "is_offered"),
    [
        ({"sort": Sort.PAGE}, PROMPT, False),
        ({"kind": "markdown"}, PROMPT, False),
        ({"path": "tests/test_price.py"}, PROMPT, False),
        ({"path": "tests/test_price.py"}, f"{PROMPT}: the tests fail", True),
    ],
)
def test_only_code_is_offered_and_tests_if_they_are_asked_for(other, prompt, is_offered):
    assert bool(offered(hits(replace(entry(1), **other)), prompt=prompt)) is is_offered


def test_hidden_characters_of_a_file_are_shown_as_such():
    made = offered(hits(entry(1, text="def price():\n    return 7  # \u202eevil\n")))
    assert "\u202e" not in made.text


@pytest.mark.row("V7")
def test_the_shipped_thresholds_can_be_reached():
    """A file whose name the prompt says, with words that no other file has, far ahead."""
    right = entry(1, "src/shop/price.py")
    others = [entry(n, text=f"def other_{n}():\n    return 'something else'") for n in range(2, 9)]
    found = Hits(
        (
            IndexHit(right, 3.0, 9.0, 0.6),
            *(IndexHit(each, 0.0, 1.0, 0.2) for each in others),
        )
    )
    made = offered(found, by=CALIBRATION, prompt="Fix the price total")
    assert [each.key for each in made.excerpts] == ["src/shop/price.py"]
    assert made.excerpts[0].worth >= Prefetch().excerpt


@pytest.mark.row("V7")
def test_it_is_silent_where_many_files_are_as_near():
    found = hits(*(entry(n) for n in range(12)))
    assert not offered(found, by=CALIBRATION)


def test_a_file_with_a_name_that_the_prompt_says_is_likelier_than_one_without():
    first, second = entry(1), entry(2)
    prompt = "Why is price_of_item_2_7 wrong?"
    signs = {each.hit.entry.id: each.signs for each in weigh(prompt, hits(first, second))}
    assert likelihood(signs[second.id]) > likelihood(signs[first.id])


def test_a_prompt_about_documents_makes_code_less_likely():
    [code] = weigh("Fix the price of an item", hits(entry(1)))
    [prose] = weigh("Fix the docs: the price of an item", hits(entry(1)))
    assert likelihood(code.signs) > likelihood(prose.signs)


def test_the_index_is_asked_for_code_and_for_no_phrase():
    asked = query_for('Why does it say "not found"?', Prefetch(found=9), 0.05)
    assert asked.only.sorts == {Sort.CODE}
    assert (asked.most, asked.deadline) == (9, 0.05)
    assert '"' not in asked.words


def test_files_that_only_a_client_names_are_not_part_of_a_prompt():
    said = (
        "<system-reminder>See docs/rules.md.</system-reminder>Mend "
        "src/a.py.<environment_context>src/b.py"
    )
    assert asked_in(said) == "Mend src/a.py."
    assert asked_in("a < b, and <b>this</b> stays") == "a < b, and <b>this</b> stays"


def test_a_file_that_an_action_named_is_known():
    read = b'{"path": "/home/me/src/shop/basket.py"}'
    assert is_known("src/shop/basket.py", [read])
    assert not is_known("src/shop/tax.py", [read])


@pytest.mark.row("V8")
def test_an_excerpt_is_used_when_an_action_copies_a_line_of_it_and_expanded_when_one_opens_its_file():  # noqa: E501
    given = given_to_a_model(entry(1, "src/shop/basket.py"))
    line = given.origin.text.split("\n")[3].strip()
    other = b'{"path": "src/other.py"}'

    copied = judge(given, [other, b'{"old_string": "%s"}' % line.encode()])
    read = judge(given, [other, b'{"path": "/home/me/src/shop/basket.py"}'])
    shell = judge(given, [b'{"cmd": "cat src/shop/basket.py"}'])

    assert copied is not None
    assert read is not None
    assert shell is not None
    assert (copied.verdict, copied.saved) == (Verdict.USED, 120)
    assert (read.verdict, read.saved) == (Verdict.EXPANDED, 0)
    assert shell.verdict is Verdict.EXPANDED


@pytest.mark.row("V8")
def test_a_hint_is_used_when_an_action_is_about_its_file():
    given = given_to_a_model(entry(1, "src/shop/basket.py"), OfferKind.HINT)
    used = judge(given, [b'{"path": "shop/basket.py"}'])
    assert used is not None
    assert (used.verdict, used.saved) == (Verdict.USED, 0)
    assert judge(given, [b'{"path": "basket.py"}', b'{"path": "src/my_basket.py"}']) is None


@pytest.mark.row("V8")
def test_what_nobody_touched_is_wasted_after_some_actions_and_not_before():
    given = given_to_a_model(entry(1))
    other = b'{"path": "src/other.py"}'

    assert judge(given, [other] * (WITHIN - 1)) is None
    wasted = judge(given, [other] * WITHIN)
    assert wasted is not None
    assert wasted.verdict is Verdict.WASTED


@pytest.mark.row("V7")
def test_of_a_file_the_stretch_that_answers_the_prompt_is_shown():
    imports = replace(entry(1, "src/shop/basket.py"), lines=(1, 12))
    rounding = replace(entry(2, "src/shop/basket.py"), lines=(40, 51))
    found = Hits((IndexHit(imports, 0.5, 4.0, 0.3), IndexHit(rounding, 2.0, 20.0, 0.8)))
    assert [each.origin.lines for each in offered(found).excerpts] == [(40, 51)]
