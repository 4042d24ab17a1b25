"""The typed functions of a Python file as tools: names, descriptions and JSON schemas by parsing. The file is never imported."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hotset.sources.tools.found.annotations import Definitions, Schema, Schemas, definitions, with_default
from hotset.sources.tools.found.docstrings import Told, told, tool_names

_MOST_FUNCTIONS = 200  # of a file: nobody writes more by hand
_LONGEST_PROBLEM = 200


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
    """It says what it gives back."""
    foreign: tuple[str, ...] = ()
    """Parameters that must be given, and are of a type that JSON cannot say."""


@dataclass(frozen=True, slots=True)
class Script:
    functions: tuple[Function, ...] = ()
    description: str = ""
    """What the file's own docstring says."""
    trouble: str = ""
    """Why it, or a part of it, is not taken; empty if all is well."""


def functions(text: str) -> tuple[Function, ...]:
    """The public functions at the top of a file whose parameters all have a type; none of a file that cannot be read."""
    return read_script(text).functions


def read_script(text: str) -> Script:
    """Never raises: a file that cannot be parsed is told with the line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the file's own style
            module = ast.parse(text)
        return _script(module)
    except SyntaxError as error:
        return Script(trouble=f"line {error.lineno or 0}: {_plain(str(error.msg))}")
    except (ValueError, MemoryError, RecursionError) as error:
        return Script(trouble=f"it cannot be parsed as Python: {_plain(str(error)) or type(error).__name__}")


def own_names(scripts: Mapping[str, Script]) -> Mapping[tuple[str, str], str]:
    """What the host that serves these scripts calls each function, by script and function: its name, or `script.function`.

    `hotset.sources.tools.running.offered` has the same rule.
    """
    count = Counter(function.name for script in scripts.values() for function in script.functions)
    return {
        (name, function.name): function.name if count[function.name] == 1 else f"{name}.{function.name}"
        for name, script in scripts.items()
        for function in script.functions
    }


def _script(module: ast.Module) -> Script:
    about = told(ast.get_docstring(module) or "")
    known = definitions(module)
    depends = (*_declared(known), *about.depends)
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = node
            case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                found.pop(name, None)  # what is said last holds
    tools = [node for node in found.values() if _is_tool(node)]
    more = len(tools) - _MOST_FUNCTIONS
    return Script(
        tuple(_function(node, known, depends) for node in tools[:_MOST_FUNCTIONS]),
        _encodable(about.description),
        f"only its first {_MOST_FUNCTIONS} functions are taken, and not {more} more" if more > 0 else "",
    )


def _declared(known: Definitions) -> tuple[str, ...]:
    """`__depends__ = ["other__tool"]`."""
    value = known.aliases.get("__depends__")
    if not isinstance(value, ast.List | ast.Tuple):
        return ()
    texts = (each.value for each in value.elts if isinstance(each, ast.Constant) and isinstance(each.value, str))
    return tuple(name for text in texts for name in tool_names(text))


def _is_tool(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    takes = node.args
    if node.name.startswith("_") or takes.posonlyargs or takes.vararg or takes.kwarg:
        return False
    return all(each.annotation for each in (*takes.args, *takes.kwonlyargs))


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, known: Definitions, depends: tuple[str, ...]) -> Function:
    about = told(ast.get_docstring(node) or "")
    parameters, foreign = _parameters(node.args, about, known)
    return Function(
        node.name,
        _encodable(about.description),
        json.dumps(parameters, separators=(",", ":")).encode(),
        node.lineno,
        tuple(dict.fromkeys((*depends, *about.depends))),
        node.returns is not None,
        foreign,
    )


def _parameters(takes: ast.arguments, about: Told, known: Definitions) -> tuple[Schema, tuple[str, ...]]:
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
            schema["description"] = _encodable(about.parameters[each.arg])
        if default is None:
            required.append(each.arg)
            foreign += [each.arg] if len(schemas.unknown) > met else []
        elif found := schemas.default(default):
            schema = with_default(schema, found[0])
        properties[each.arg] = schema
    whole: Schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {**whole, "$defs": schemas.defs} if schemas.defs else whole, tuple(foreign)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _plain(text: str) -> str:
    """On one line, and not longer than a sentence."""
    return re.sub(r"\s+", " ", text)[:_LONGEST_PROBLEM]
