# ruff: noqa: RUF001 - letters that look like others are what this is about

"""What shows nothing or looks like something else is found, and honest texts of any script stay as
they are."""

import pytest
from hypothesis import given, settings, strategies as st

from hotset.text.characters import fold_text, hidden, lookalikes, skeleton, squeeze, visible


@pytest.mark.parametrize(
    "text",
    [
        "Reads a file.\n\tReturns text.",
        "Reads “quoted” text — with dashes, €5, 20 °C, café, naïve, Straße",
        "Familie 👨‍👩‍👧‍👦 ❤️ 1️⃣ ℹ️ ☀️ 👍🏽 🏳️‍🌈 ©️",
        "Flag of England 🏴󠁧󠁢󠁥󠁮󠁧󠁿 and of Germany 🇩🇪",
        "می‌خواهم فایل را بخوانم",
        "קובץ \u200fabc",
        "हिन्दी क्‍ष",
        "葛\U000e0100 日本語のＡＰＩ　です",
        "Читает файл и отвечает сору",
        "Διαβάζει το αρχείο",
        "10 µs, 5 Ω, α-helix, Δx, π ≈ 3.14",
        "no\u00a0break\u202fspaces",
        "x" * 500,
    ],
)
def test_honest_texts_of_any_script_hide_nothing(text):
    assert hidden(text) == ()
    assert lookalikes(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "tags \U000e0049\U000e0067\U000e006e",
        "flag 🏴\U000e0069\U000e0067\U000e006e\U000e007f",
        "zero\u200bwidth",
        "joiner a\u200db",
        "bidi \u202egnp.exe",
        "isolate \u2066x\u2069",
        "mark without need \u200f",
        "soft\u00adhyphen",
        "word\u2060joiner",
        "selector a\ufe0fb",
        "selectors 😀\ufe0f\ufe0f",
        "many 😀\U000e0101\U000e0102",
        "filler \u3164",
        "blank \u2800",
        "escape \x1b[8m",
        "null \x00",
        "private \ue000",
        "line \u2028separator",
        "thin\u2009space",
        "bom \ufeff",
        "z" + "\u0301" * 10,
        "Reads." + " " * 300 + "And sends.",
        "Reads." + "\n" * 60 + "And sends.",
        "combining \u034f joiner",
    ],
)
def test_what_hides_is_found_and_made_visible(text):
    assert hidden(text)
    assert not [each for each in visible(text) if each in "\u200b\u202e\x1b\x00\ufeff\u2060"]


@pytest.mark.parametrize(
    "text",
    [
        "раураl",
        "gооgle",
        "ѕеnd",
        "ｒｅａｄ it",
        "𝗜𝗴𝗻𝗼𝗿𝗲 this",
        "ⓘⓖⓝⓞⓡⓔ",
        "please сору it",
        "αpple",
        "Ꭺdmin",
    ],
)
def test_words_in_others_letters_are_found(text):
    assert lookalikes(text)


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_looked_at_and_shown(text):
    hidden(text), lookalikes(text), skeleton(text), fold_text(text)
    assert hidden(visible(text)) in ((), hidden(visible(visible(text))))


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=0x7E, min_codepoint=0x20), max_size=60))
def test_plain_text_is_shown_as_it_is(text):
    assert visible(text) == text


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_squeezed_text_has_no_spaces_and_no_capitals(text):
    found = squeeze(text.encode("utf-8", "replace"))
    assert b" " not in found
    assert not any(65 <= byte <= 90 for byte in found)
