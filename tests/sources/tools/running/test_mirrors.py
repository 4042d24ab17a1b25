"""Arguments that a server wants to see in headers, held against the official SDK's own reading of
them."""

from hypothesis import given, settings, strategies as st
from mcp.shared import inbound

from hotset.sources.tools.running.mcp_client import header_value, mirror_headers, read_mirrors

MARKED = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "boolean", "number", "object", ["string"]])},
    optional={
        "x-mcp-header": st.sampled_from(["Region", "region", "Zone", "a b", "", 5]),
        "default": st.just({"x-mcp-header": "No"}),
    },
)
SCHEMAS = st.recursive(
    MARKED,
    lambda inner: st.one_of(
        st.builds(
            lambda one, two: {"type": "object", "properties": {"one": one, "two": two}},
            inner,
            inner,
        ),
        st.builds(lambda each: {"type": "array", "items": each}, inner),
        st.builds(lambda each: {"anyOf": [each]}, inner),
        st.builds(lambda each: {"$defs": {"each": each}}, inner),
        st.builds(lambda each: {"examples": [each]}, inner),
    ),
    max_leaves=6,
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.just([1]))
ARGUMENTS = st.recursive(
    VALUES,
    lambda inner: st.fixed_dictionaries({}, optional={"one": inner, "two": inner}),
    max_leaves=6,
)


@settings(deadline=None)
@given(SCHEMAS)
def test_a_schema_marks_what_the_official_client_finds_in_it(schema):
    expected = (
        inbound.x_mcp_header_map(schema)
        if inbound.find_invalid_x_mcp_header(schema) is None
        else None
    )
    assert read_mirrors(schema) == expected


@settings(deadline=None)
@given(SCHEMAS, ARGUMENTS.filter(lambda value: isinstance(value, dict)))
def test_the_headers_are_the_ones_that_the_official_server_expects(schema, arguments):
    marks = read_mirrors(schema)
    if marks:
        assert (
            inbound.validate_mcp_param_headers(schema, arguments, mirror_headers(marks, arguments))
            is None
        )


@settings(deadline=None)
@given(st.text())
def test_a_value_in_a_header_is_read_back_as_it_was(value):
    carried = header_value(value)
    assert carried.isascii()
    assert carried.isprintable()
    assert inbound.decode_header_value(carried) == value


def test_a_schema_that_is_nested_without_end_is_read_all_the_same():
    schema = {}
    for _ in range(10_000):
        schema = {"items": schema}
    assert read_mirrors(schema) == {}
