"""Typed functions of a file become tools by parsing alone."""

from __future__ import annotations

import json
import keyword

import jsonschema_rs
import pytest
from hypothesis import example, given, settings, strategies as st

from hotset.sources.tools.found.signatures import own_names, read_script

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name)
)
PLAIN = [
    "str",
    "int",
    "float",
    "bool",
    "None",
    "Any",
    "Path",
    "datetime",
    "'list[int]'",
    "np.ndarray",
    "Literal['a', 1, None]",
]
TYPES = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: (
        st.builds("list[{}]".format, inner)
        | st.builds("dict[str, {}]".format, inner)
        | st.builds("{} | {}".format, inner, inner)
        | st.builds("Optional[{}]".format, inner)
        | st.builds("tuple[{}, ...]".format, inner)
        | st.builds("Annotated[{}, 'about it']".format, inner)
    ),
    max_leaves=6,
)
DEFAULTS = st.none() | st.sampled_from(
    ["None", "1", "-2.5", "'text'", "[1, 2]", "{}", "Path('x')", "CONSTANT", "lambda: 0"]
)


@st.composite
def signatures(draw):
    """The parameters of a function: names, types, defaults, and how many of them are given by
    position."""
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    given_by_position = draw(st.integers(0, len(names)))
    parameters = [(name, draw(TYPES), draw(DEFAULTS)) for name in names]
    first, rest = parameters[:given_by_position], parameters[given_by_position:]
    first = [each for each in first if each[2] is None] + [
        each for each in first if each[2] is not None
    ]
    return first, rest


def written(name, first, rest):
    def one(parameter):
        called, kind, default = parameter
        return f"{called}: {kind}" + (f" = {default}" if default is not None else "")

    inside = ", ".join([*map(one, first), *(["*"] if rest else []), *map(one, rest)])
    return f"def {name}({inside}) -> None:\n    '''Does it.'''\n"


def schema(text, name="f"):
    return json.loads({each.name: each for each in read_script(text).functions}[name].parameters)


def kind(annotation, before=""):
    return schema(f"{before}\ndef f(x: {annotation}): ...")["properties"]["x"]


@settings(deadline=None)
@given(NAMES, signatures())
def test_a_functions_schema_has_its_parameters_and_requires_those_without_a_default(
    name, signature
):
    first, rest = signature
    (function,) = read_script(written(name, first, rest)).functions
    said = json.loads(function.parameters)
    assert (function.name, function.description, function.line) == (name, "Does it.", 1)
    assert list(said["properties"]) == [each[0] for each in (*first, *rest)]
    assert said["required"] == [each[0] for each in (*first, *rest) if each[2] is None]
    assert said["type"] == "object"
    assert said["additionalProperties"] is False
    jsonschema_rs.validator_for(said)


@settings(deadline=None)
@given(st.text(max_size=300) | st.text("def f(x: int) -> [str,'\n\t\"#=:|*/)", max_size=300))
@example("\0")
@example("def f(a: int): '\ud800'")
@example("x = " + "-" * 100_000 + "1")
@example("(" * 100_000)
@example("def f(a: int = 0x" + "f" * 9000 + "): ...")
@example("def f(a: float = 1e999): ...")
@example("def f(a: Literal['\\ud800'] = '\\ud800'): '\\ud800'")
@example("def f(a: list[" * 3000)
@example("def f(x: " + " | ".join(["int"] * 20_000) + "): ...")
def test_no_text_whatever_raises_anything(text):
    for function in read_script(text).functions:
        json.loads(function.parameters)
        function.description.encode()


