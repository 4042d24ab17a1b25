"""Where things stand in a body's bytes, for any JSON and any spelling of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects.json_bytes import element_spans, fields, is_all_of, splice
from hotset.errors import Malformed
from hotset.nouns.message import Span
from tests.campaign import sample

_characters = st.characters(exclude_categories=("Cs",))
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(_characters, max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(_characters, max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
_styles = st.sampled_from(
    [
        {},
        {"indent": 1},
        {"separators": (" \n, ", "\t:\r ")},
        {"separators": (",", ":"), "ensure_ascii": False},
    ]
)


@settings(max_examples=sample(50, 120), deadline=None)
@given(tree=st.dictionaries(st.text(_characters, max_size=8), _values, max_size=6), style=_styles)
def test_every_field_is_found_where_its_value_stands(tree, style):
    body = json.dumps(tree, **style).encode()
    found = fields(body)
    assert list(found) == list(tree)
    for name, field in found.items():
        assert json.loads(body[field.key.start : field.key.end]) == name
        assert json.loads(body[field.value.start : field.value.end]) == tree[name]


@settings(max_examples=sample(50, 120), deadline=None)
@given(array=st.lists(_values, max_size=6), style=_styles, front=st.sampled_from([b"", b'{"a":']))
def test_every_element_is_found_and_they_are_known_to_be_all(array, style, front):
    body = front + json.dumps(array, **style).encode() + b" tail"
    span = Span(len(front), len(body) - 5)
    found = element_spans(body, span, "a")
    assert [json.loads(body[each.start : each.end]) for each in found] == array
    assert is_all_of(span, found, body)
    for index in range(len(found)):
        assert not is_all_of(span, found[:index] + found[index + 1 :], body)
    if len(found) > 1:
        assert not is_all_of(span, found[::-1], body)


@given(
    body=st.binary(max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    new=st.binary(max_size=5),
)
def test_splicing_changes_the_spans_and_nothing_else(body, cuts, new):
    cuts = sorted(min(cut, len(body)) for cut in cuts)
    spans = [Span(start, end) for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    expected, here = b"", 0
    for span in spans:
        expected += body[here : span.start] + new
        here = span.end
    assert splice(body, [(span, new) for span in reversed(spans)]) == expected + body[here:]


def test_splicing_nothing_gives_the_same_object_back():
    body = bytes(bytearray(b"body"))
    assert splice(body, []) is body


def test_edits_that_overlap_are_refused():
    with pytest.raises(ValueError, match="overlaps"):
        splice(b"0123456789", [(Span(0, 5), b""), (Span(4, 6), b"")])
    with pytest.raises(ValueError, match="leaves the body"):
        splice(b"0123", [(Span(2, 9), b"")])


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"a":[1],"\\u0061":[1,2]}',
        b'{"a":12,"b":0,"a":1}',
        b'{"a":1,"b":0,"a":12}',
    ],
)
def test_a_key_that_comes_twice_is_refused_however_it_is_spelled(body):
    with pytest.raises(Malformed, match="'a' comes twice"):
        fields(body)


def test_the_same_key_further_inside_is_no_ones_business():
    assert list(fields(b'{"a":{"b":1,"b":2}}')) == ["a"]
