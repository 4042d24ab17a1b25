"""What stands in front of a SKILL.md."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given, settings, strategies as st

from hotset.errors import Malformed
from hotset.sources.tools.found.folders import read_frontmatter

FIELDS = st.dictionaries(
    st.from_regex(r"[a-z][a-z-]{0,10}", fullmatch=True),
    st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=60
    ).map(str.strip),
    min_size=1,
    max_size=5,
)


def head(text):
    return f"---\n{text}\n---\nThe body.\n"


def test_fields_and_body_are_told_apart():
    read = read_frontmatter(
        head("name: pdf\ndescription: >\n  Two\n  lines.\nmetadata:\n  version: 1.0\nlist: [a, b]")
    )
    assert read.fields == {
        "name": "pdf",
        "description": "Two lines.\n",
        "metadata": {"version": "1.0"},
        "list": ["a", "b"],
    }
    assert (read.body, read.troubles) == ("The body.\n", ())


@pytest.mark.parametrize(
    "value", ["1.0", "2024-01-01", "yes", "null", "0o17", "~", ".inf", "1_000"]
)
def test_a_value_is_text_as_it_was_written(value):
    assert read_frontmatter(head(f"a: {value}")).fields == {"a": value}


@settings(deadline=None)
@given(FIELDS)
def test_what_was_quoted_comes_back(fields):
    text = "\n".join(
        f"{key}: '{value.replace(chr(39), chr(39) * 2)}'" for key, value in fields.items()
    )
    read = read_frontmatter(head(text))
    assert (read.fields, read.troubles) == (fields, ())


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "description: Use when: the user asks\nname: x",
            {"description": "Use when: the user asks", "name": "x"},
        ),
        ("description: it's so: yes\n  and: on", {"description": "it's so: yes and: on"}),
        ("a: @x: y\nmetadata:\n  note: b: c", {"a": "@x: y", "metadata": {"note": "b: c"}}),
    ],
)
def test_a_colon_that_nobody_quoted_is_read_and_told(text, fields):
    read = read_frontmatter(head(text))
    assert read.fields == fields
    assert "quote" in read.troubles[0]


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter():
    read = read_frontmatter("\ufeff---\r\nname: x\r\n---  \r\nOne\r\nTwo\r\n")
    assert (read.fields, read.body) == ({"name": "x"}, "One\nTwo\n")


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("a: !!python/object/apply:os.system [id]", "tags"),
        ("a: !!python/name:os.system ''", "tags"),
        ("!!python/object:a.B {}", "tags"),
        ("a: !own x", "tags"),
        ("a: ! x", "tags"),
        ("a: !!str x", "tags"),
        ("a: &x 1\nb: *x", "anchors"),
        ("a: &x [lol]\nb: [*x, *x]", "anchors"),
        ("<<: *x", "anchors"),
        ("a: 1\na: 2", "twice"),
        ("? [a]\n: b", "key"),
        ("a: " + "[" * 9 + "]" * 9, "deeper"),
        ("[" * 60_000, "deeper"),
        ("a: " + "{b: " * 15_000, "deeper"),
        ("- a\n- b", "fields"),
        ("just text", "fields"),
        ("", "fields"),
        ("a: 'open", "end of stream"),
        ("a: \x00", "characters"),
        ("a: b\n--- \nc: d", ""),
        ("x" * 70_000, "shorten"),
    ],
)
def test_what_a_skill_does_not_need_is_refused_with_a_sentence(text, because):
    if because:
        with pytest.raises(Malformed, match=because):
            read_frontmatter(head(text))
    else:
        assert read_frontmatter(head(text)).body.startswith("c: d"), (
            "the second line of dashes ends it"
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no dashes",
        " ---\na: b\n---\n",
        "---\na: b\n",
        "----\na: b\n---\n",
        "\n---\na: b\n---\n",
    ],
)
def test_a_file_without_frontmatter_says_so(text):
    with pytest.raises(Malformed, match="---"):
        read_frontmatter(text)


@settings(deadline=None)
@given(st.text(max_size=200) | st.text("ab:-\n '\"[]{}&*!|>#%@`?,\t", max_size=200))
@example("\ud800: x")
@example('a: "\\ud800"')
@example("%YAML 1.1")
def test_nothing_but_malformed_is_ever_raised(text):
    with suppress(Malformed):
        assert isinstance(read_frontmatter(head(text)).fields, dict)
