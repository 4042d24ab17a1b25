"""The typed functions of a Python file as tools: names, descriptions and JSON schemas by parsing.
The file is never imported.

Docstrings are read in the styles of Google, NumPy and Sphinx.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc

from hotset.sources.tools.found.annotations import (
    Definitions,
    Schema,
    Schemas,
    definitions,
    encodable,
    with_default,
)
from hotset.sources.tools.running.host_calls import tool_functions

_MOST_FUNCTIONS = 200  # of a file: more are not written by hand
_LONGEST_PROBLEM = 200

_LONGEST = (
    4000  # characters of a description: what a model reads before it has even chosen the tool
)
_LONGEST_PARAMETER = 1000
_PARAMETERS = (
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
)
_SECTIONS = (
    *_PARAMETERS,
    "returns",
    "return",
    "yields",
    "raises",
    "example",
    "examples",
    "attributes",
    "see also",
    "references",
)
_GOOGLE_HEAD = re.compile(r"([A-Za-z][A-Za-z ]{2,20}):\s*")
_UNDERLINE = re.compile(r"\s*-{3,}\s*")
_GOOGLE_NAME = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)\n]{0,200}\))?\s*:(?:\s+(.*)|$)")
_NUMPY_NAMES = re.compile(r"(\w+(?:\s*,\s*\w+)*)(?:\s*:.*)?")
_SPHINX = re.compile(r"[:@]param(?:eter)?\s+(?:[^:\n]{0,200}\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SPHINX_FIELD = re.compile(
    r"[:@](?:param|parameter|type|returns?|rtype|raises?|yields?)\b[^:\n]{0,200}:"
)
_DEPENDS = re.compile(r"\s*depends(?: on)?:\s*(.+)", re.IGNORECASE)
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Function:
    """A function that can be called with named arguments of known types."""

    name: str
    description: str
    parameters: bytes
    """A JSON schema."""
    line: int
    depends: tuple[str, ...] = ()
    returns: bool = False
    """It has a return annotation."""
    foreign: tuple[str, ...] = ()
    """Required parameters of a type that JSON cannot express."""


@dataclass(frozen=True, slots=True)
class Script:
    functions: tuple[Function, ...] = ()
    description: str = ""
    """The file's own docstring."""
    trouble: str = ""
    """Why it, or a part of it, is not taken; empty if all is well."""


def read_script(text: str) -> Script:
    """The public functions at the top of a file whose parameters all have a type.

    Never raises: of a file that cannot be parsed, `trouble` names the line.
    """
    try:
        return _script(*tool_functions(text))
    except SyntaxError as error:
        return Script(trouble=f"line {error.lineno or 0}: {_plain(str(error.msg))}")
    except (ValueError, MemoryError, RecursionError) as error:
        return Script(
            trouble=f"it cannot be parsed as Python: {_plain(str(error)) or type(error).__name__}"
        )


def own_names(scripts: Mapping[str, Script]) -> Mapping[tuple[str, str], str]:
    """The name of each function in the host of these scripts, by script and function: its name, or
    `script.function`.

    `ScriptFunctions` of `hotset.sources.tools.running.host_calls` has the same rule.
    """
    count = Counter(function.name for script in scripts.values() for function in script.functions)
    return {
        (name, function.name): function.name
        if count[function.name] == 1
        else f"{name}.{function.name}"
        for name, script in scripts.items()
        for function in script.functions
    }


def _script(module: ast.Module, tools: Sequence[ast.FunctionDef | ast.AsyncFunctionDef]) -> Script:
    about = parse_docstring(ast.get_docstring(module) or "")
    known = definitions(module)
    depends = (*_declared(known), *about.depends)
    more = len(tools) - _MOST_FUNCTIONS
    return Script(
        tuple(_function(node, known, depends) for node in tools[:_MOST_FUNCTIONS]),
        encodable(about.description),
        f"only its first {_MOST_FUNCTIONS} functions are taken, and not {more} more"
        if more > 0
        else "",
    )


def _declared(known: Definitions) -> tuple[str, ...]:
    """`__depends__ = ["other__tool"]`."""
    value = known.aliases.get("__depends__")
    if not isinstance(value, ast.List | ast.Tuple):
        return ()
    texts = (
        each.value
        for each in value.elts
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
    return tuple(name for text in texts for name in tool_names(text))


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, known: Definitions, depends: tuple[str, ...]
) -> Function:
    about = parse_docstring(ast.get_docstring(node) or "")
    parameters, foreign = _parameters(node.args, about, known)
    return Function(
        node.name,
        encodable(about.description),
        json.dumps(parameters, separators=(",", ":")).encode(),
        node.lineno,
        tuple(dict.fromkeys((*depends, *about.depends))),
        node.returns is not None,
        foreign,
    )


