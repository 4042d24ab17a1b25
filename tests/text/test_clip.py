"""What is cut keeps its room and says that it was cut."""

from hypothesis import given, strategies as st

from hotset.text.clip import clip, clip_prose, first_words


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_a_text_that_fits_stays_and_another_one_ends_with_a_mark(text, most):
    found = clip(text, most)
    assert len(found) <= most
    assert found == text if len(text) <= most else found == f"{text[: most - 1]}…"


@given(st.text("ab .!\n"), st.integers(min_value=3, max_value=40))
def test_prose_fits_its_room_in_one_line(text, most):
    found = clip_prose(text, most)
    assert len(found) <= most
    assert "\n" not in found
    assert found == " ".join(text.split()) or found.endswith(("…", "!", "."))


def test_prose_is_cut_behind_a_sentence_where_one_fits_and_between_words_elsewhere():
    assert clip_prose("Fix the parser. Then the writer of rows.", 20) == "Fix the parser."
    assert clip_prose("Fix the parser and the writer", 20) == "Fix the parser and…"


def test_the_first_words_are_told():
    assert first_words("a b  c", 3) == "a b c"
    assert first_words("a, b, c", 2) == "a, b…"
