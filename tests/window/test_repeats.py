"""Which results repeat what the conversation had, and which of them could be pointed to."""

from __future__ import annotations

import pytest

from hotset.nouns.link import link
from hotset.nouns.message import Message, Part
from hotset.nouns.page import ROOT, Digest, Kind, Role
from hotset.nouns.window import Cause, Form, Shown, Spot
from hotset.window.repeats import NO_REPEATS, Repeats, repeats

LONG = b"a line of the file that was read\n" * 40
SHORT = b"ok"


def results(*contents: bytes) -> Message:
    parts = tuple(
        Part(Kind.FILE, each, tool="read", call=f"call_{n}") for n, each in enumerate(contents)
    )
    return Message(Role.USER, b"{}", parts, Digest(str(contents)))


def born(
    message: Message, forms: list[Form], cause: Cause = Cause.BIRTH
) -> tuple[list, list[Shown]]:
    links = list(link(ROOT, [message]))
    rows = [
        Shown(Spot(links[0].chain, at), form, b"", 1, 1, cause, 0.0)
        for at, form in enumerate(forms)
    ]
    return links, rows


@pytest.mark.parametrize(
    ("contents", "forms", "found"),
    [
        ([LONG], [Form.FULL], Repeats(0, 0)),
        ([LONG, LONG], [Form.FULL, Form.ECHO], Repeats(1, 1)),
        ([LONG, LONG + b"more"], [Form.FULL, Form.CHANGE], Repeats(1, 1)),
        ([LONG, LONG, LONG], [Form.EXCERPT, Form.EXCERPT, Form.FULL], Repeats(2, 0)),
        ([SHORT, SHORT], [Form.FULL, Form.FULL], Repeats(0, 0)),
        ([LONG, LONG + b"more"], [Form.FULL, Form.FULL], Repeats(0, 0)),
    ],
)
def test_a_result_repeats_what_was_said_word_for_word_or_points_to_what_it_was(
    contents, forms, found
):
    assert repeats(*born(results(*contents), forms)) == found


def test_what_left_later_was_not_born_again():
    assert repeats(*born(results(LONG, LONG), [Form.STUB, Form.STUB], Cause.OVERFLOW)) == NO_REPEATS