def _parameters(
    takes: ast.arguments, about: DocstringParts, known: Definitions
) -> tuple[Schema, tuple[str, ...]]:
    schemas = Schemas(known)
    without = len(takes.args) - len(takes.defaults)
    defaults: list[ast.expr | None] = [*([None] * without), *takes.defaults, *takes.kw_defaults]
    properties: dict[str, Schema] = {}
    required: list[str] = []
    foreign: list[str] = []
    for each, default in zip((*takes.args, *takes.kwonlyargs), defaults, strict=True):
        assert each.annotation is not None
        met = len(schemas.unknown)
        schema = schemas.of(each.annotation)
        if each.arg in about.parameters and "description" not in schema:
            schema["description"] = encodable(about.parameters[each.arg])
        if default is None:
            required.append(each.arg)
            foreign += [each.arg] if len(schemas.unknown) > met else []
        elif found := schemas.default(default):
            schema = with_default(schema, found[0])
        properties[each.arg] = schema
    whole: Schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return {**whole, "$defs": schemas.defs} if schemas.defs else whole, tuple(foreign)


def _plain(text: str) -> str:
    """On one line, and not longer than a sentence."""
    return re.sub(r"\s+", " ", text)[:_LONGEST_PROBLEM]


@dataclass(frozen=True, slots=True)
class DocstringParts:
    """The parts of a docstring."""

    description: str = ""
    """The text before the first section."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    """Names of tools, from a line `Depends: a, b`."""


def parse_docstring(docstring: str) -> DocstringParts:
    lines = cleandoc(docstring).splitlines()
    depends = tuple(
        name
        for line in lines
        if (match := _DEPENDS.fullmatch(line))
        for name in tool_names(match[1])
    )
    lines = [line for line in lines if not _DEPENDS.fullmatch(line)]
    prose = lines[
        : next((at for at in range(len(lines)) if _begins_section(lines, at)), len(lines))
    ]
    parameters: dict[str, str] = {}
    for name, text in (*_sphinx(lines), *_sections(lines)):
        parameters.setdefault(name, _one_line(text)[:_LONGEST_PARAMETER])
    return DocstringParts(
        "\n".join(prose).strip()[:_LONGEST],
        {name: text for name, text in parameters.items() if text},
        depends,
    )


def tool_names(text: str) -> tuple[str, ...]:
    """Names of tools in a list with commas."""
    return tuple(
        name for each in text.split(",") if _TOOL_NAME.fullmatch(name := each.strip().strip("`."))
    )


def _begins_section(lines: list[str], at: int) -> bool:
    line = lines[at]
    if line[:1].isspace():
        return False
    return bool(_section(lines, at)) or bool(_SPHINX_FIELD.match(line))


def _section(lines: list[str], at: int) -> str:
    """The name of the section that begins here, in small letters; empty where none does."""
    line = lines[at]
    if (match := _GOOGLE_HEAD.fullmatch(line)) and match[1].lower() in _SECTIONS:
        return match[1].lower()
    underlined = at + 1 < len(lines) and _UNDERLINE.fullmatch(lines[at + 1])
    return line.strip().lower() if underlined and line.strip().lower() in _SECTIONS else ""


def _sections(lines: list[str]) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(lines):
        name = "" if lines[at][:1].isspace() else _section(lines, at)
        at += 1
        if name not in _PARAMETERS:
            continue
        if at < len(lines) and _UNDERLINE.fullmatch(lines[at]):
            end = _end(lines, at + 1, indented=False)
            yield from _numpy(lines[at + 1 : end])
        else:
            end = _end(lines, at, indented=True)
            yield from _google(lines[at:end])
        at = end


def _end(lines: list[str], start: int, *, indented: bool) -> int:
    """Where a section ends: at the next one, or where its indentation does."""
    for at in range(start, len(lines)):
        line = lines[at]
        if line.strip() and not line[:1].isspace() and (indented or _begins_section(lines, at)):
            return at
    return len(lines)


def _google(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Entries are indented like the first one; deeper lines continue the last entry."""
    depth = next((_depth(line) for line in lines if line.strip()), 0)
    name, text = "", ""
    for line in lines:
        match = (
            _GOOGLE_NAME.fullmatch(line.strip()) if line.strip() and _depth(line) <= depth else None
        )
        if match is None:
            text += f" {line.strip()}"
            continue
        yield name, text
        name, text = match[1], match[2] or ""
    yield name, text


def _numpy(lines: list[str]) -> Iterator[tuple[str, str]]:
    names: list[str] = []
    text = ""
    for line in lines:
        if line[:1].isspace() or not line.strip():
            text += f" {line.strip()}"
            continue
        yield from ((name, text) for name in names)
        match = _NUMPY_NAMES.fullmatch(line.strip())
        names, text = [each.strip() for each in match[1].split(",")] if match else [], ""
    yield from ((name, text) for name in names)


def _sphinx(lines: list[str]) -> Iterator[tuple[str, str]]:
    name, text = "", ""
    for line in lines:
        match = _SPHINX.fullmatch(line.strip())
        if match or _SPHINX_FIELD.match(line.strip()) or not line.strip():
            yield name, text
            name, text = (match[1], match[2]) if match else ("", "")
        else:
            text += f" {line.strip()}"
    yield name, text


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _one_line(text: str) -> str:
    return " ".join(text.split())
