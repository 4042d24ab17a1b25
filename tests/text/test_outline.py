"""What code defines is found by its lines alone."""

from hypothesis import given, strategies as st

from hotset.text.outline import (
    defined_names,
    definition_around,
    find_definitions,
    flatten,
    headings,
    outline,
    paragraphs,
    split_name,
)

PYTHON = [
    "import re",
    "",
    "class Parser:",
    "    # reads",
    "    @cached",
    "    def parse(self, text):",
    "        if text:",
    "            return text",
    "",
    "    def close(self): ...",
    "",
    "LIMIT = 3",
]
GO = [
    "func (s *Store) Keep(",
    "    page Page,",
    ") error {",
    "    return nil",
    "}",
    "",
    "type Page struct {",
    "    id string",
    "}",
]


def test_definitions_nest_as_they_are_indented_and_take_their_comments_along():
    found = [(block.name, block.first, block.head, block.end) for block in flatten(outline(PYTHON))]
    assert found == [("class Parser:", 2, 2, 10), ("parse", 3, 5, 8), ("close", 9, 9, 10)]


def test_a_definition_is_found_by_its_name_with_its_whole_body():
    assert find_definitions(PYTHON, "Parser.parse()") == [(4, 8)]
    assert find_definitions(PYTHON, "LIMIT") == [(12, 12)]
    assert find_definitions(GO, "Keep") == [(1, 5)]
    assert find_definitions(GO, "type Page") == [(7, 9)]
    assert find_definitions(GO, "Missing") == []


def test_a_line_stands_in_its_innermost_definition():
    assert definition_around(PYTHON, 8) == (4, 8)
    assert definition_around(PYTHON, 1) is None


def test_names_and_headings_are_listed_and_a_name_comes_apart_at_its_container():
    assert defined_names("\n".join(PYTHON)) == ["Parser", "parse", "close"]
    assert headings(["# One", "text", "## Two"]) == ["One", "Two"]
    assert split_name("Window::plan()") == ("Window", "plan")


_LINE = st.sampled_from(
    [
        "",
        "def f():",
        "    x = 1",
        "class A {",
        "}",
        "// note",
        "    def g(self):",
        "\tfn h() {",
        "text",
    ]
)


@given(st.lists(_LINE, min_size=1))
def test_blocks_lie_within_the_text_and_inner_ones_within_their_outer_one(lines):
    for block in flatten(outline(lines)):
        assert 0 <= block.first <= block.head < block.end <= len(lines)
        assert all(block.head < inner.head and inner.end <= block.end for inner in block.inner)


@given(st.lists(_LINE, min_size=1), st.integers(min_value=1, max_value=60))
def test_paragraphs_cover_every_line_once(lines, most):
    found = list(paragraphs(lines, 0, len(lines), most))
    assert [at for first, end in found for at in range(first, end)] == list(range(len(lines)))
