"""One function decides how a request is sent: forms at birth, departures in batches, and nothing
else."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from msgspec import structs

from hotset.nouns.knobs import NEVER, Knobs, Limit
from hotset.nouns.order import OrderAct, WindowOrders
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import WHOLE, Cause, Form, Piece, Spot
from hotset.window.evict import POLICIES
from hotset.window.plan import plan
from hotset.window.repeats import content_id
from tests.campaign import sample
from tests.window.talk import Talk, code, moment, piece

LOSSLESS = re.compile(r'retrieve_context\(id="([crp][0-9a-f]{11,15})"')
SMALL = Knobs(window=6000)


def _planned(talk: Talk, knobs: Knobs = SMALL, **more: object):
    return plan(talk.lines, talk.table, (), knobs, moment(**more))


@st.composite
def conversations(draw: st.DrawFn) -> Talk:
    talk = Talk()
    if draw(st.booleans()):
        talk.add(Role.SYSTEM, piece(Kind.SYSTEM, "Be brief."))
    results = [
        code(3),
        code(60),
        code(60, "g"),
        "ok",
        "error: no such file src/a.py",
        "\n".join(f"src/m{n}.py:{n}: x" for n in range(300)),
    ]
    for _ in range(draw(st.integers(1, 3))):
        talk.user(draw(st.sampled_from(["Fix it.", "Why does f_7 fail?", "Go on. " * 30])))
        for _ in range(draw(st.integers(0, 9))):
            kind = draw(st.sampled_from([Kind.FILE, Kind.TOOL_RESULT, Kind.TEST_RESULT]))
            path = draw(st.sampled_from(["a.py", "b.py", ""]))
            talk.step(
                draw(st.sampled_from(results)),
                said=draw(st.sampled_from(["", "I look."])),
                path=path,
                kind=kind,
            )
    return talk


knobs = st.builds(
    Knobs,
    window=st.sampled_from([1500, 4000, 16_000, 200_000]),
    policy=st.sampled_from(sorted(POLICIES)),
    keep=st.integers(1, 6),
    most=st.sampled_from([0, 0, 8]),
    early=st.booleans(),
    low=st.sampled_from([0.0, 0.03, 0.3]),
    spared=st.sampled_from([frozenset(), frozenset({Kind.FILE})]),
)


@pytest.mark.row("C1")
@pytest.mark.row("V4")
@settings(deadline=None, max_examples=sample(60, 150))
@given(conversations(), knobs)
@pytest.mark.slow
def test_every_page_is_shown_whole_or_names_what_brings_it_back_and_what_people_said_is_never_touched(  # noqa: E501
    talk, knobs
):
    made = _planned(talk, knobs)

    for line in talk.lines:
        gone = made.shown.get(Spot(line.chain, WHOLE))
        if line.role in (Role.USER, Role.SYSTEM):
            assert gone is None
            assert not any(
                Spot(line.chain, position) in made.shown for position in range(len(line.pieces))
            )
        for position, each in enumerate(line.pieces):
            row = made.shown.get(Spot(line.chain, position))
            if gone is None and row is not None and row.form is not Form.FULL:
                assert LOSSLESS.search(row.text.decode()) or _says_all(row.text, each)
                assert row.tokens < row.whole == each.tokens
    for row in made.shown.values():
        if row.form is Form.GONE and row.text:
            assert LOSSLESS.search(row.text.decode())
    left = {spot for stub in made.stubs for spot in stub.spots}
    assert {row.spot for row in made.fresh if row.form in (Form.GONE, Form.STUB)} <= left


def _says_all(text: bytes, piece: Piece) -> bool:
    """Only line numbers were left out."""
    return text.count(b"\n") == piece.content.count(b"\n") + 1


@pytest.mark.row("X3")
@settings(deadline=None, max_examples=sample(40, 100))
@given(conversations(), knobs)
@pytest.mark.slow
def test_a_plan_is_the_same_anywhere_and_planning_what_was_sent_changes_nothing(talk, knobs):
    made = _planned(talk, knobs)
    assert made == _planned(talk, knobs)

    again = _planned(talk.sent(made), structs.replace(knobs, early=False, most=0, high=2.0))

    assert again.fresh == ()
    assert again.broke is None
    assert again.tokens == made.tokens == again.kept


@pytest.mark.row("X3")
@settings(deadline=None, max_examples=60)
@given(conversations(), st.data())
@pytest.mark.slow
def test_a_form_once_given_changes_only_when_pages_leave(talk, data):
    growing = Talk()
    forms: dict[Spot, bytes] = {}
    for line in talk.lines:
        growing.lines.append(line)
        made = _planned(growing, Knobs(window=4000))
        for row in made.fresh:
            assert row.spot not in forms or row.cause is not Cause.BIRTH
            forms[row.spot] = row.text
        assert all(
            made.shown[spot].text == text for spot, text in forms.items() if spot in made.shown
        )
        growing.sent(made)


@pytest.mark.slow
def test_the_window_is_never_exceeded_however_long_the_work_goes_on():
    talk, knobs = Talk().user("Do it."), Knobs(window=8000)
    for n in range(150):
        talk.step(code(40, f"h{n}"), said="Next.")
        made = _planned(talk, knobs, fixed=500)
        assert made.tokens + 500 <= knobs.window
        talk.sent(made)


@pytest.mark.row("C3")
def test_a_window_over_the_latest_steps_lets_the_others_leave_in_batches():
    talk, knobs = Talk().user("Do it."), Knobs(keep=5, most=10, early=False)
    resident, breaks = [], 0
    for n in range(40):
        talk.step(f"result {n} " * 30, said="Next.")
        made = _planned(talk, knobs)
        breaks += made.broke is Cause.GROWN
        resident.append(
            sum(
                Spot(line.chain, WHOLE) not in made.shown
                for line in talk.lines
                if line.role is Role.ASSISTANT
            )
        )
        talk.sent(made)

    assert max(resident) == 10
    assert min(resident[12:]) == 5
    assert breaks <= 40 / 5
    stubs = [row.text.decode() for row in talk.table.shown.values() if row.text]
    assert all(re.match(r"\[CTX-REF:\w+ \| turns ", text) for text in stubs)
    assert "1. Next. [run]" in stubs[0]


@pytest.mark.row("C2")
def test_the_same_result_again_points_to_the_first_and_a_changed_one_shows_what_changed():
    first = code(30)
    changed = first.replace("def f_7(a, b)", "def f_7(a, b, c)")
    talk = (
        Talk()
        .user("Look.")
        .step(first, path="a.py")
        .step("ok", path="x")
        .step(first, path="b.py")
        .step(changed, path="a.py")
    )

    made = _planned(talk, Knobs())

    same, other = (made.shown[Spot(talk.lines[index].chain, 0)] for index in (6, 8))
    assert (same.form, other.form) == (Form.ECHO, Form.CHANGE)
    assert content_id(first.encode()) in same.text.decode()
    assert "-def f_7(a, b):" in other.text.decode()
    assert "+def f_7(a, b, c):" in other.text.decode()
    assert content_id(changed.encode()) in other.text.decode()


def test_a_result_is_not_said_to_stand_above_where_it_has_left():
    talk = Talk().user("Look.").step(code(30), path="a.py")
    for _ in range(6):
        talk.step("ok " * 200)
    gone = _planned(talk, Knobs(keep=1, most=2, early=False))
    assert gone.stubs
    talk.sent(gone).step(code(30), path="a.py")

    made = _planned(talk, Knobs(keep=1, most=9, early=False))

    assert made.shown[Spot(talk.lines[-1].chain, 0)].form is Form.FULL


def test_what_was_sent_whole_before_we_knew_it_stays_whole():
    talk = Talk().user("Look.").step(code(400))
    talk.sent(_planned(talk, structs.replace(Knobs(), limit=NEVER, limits={})))
    talk.table = replace(talk.table, shown={})

    made = _planned(talk.step(code(400, "g")), Knobs(limits={}))

    assert [row.spot.chain for row in made.fresh] == [talk.lines[-1].chain]


def test_pinned_messages_stay_and_kinds_that_are_spared_leave_last():
    talk = Talk().user("Do it.")
    for n in range(12):
        talk.step(f"result {n} " * 240, kind=Kind.PAPER if n < 2 else Kind.TOOL_RESULT)
    pin = talk.lines[8].chain
    knobs = Knobs(
        window=6000,
        low=0.5,
        keep=2,
        early=False,
        spared=frozenset({Kind.PAPER}),
        limit=NEVER,
        limits={},
    )

    orders = WindowOrders({Spot(pin, 0): (OrderAct.PIN, False)})
    made = _planned(talk, knobs, orders=orders)

    stays = [
        line.chain
        for line in talk.lines
        if line.role is Role.ASSISTANT and Spot(line.chain, WHOLE) not in made.shown
    ]
    assert made.stubs
    assert pin not in {spot.chain for stub in made.stubs for spot in stub.spots}
    assert talk.lines[3].chain in stays  # a paper, while younger results had to leave
    assert talk.lines[5].chain not in stays


def test_a_step_with_a_users_words_among_its_results_keeps_its_messages():
    talk = Talk().user("Do it.")
    talk.add(Role.ASSISTANT, piece(Kind.TOOL_CALL, "{}", "run", "c1"))
    talk.add(
        Role.USER,
        piece(Kind.TOOL_RESULT, "line of output\n" * 200, "run", "c1"),
        piece(Kind.PROMPT, "Stop that!"),
    )
    for _ in range(8):
        talk.step("ok " * 100)

    made = _planned(talk, Knobs(keep=2, most=3, early=False))

    mixed = talk.lines[2]
    assert Spot(mixed.chain, WHOLE) not in made.shown
    assert Spot(talk.lines[1].chain, WHOLE) not in made.shown
    assert made.shown[Spot(mixed.chain, 0)].form is Form.STUB
    assert Spot(mixed.chain, 1) not in made.shown


@pytest.mark.row("X3")
def test_pages_leave_early_only_where_the_price_says_that_it_pays():
    talk, early = Talk().user("Do it."), Knobs()
    for n in range(60):
        talk.step(code(50, f"k{n}"), said="Next.")
    talk.sent(_planned(talk, structs.replace(early, early=False)))
    talk.step("ok")

    assert _planned(talk, early).broke is Cause.PAYS
    free = replace(moment().price, read=0.0)
    assert plan(talk.lines, talk.table, (), early, replace(moment(), price=free)).broke is None
    idle = moment(now=1000.0 + 3600)
    assert plan(talk.lines, talk.table, (), early, idle).broke is Cause.COLD
    short = Talk().user("Do it.").step(code(50)).step(code(50, "g"))
    assert _planned(short.sent(_planned(short)), early).stubs == ()


@pytest.mark.row("C6")
@pytest.mark.slow
def test_a_thousand_pages_that_were_planned_before_are_not_looked_into_again():
    talk = Talk().user("Do it.")
    for n in range(500):
        talk.step(code(12, f"p{n}"))
    roomy = Knobs(window=2_000_000, early=False, limit=Limit(300, 200))
    talk.sent(_planned(talk, roomy))
    counted: list[bytes] = []

    def counting(text: bytes) -> int:
        counted.append(text)
        return len(text)

    made = plan(talk.step("ok").lines, talk.table, (), roomy, replace(moment(), count=counting))

    assert counted == []
    assert len(made.fresh) == 1
