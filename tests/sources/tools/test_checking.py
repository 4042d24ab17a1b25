"""Arguments held against a schema: what a model hears, and what a hostile schema cannot do."""

import json
import socket
import threading

import pytest
from hypothesis import given, settings, strategies as st
from shop import tool

from hotset.errors import Malformed
from hotset.sources.tools.schemas import check, compact, read_arguments
from hotset.tokens import count

WRITE = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where it is\nwritten."},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "mode": {"enum": ["r", "w"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "filter": {"$ref": "#/$defs/Filter"},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {
        "Filter": {
            "type": "object",
            "properties": {"by": {"type": "string"}},
            "required": ["by"],
            "additionalProperties": False,
        }
    },
}


def wrong(arguments, schema=WRITE):
    """Without the signature that follows."""
    return (
        check(tool("write", parameters=schema), arguments)
        .partition("\nCall it as: ")[0]
        .split("\n")
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a"},
        {"path": "a", "count": 3, "mode": "r", "tags": [], "note": None, "filter": {"by": "x"}},
    ],
)
def test_arguments_that_fit_are_not_spoken_of(arguments):
    assert check(tool("write", parameters=WRITE), arguments) == ""


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, ["path: required and missing"]),
        ({"path": "a", "count": "3"}, ['count: must be an integer, not "3"']),
        ({"path": 1}, ["path: must be a string, not 1"]),
        (
            {"pth": "a"},
            ['unknown argument "pth" (did you mean path?)', "path: required and missing"],
        ),
        ({"path": "a", "zzz": 1}, ['unknown argument "zzz"']),
        ({"path": "a", "mode": "x"}, ['mode: must be one of "r", "w", not "x"']),
        ({"path": "a", "tags": ["x", 1]}, ["tags[1]: must be a string, not 1"]),
        ({"path": "a", "note": 1}, ["note: must be a string or null, not 1"]),
        ({"path": "a", "filter": {}}, ["filter.by: required and missing"]),
        ({"path": "a", "filter": {"bye": 1, "by": "x"}}, ['filter: unknown argument "bye"']),
        ({"path": "a", "count": 0}, ["count: must be at least 1, not 0"]),
    ],
)
def test_a_model_hears_what_is_wrong(arguments, lines):
    assert wrong(arguments) == lines


def test_nothing_is_coerced():
    assert check(
        tool("t", parameters={"properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}}),
        {"n": "1", "b": "true"},
    )


def test_what_is_wrong_is_followed_by_how_the_tool_is_called():
    said = check(tool("write", parameters=WRITE), {})
    assert said.endswith(compact(tool("write", parameters=WRITE)))


def test_an_argument_that_was_misspelt_is_told_beside_what_is_missing_though_the_schema_lets_it_pass():  # noqa: E501
    schema = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert wrong({"pth": "a"}, schema) == [
        "path: required and missing",
        'unknown argument "pth" (did you mean path?)',
    ]
    assert wrong({"path": "a", "pth": 1}, schema) == [""]


def test_of_several_forms_the_nearest_is_told():
    schema = {
        "properties": {
            "to": {
                "oneOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"user": {"type": "object", "required": ["id"]}},
                        "required": ["user"],
                    },
                ]
            }
        }
    }
    assert wrong({"to": {"user": {}}}, schema) == ["to.user.id: required and missing"]
    assert wrong({"to": 3}, schema) == ["to: must be a string or an object, not 3"]


def test_many_mistakes_are_told_in_a_few_lines():
    schema = {"properties": {f"p{number}": {"type": "integer"} for number in range(50)}}
    lines = wrong({f"p{number}": "x" for number in range(50)}, schema)
    assert len(lines) == 9
    assert lines[-1].startswith("... and ")


def _nested(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def _doubling(levels):
    parts = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {"required": ["x"]}}}


def _chained(levels):
    parts = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {"required": ["x"]}}}


def _clique(many):
    names = [f"d{at}" for at in range(many)]
    parts = {
        name: {"allOf": [{"$ref": f"#/$defs/{other}"} for other in names if other != name]}
        for name in names
    }
    return {"$ref": "#/$defs/d0", "$defs": parts}


