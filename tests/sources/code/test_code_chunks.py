"""A file in stretches: nothing lost, nothing twice, nothing empty."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hotset.sources.code.chunks import LONGEST_ROW, MOST_CHARACTERS, MOST_ROWS, chunks, rows
from hotset.sources.code.parsers import Parsers
from hotset.sources.code.symbols import CodeSymbol
from hotset.text.languages import LANGUAGES

_lines = st.lists(
    st.sampled_from(
        ["", "  ", "a = 1", "    deep", "def f():", "x" * 200, "é", "y" * (LONGEST_ROW + 5)]
    ),
    max_size=300,
)


@st.composite
def _files(draw):
    lines = draw(_lines)
    spans = draw(st.lists(st.tuples(st.integers(1, 320), st.integers(1, 320)), max_size=40))
    symbols = [
        CodeSymbol(f"s{at}", "function", (), f"def s{at}()", first, last)
        for at, (first, last) in enumerate(spans)
    ]
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"])), symbols


@given(_files())
def test_chunks_are_the_text_again_and_none_is_empty(file) -> None:
    text, symbols = file
    every = rows(text)
    cut = chunks(text, symbols)
    if not text.strip():
        assert cut == ()
        return
    assert "".join(every.texts) == text
    assert [chunk.first for chunk in cut] == [0, *(chunk.end for chunk in cut[:-1])]
    assert cut[-1].end == len(every)
    for chunk in cut:
        assert every.text(chunk.first, chunk.end).strip()


@given(_files())
def test_no_chunk_is_longer_than_a_screen_but_for_empty_lines(file) -> None:
    text, symbols = file
    every = rows(text)
    for chunk in chunks(text, symbols):
        inside = list(every.texts[chunk.first : chunk.end])
        while not inside[-1].strip():
            inside.pop()
        while not inside[0].strip():
            inside.pop(0)
        assert len(inside) <= MOST_ROWS
        assert sum(map(len, inside)) <= MOST_CHARACTERS


def _function(name: str, size: int) -> str:
    return f"def {name}():\n" + "".join(f"    x{at} = {at}\n" for at in range(size - 1)) + "\n"


def _cut(text: str, parsers: Parsers):
    every = rows(text)
    return [
        ((every.lines[chunk.first], every.lines[chunk.end - 1]), chunk.title)
        for chunk in parsers.cut(text, LANGUAGES["python"]).result().chunks
    ]


def test_functions_of_some_length_stand_alone_and_small_ones_together(parsers: Parsers) -> None:
    text = _function("a", 20) + _function("b", 3) + _function("c", 3) + _function("d", 30)
    cut = _cut(text, parsers)
    assert [title for _, title in cut] == ["def a(); def b(); def c()", "def d()"]


def test_a_class_that_is_too_long_is_cut_between_its_methods_and_says_whose_they_are(
    parsers: Parsers,
) -> None:
    methods = "".join(
        "    " + line + "\n" for name in "abc" for line in _function(name, 30).splitlines()
    )
    cut = _cut(f"class K:\n{methods}", parsers)
    assert [title for _, title in cut] == ["K: class K; def a()", "K: def b()", "K: def c()"]


def test_a_function_that_is_too_long_is_cut_at_its_empty_lines_and_each_part_has_its_title(
    parsers: Parsers,
) -> None:
    text = "def long():\n" + "".join(
        f"    x{at} = {at}\n" + ("\n" if at % 10 == 9 else "") for at in range(150)
    )
    cut = _cut(text, parsers)
    assert {title for _, title in cut} == {"def long()"}
    assert all(text.split("\n")[first - 2] == "" for (first, _), _ in cut[1:])


def test_a_comment_stays_with_what_it_is_about(parsers: Parsers) -> None:
    text = _function("a", 25) + "\n# about b\n# and more\n@decorated\n" + _function("b", 25)
    first = next(lines[0] for lines, title in _cut(text, parsers) if title == "def b()")
    assert text.split("\n")[first - 1] == "# about b"


def test_empty_lines_behind_everything_belong_to_the_last_chunk(parsers: Parsers) -> None:
    text = _function("a", 58) + "\n" * 30
    assert _cut(text, parsers) == [((1, text.count("\n")), "def a()")]


def test_the_same_text_is_cut_the_same_way(parsers: Parsers) -> None:
    text = "".join(_function(f"f{at}", at % 37 + 1) for at in range(60))
    assert _cut(text, parsers) == _cut(text, parsers)