def test_what_is_private_untyped_or_takes_anything_is_no_tool():
    text = """
def _private(a: int): ...
def untyped(a): ...
def half(a: int, b): ...
def many(*args: int): ...
def named(**kwargs: int): ...
def by_place(a: int, /): ...
def replaced(a: int): ...
replaced = 3
class Holder:
    def method(self, a: int): ...
if True:
    def inside(a: int): ...
def twice(a: int): ...
def twice(b: str): ...
async def later(a: int, *, b: str = "x"): ...
def nothing(): ...
"""
    assert [each.name for each in read_script(text).functions] == ["twice", "later", "nothing"]
    assert list(schema(text, "twice")["properties"]) == ["b"]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("str", {"type": "string"}),
        ("typing.List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("set[str]", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        ("dict[str, float]", {"type": "object", "additionalProperties": {"type": "number"}}),
        (
            "tuple[int, str]",
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Literal[True, 1, 'x', None]", {"enum": [True, 1, "x", None]}),
        ("Optional[int]", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (
            "int | str | None",
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        ),
        ("Union[int, Union[int, str]]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("int | Any", {}),
        ("pathlib.Path", {"type": "string", "format": "path"}),
        ("datetime.datetime", {"type": "string", "format": "date-time"}),
        ("date", {"type": "string", "format": "date"}),
        ("'list[\"int\"]'", {"type": "array", "items": {"type": "integer"}}),
        ("Annotated[int, 'how many']", {"type": "integer", "description": "how many"}),
        (
            "Annotated[int, Field(description='how many', ge=0, lt=9)]",
            {"type": "integer", "description": "how many", "minimum": 0, "exclusiveMaximum": 9},
        ),
        (
            "Annotated[list[str], Field(min_length=1)]",
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
        ("Sequence", {"type": "array"}),
        ("SomethingImported", {}),
        ("Callable[[int], str]", {}),
    ],
)
def test_an_annotation_says_what_may_be_given(annotation, expected):
    assert kind(annotation) == expected


def test_names_that_were_imported_under_others_and_aliases_are_understood():
    before = (
        "from typing import Literal as L, List as Many\nMode = "
        "L['r', 'w']\nModes = Many[Mode]\n"
        "User = NewType('User', int)\n"
    )
    assert kind("Modes", before) == {
        "type": "array",
        "items": {"type": "string", "enum": ["r", "w"]},
    }
    assert kind("User", before) == {"type": "integer"}


def test_enumerations_records_and_typed_dictionaries_of_the_same_file_are_understood():
    text = '''
class Color(enum.StrEnum):
    RED = "rot"
    BLUE = enum.auto()

@dataclass(frozen=True)
class Place:
    """A place on a map.

    And more."""
    x: float
    y: float = 0.0
    then: Place | None = None
    tags: list[str] = field(default_factory=list)
    count: ClassVar[int] = 0
    made: int = field(init=False)

@dataclass
class Town(Place):
    name: str = ""
    color: Color = Color.RED

class Options(TypedDict, total=False):
    deep: bool
    needed: Required[int]

def f(town: Town, options: Options, color: Color = Color.BLUE): ...
'''
    said = schema(text)
    town, options = said["$defs"]["Town"], said["$defs"]["Options"]
    assert said["properties"]["town"] == {"$ref": "#/$defs/Town"}
    assert list(town["properties"]) == ["x", "y", "then", "tags", "name", "color"]
    assert town["required"] == ["x"]
    assert town["properties"]["then"]["anyOf"][0] == {"$ref": "#/$defs/Place"}
    assert said["$defs"]["Place"]["description"] == "A place on a map."
    assert (list(options["properties"]), options["required"]) == (["deep", "needed"], ["needed"])
    assert said["properties"]["color"] == {
        "type": "string",
        "enum": ["rot", "blue"],
        "default": "blue",
    }


@pytest.mark.parametrize(
    "docstring",
    [
        """Merges files.

        In the order in which they come.

        Args:
            files (list[str]): Which ones,
                two at least.
            out: Where to.

        Returns:
            A path.
        """,
        """Merges files.

        In the order in which they come.

        Parameters
        ----------
        files : list of str
            Which ones,
            two at least.
        out
            Where to.

        Returns
        -------
        str
            A path.
        """,
        """Merges files.

        In the order in which they come.

        :param files: Which ones,
            two at least.
        :type files: list[str]
        :param str out: Where to.
        :returns: A path.
        """,
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_a_docstring_describes_the_function_and_its_parameters(docstring):
    (function,) = read_script(
        f"def f(files: list[str], out: str):\n    '''{docstring}'''\n"
    ).functions
    said = json.loads(function.parameters)["properties"]
    assert function.description == "Merges files.\n\nIn the order in which they come."
    assert said["files"]["description"] == "Which ones, two at least."
    assert said["out"]["description"] == "Where to."


def test_a_line_that_only_looks_like_another_parameter_goes_on_with_the_last():
    docstring = (
        "Does it.\n\n    Args:\n        a: One of these:\n            "
        "b: the second.\n        c: "
        "Other.\n    "
    )
    said = schema(f"def f(a: str, b: str, c: str):\n    '''{docstring}'''\n")["properties"]
    assert said["a"]["description"] == "One of these: b: the second."
    assert "description" not in said["b"]
    assert said["c"]["description"] == "Other."


def test_a_file_that_python_would_warn_of_is_read_without_a_word():
    assert [
        each.name for each in read_script("def f(a: str = '\\d', b: bool = 1 is 1): ...").functions
    ] == ["f"]


def test_a_function_says_what_other_tools_it_needs():
    text = '''"""A module.

Depends: git__log
"""
__depends__ = ["fs__read", "not a name"]

def f(a: int):
    """Does it.

    Depends: a__b, `c`
    """

def g(): ...
'''
    first, second = read_script(text).functions
    assert first.depends == ("fs__read", "git__log", "a__b", "c")
    assert second.depends == ("fs__read", "git__log")
    assert first.description == "Does it."
    assert read_script(text).description == "A module."


def test_a_parameter_of_a_type_that_json_cannot_say_is_told_unless_it_can_be_left_out():
    text = """
@dataclass
class Job:
    frame: DataFrame
class Own: ...
def f(a: Reader, b: list[Reader], c: Own, d: Job, e: Job, f: Callable[[int], int], g: int | Reader, h: Any, i: Reader = None): ...
"""  # noqa: E501
    (function,) = read_script(text).functions
    assert function.foreign == ("a", "b", "c", "d", "e", "f")
    assert schema(text)["properties"]["g"] == {"type": "integer"}


def test_a_default_of_none_says_that_nothing_may_be_given():
    kinds = {
        "a": "str",
        "b": "Annotated[int, 'x']",
        "c": "int | None",
        "d": "Any",
        "e": "Literal[1, None]",
    }
    text = f"def f({', '.join(f'{name}: {kind} = None' for name, kind in kinds.items())}): ..."
    said = schema(text)["properties"]
    null = {"type": "null"}
    assert said["a"] == {"anyOf": [{"type": "string"}, null], "default": None}
    assert said["b"] == {"anyOf": [{"type": "integer"}, null], "description": "x", "default": None}
    assert said["c"] == {"anyOf": [{"type": "integer"}, null], "default": None}
    assert said["d"] == {"default": None}
    assert said["e"] == {"enum": [1, None], "default": None}


def test_a_file_that_does_not_parse_is_told_with_its_line():
    script = read_script("def f(a: int):\n    return (\n")
    assert script.functions == ()
    assert script.trouble.startswith("line 2: ")


def test_a_file_is_never_run(tmp_path):
    mark = tmp_path / "ran"
    text = (
        f"open({str(mark)!r}, 'w').close()\nraise SystemExit(3)\ndef f(a: int = print('x')): ...\n"
    )
    assert [each.name for each in read_script(text).functions] == ["f"]
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"A{i} = list[A{i + 1}] | dict[str, A{i + 1}]" for i in range(60))
        + "\nA60 = int\ndef f(x: A0): ...",
        "A = Literal["
        + ",".join(f"'{i}'" for i in range(20_000))
        + "]\n"
        + "\n".join(f"def f{i}(a: A, b: A): ..." for i in range(200)),
        "A = Annotated[int, '"
        + "x" * 100_000
        + "']\ndef f("
        + ",".join(f"a{i}: A" for i in range(250))
        + "): ...",
        "\n".join(f"@dataclass\nclass C{i}:\n    a: C{i + 1}\n    b: C{i + 1}" for i in range(60))
        + "\ndef f(x: C0): ...",
        "\n".join(f"def f{i}(a: int): ..." for i in range(5000)),
    ],
    ids=["aliases", "literals", "descriptions", "classes", "functions"],
)
def test_a_bomb_of_types_stays_small(text):
    script = read_script(text)
    assert 1 <= len(script.functions) <= 200
    assert sum(len(each.parameters) for each in script.functions) < 500_000


def test_two_scripts_with_a_function_of_one_name_have_tools_of_two():
    one, two = read_script("def f(a: int): ...\ndef g(): ..."), read_script("def f(a: int): ...")
    assert own_names({"one": one, "two": two}) == {
        ("one", "f"): "one.f",
        ("one", "g"): "g",
        ("two", "f"): "two.f",
    }