def _branching(many):
    again = {"properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["x"]}
    return {"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [again] * many}}}


def _deep(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"$ref": "#"}, {}),
        ({"$ref": "#/$defs/none"}, {}),
        ({"$dynamicRef": "#x"}, {}),
        (
            {"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "required": ["x"]},
            {},
        ),
        (
            {"$id": "http://a/b", "properties": {"a": {"$id": "c", "$ref": "#/properties/a"}}},
            {"a": 1},
        ),
        (_nested(300), {"a": 1}),
        (_doubling(40), {}),
        (_chained(200), {}),
        (_chained(5_000), {}),
        (_clique(12), {}),
        (_branching(20), _deep(30)),
        ({"properties": {"a": {"items": {"enum": list(range(20_000))}}}}, {"a": ["x"] * 20_000}),
        ({"properties": {"a": {"type": "string"}}}, {"a": _deep(500)}),
        ({"properties": {"a": {"pattern": r"^(?=a)(a|aa)+\1$"}}}, {"a": "a" * 60 + "!"}),
        ({"properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}}, {"a": "b"}),
        ({"properties": {"a": {"pattern": "("}}}, {"a": "b"}),
        ({"type": "frob"}, {}),
        ({"required": 7}, {}),
        ({"$schema": "http://evil.example/meta", "required": ["x"]}, {}),
        (
            {
                "properties": {f"p{at}": {"description": "x" * 1000} for at in range(300)},
                "required": ["x"],
            },
            {},
        ),
        ([], {}),
        (True, {}),
        ("text", {}),
    ],
)
def test_a_schema_that_cannot_be_checked_lets_the_call_pass(schema, arguments):
    hostile = tool("t", parameters=schema)
    assert (
        check(hostile, arguments) == ""
    )  # some of these would take a lifetime if nobody counted first
    assert compact(hostile)


@pytest.mark.parametrize(
    "schema",
    [
        _doubling(8),
        _chained(20),
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": _branching(2)["$defs"]["n"]}},
    ],
)
def test_references_inside_a_schema_are_followed_as_far_as_is_reasonable(schema):
    schema = json.loads(json.dumps(schema).replace("#/$defs/n", "#/$defs/Tree"))
    assert wrong({}, schema)[0] == "x: required and missing"


def test_a_pattern_that_others_choke_on_is_checked_in_linear_time():
    (line,) = wrong({"a": "a" * 4000 + "!"}, {"properties": {"a": {"pattern": "^(a+)+$"}}})
    assert line.startswith('a: must match "^(a+)+$", not "aaa')
    assert len(line) < 200


def test_no_schema_opens_a_connection_or_a_file(tmp_path):
    secret = tmp_path / "schema.json"
    secret.write_text('{"required": ["x"]}')
    knocks = []
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(5)
        url = f"http://127.0.0.1:{door.getsockname()[1]}/schema.json"

        def listen():
            knocks.append(door.accept())

        listener = threading.Thread(target=listen)
        listener.start()
        for schema in (
            {"$ref": url},
            {"$ref": secret.as_uri()},
            {"allOf": [{"$ref": url}]},
            {"$schema": url},
            {"$id": url, "$ref": "other.json"},
            {"$defs": {"a": {"$ref": url}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
            {"properties": {"x": {"$dynamicRef": url}}},
        ):
            assert check(tool("t", parameters=schema), {}) == ""
        socket.create_connection(door.getsockname()).close()  # ours is the first knock
        listener.join()
    (knock,) = knocks
    with knock[0] as heard:
        assert heard.recv(1) == b""


def test_values_that_are_no_json_are_the_tool_s_own_business():
    assert check(tool("write", parameters=WRITE), {"path": object()}) == ""


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=4
    )
)
def test_arguments_come_out_of_every_wrapping_as_they_went_in(arguments):
    plain = {f"x{key}": value for key, value in arguments.items()}
    text = json.dumps(plain)
    for given_ in (
        plain,
        text,
        json.dumps(text),
        {"arguments": plain},
        {"arguments": text},
        {"name": "t", "arguments": plain},
    ):
        assert read_arguments(given_) == plain


def test_an_argument_that_is_called_like_a_wrapper_stays_where_it_is():
    takes = tool(
        "run",
        parameters={
            "properties": {"arguments": {"type": "object"}, "tool_name": {"type": "string"}}
        },
    )
    assert read_arguments({"arguments": {"a": 1}}, takes) == {"arguments": {"a": 1}}
    assert read_arguments({"input": {"a": 1}}, tool("run")) == {"a": 1}
    assert read_arguments({"tool_name": "x", "path": "a"}, tool("run")) == {"path": "a"}
    assert read_arguments({"input": {"a": 1}, "path": "a"}, tool("run")) == {
        "input": {"a": 1},
        "path": "a",
    }


@pytest.mark.parametrize("value", ["nonsense", "[1]", 7, [1], '"text"', "{", b"\xff"])
def test_what_is_no_object_is_told_with_an_example(value):
    with pytest.raises(Malformed, match="such as"):
        read_arguments(value)


@pytest.mark.parametrize("value", [None, "", "  ", "{}", {}, "null"])
def test_no_arguments_are_no_arguments(value):
    assert read_arguments(value) == {}


def test_a_tool_is_told_as_a_signature():
    assert compact(tool("write", parameters=WRITE, description="Writes\n  a file.")) == (
        'files__write(path: string, count?: integer 1..9 = 3, mode?: "r" | "w", tags?: '
        "string[], note?: string | null, "
        "filter?: {by: string})\nWrites a file.\n- path: Where it is written."
    )


def test_the_signature_has_what_a_model_needs_of_odd_schemas():
    schema = {
        "properties": {
            "any": {},
            "odd name": {"type": "string", "format": "uri"},
            "map": {"type": "object", "additionalProperties": {"type": "number"}},
            "rows": {
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            },
            "kind": {"const": "x"},
            "many": {"type": ["string", "null"]},
            "tree": {"$ref": "#/$defs/Tree"},
        },
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            }
        },
    }
    told = compact(tool("t", parameters=schema)).split("\n")[0]
    assert told.startswith(
        'files__t(any?: any, "odd name"?: string (uri), map?: {[key]: number}, rows?: (string '
        '| integer)[], kind?: "x", '
        "many?: string | null, tree?: {below?: "
    )


