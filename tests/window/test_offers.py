"""The one decision about offers: by worth per token, within caps and budgets, nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot, OfferVerdict
from hotset.nouns.knobs import Knobs, Prefetch
from hotset.nouns.message import ToolSpec
from hotset.nouns.window import PageTable
from hotset.window.offers import choose_texts, choose_tools
from hotset.window.plan import plan
from tests.window.talk import Talk, count, moment

KNOBS = Knobs(prefetch=Prefetch(excerpt=0.5, hint=0.3, excerpts=2, hints=3, share=0.1))


def text(key: str, worth: float = 0.9, tokens: int = 10, **more: object) -> Candidate:
    kind = more.pop("kind", OfferKind.EXCERPT)
    return Candidate("code", kind, key, OfferSlot.BEHIND_PROMPT, key, tokens, worth, **more)  # type: ignore[arg-type]


def ghost(name: str, tokens: int = 100, worth: float = 0.5) -> Candidate:
    spec = ToolSpec(name, "a tool", b"{}")
    return Candidate("tools", OfferKind.GHOST, name, OfferSlot.TOOL_LIST, spec, tokens, worth)


def verdicts(*offers: Candidate, free: int = 10_000, window: tuple[str, ...] = ()):
    chosen = choose_texts(offers, free, KNOBS, count, lambda: window)
    return [each.verdict for each in chosen]


def test_each_candidate_gets_one_verdict_that_says_why():
    offers = [
        text("a"),
        text("b", worth=0.4),
        text("c", covers=("a line that stands there",)),
        text("a", kind=OfferKind.HINT),
        text("d"),
        text("e"),
    ]
    assert verdicts(*offers, window=("x\na line that stands there\ny",)) == [
        OfferVerdict.TAKEN,
        OfferVerdict.UNLIKELY,
        OfferVerdict.COVERED,
        OfferVerdict.SAME,
        OfferVerdict.TAKEN,
        OfferVerdict.CAPPED,
    ]


def test_where_not_all_fit_what_is_worth_most_per_token_goes_first():
    small, large = text("small", 0.6, 20), text("large", 0.9, 90)
    assert verdicts(large, small, free=1000) == [OfferVerdict.NO_ROOM, OfferVerdict.TAKEN]
    assert verdicts(large, small, free=2000) == [OfferVerdict.TAKEN, OfferVerdict.TAKEN]


def test_a_reminder_has_a_budget_of_its_own():
    reminder = Candidate(
        "memory", OfferKind.REMINDER, "m1", OfferSlot.BEHIND_PROMPT, "text", 400, 0.4
    )
    assert verdicts(reminder, text("a", tokens=50), free=1000) == [OfferVerdict.TAKEN] * 2
    assert verdicts(reminder, free=300) == [OfferVerdict.NO_ROOM]


@pytest.mark.row("L3")
def test_what_stands_in_the_tool_list_stays_and_ghosts_keep_to_their_share():
    tool = Candidate(
        "tools",
        OfferKind.TOOL,
        "use_tool",
        OfferSlot.TOOL_LIST,
        ToolSpec("use_tool", "", b"{}"),
        90_000,
        1.0,
    )
    knobs = structs.replace(KNOBS, window=10_000)  # of which ghosts may take 500 tokens
    offers = [tool, ghost("a", 300), ghost("b", 300), ghost("c", 100), ghost("d", 50)]
    chosen = choose_tools(offers, knobs, 3)
    assert [each.verdict for each in chosen] == [
        OfferVerdict.TAKEN,
        OfferVerdict.TAKEN,
        OfferVerdict.NO_ROOM,
        OfferVerdict.TAKEN,
        OfferVerdict.CAPPED,
    ]


@given(
    st.lists(
        st.builds(
            text,
            st.sampled_from("abcdef"),
            st.floats(0, 1),
            st.integers(0, 300),
            kind=st.sampled_from([OfferKind.EXCERPT, OfferKind.HINT, OfferKind.REMINDER]),
        ),
        max_size=15,
    ),
    st.integers(-100, 5000),
)
def test_caps_and_budgets_hold_whatever_is_offered(offers, free):
    chosen = choose_texts(offers, free, KNOBS, count, tuple)
    taken = [each.candidate for each in chosen if each.is_taken]
    kinds = [each.kind for each in taken]
    prefetched = [each for each in taken if each.kind is not OfferKind.REMINDER]

    assert [each.candidate for each in chosen] == offers
    assert kinds.count(OfferKind.EXCERPT) <= 2
    assert kinds.count(OfferKind.HINT) <= 3
    assert kinds.count(OfferKind.REMINDER) <= 1
    assert len({each.key for each in taken}) == len(taken)
    assert sum(each.tokens for each in prefetched) <= max(0, free * 0.1)
    assert all(each.tokens <= max(0, free) for each in taken)


def test_an_offer_makes_no_page_leave():
    talk = Talk().user("Go.").step("x" * 4000).step("y" * 4000)
    alone = plan(talk.lines, PageTable(), (), KNOBS, moment())
    offered = plan(talk.lines, PageTable(), [text("a", tokens=500)], KNOBS, moment())

    assert (offered.shown, offered.tokens) == (alone.shown, alone.tokens)
    assert [each.is_taken for each in offered.choices] == [True]