_schemas = st.recursive(
    st.booleans()
    | st.sampled_from(
        [
            {},
            {"type": "string"},
            {"enum": [1, "a"]},
            {"$ref": "#"},
            {"$ref": "#/properties/a"},
            {"type": 3},
        ]
    ),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner).map(
            lambda each: {"type": "object", "properties": each}
        )
        | st.lists(inner, max_size=4).map(lambda each: {"anyOf": each})
        | inner.map(lambda each: {"type": "array", "items": each})
    ),
)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text(max_size=8), _schemas, max_size=12),
    st.text(max_size=400),
    st.integers(20, 400),
)
@pytest.mark.slow
def test_a_tool_never_takes_more_room_than_it_was_given_and_says_what_was_left_out(
    properties, said, room
):
    given_ = tool(
        "t",
        parameters={"type": "object", "properties": properties, "required": list(properties)[:2]},
        description=said,
    )
    told, whole = compact(given_, max_tokens=room), compact(given_, max_tokens=100_000)
    assert count(told) <= room
    assert told == compact(given_, max_tokens=room)
    assert told == whole or "[left out: " in told
    assert "[left out: " not in whole.replace(said, "")


def test_a_small_schema_that_unfolds_into_an_endless_one_is_told_in_bounded_room():
    parts = {
        f"d{at}": {"properties": {f"p{many}": {"$ref": f"#/$defs/d{at + 1}"} for many in range(20)}}
        for at in range(6)
    }
    schema = {
        "properties": {f"q{many}": {"$ref": "#/$defs/d0"} for many in range(100)},
        "$defs": parts,
    }
    assert len(compact(tool("t", parameters=schema), max_tokens=10**9)) < 100_000
