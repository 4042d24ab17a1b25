"""The typed functions of a Python file as tools: names, descriptions and JSON schemas, read from
syntax alone. The file is never imported, and a type that is not known is any.

Docstrings are read in the styles of Google, NumPy and Sphinx.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any

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

Schema = dict[str, Any]

# of one schema: aliases of aliases of one line each could expand to billions
_MOST_NODES = 2000
_NODE = 64  # characters of text that count as one
_DEEPEST = 40
_LARGEST_NUMBER = 2**63  # beyond it JSON readers differ
_PLAIN: Mapping[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "NoneType": {"type": "null"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "Path": {"type": "string", "format": "path"},
    "PurePath": {"type": "string", "format": "path"},
    "PathLike": {"type": "string", "format": "path"},
    "datetime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "timedelta": {"type": "string", "format": "duration"},
    "UUID": {"type": "string", "format": "uuid"},
    "Decimal": {"type": "string", "format": "decimal"},
}
_ARRAYS = frozenset(
    (
        "list",
        "List",
        "Sequence",
        "MutableSequence",
        "Iterable",
        "Iterator",
        "Collection",
        "deque",
        "Deque",
    )
)
_SETS = frozenset(("set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet"))
_TUPLES = frozenset(("tuple", "Tuple"))
_OBJECTS = frozenset(
    ("dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict")
)
_ANY = frozenset(("Any", "object", "JsonValue"))
_AS_INSIDE = frozenset(
    ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar", "Type", "InitVar")
)
_DATACLASS = frozenset(("dataclass", "define", "frozen", "mutable"))
_RECORD_BASES = frozenset(("TypedDict", "BaseModel", "Struct"))
_ENUM_BASES = frozenset(("Enum", "StrEnum", "IntEnum"))
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}


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


@dataclass(frozen=True, slots=True)
class Definitions:
    """The names of a file that its annotations may use."""

    classes: Mapping[str, ast.ClassDef] = field(default_factory=dict)
    aliases: Mapping[str, ast.expr] = field(default_factory=dict)
    imported: Mapping[str, str] = field(default_factory=dict)
    """From the name used here to the one it has where it comes from."""


def definitions(module: ast.Module) -> Definitions:
    classes: dict[str, ast.ClassDef] = {}
    aliases: dict[str, ast.expr] = {}
    imported: dict[str, str] = {}
    for node in module.body:
        match node:
            case ast.ClassDef(name=name):
                classes[name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                aliases[name] = value
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=kind, value=ast.expr() as value
            ) if _last(kind) == "TypeAlias":
                aliases[name] = value
            case ast.ImportFrom(names=names):
                imported |= {each.asname: each.name for each in names if each.asname}
    return Definitions(classes, aliases, imported)


class Schemas:
    """The schemas of one function's parameters; classes that they name are defined once, in
    `defs`."""

    def __init__(self, known: Definitions) -> None:
        self.defs: dict[str, Schema] = {}
        self.unknown: list[str] = []
        """Types that JSON cannot express, as far as the file shows."""
        self._known = known
        self._foreign: set[str] = set()
        """Classes of this file that have such a type in them."""
        self._left = _MOST_NODES

    def of(self, annotation: ast.expr, depth: int = 0) -> Schema:  # noqa: PLR0911 - one case a kind of annotation
        if depth > _DEEPEST or not self._spent(1):
            return {}
        match annotation:
            case ast.Constant(value=None):
                return dict(_PLAIN["None"])
            case ast.Constant(value=str(text)):
                return self._quoted(text, depth)
            case ast.Name() | ast.Attribute():
                return self._named(annotation, depth)
            case ast.BinOp(op=ast.BitOr()):
                return self._union(_alternatives(annotation), depth)
            case ast.Subscript(value=value, slice=inside):
                return self._generic(self._name(value), inside, depth)
        return {}

    def default(self, value: ast.expr) -> tuple[Any] | None:
        """The JSON value of a literal; None where it is none."""
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
            members = dict(self._members(value.value.id))
            return (members[value.attr],) if value.attr in members else None
        return _literal(value)

    def _spent(self, nodes: int) -> bool:
        """False where the schema would grow beyond all measure: the rest is any."""
        self._left -= nodes
        return self._left >= 0

    def _quoted(self, text: str, depth: int) -> Schema:
        try:
            return self.of(ast.parse(text.strip(), mode="eval").body, depth + 1)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return {}

    def _name(self, node: ast.expr) -> str:
        name = _last(node)
        return self._known.imported.get(name, name) if isinstance(node, ast.Name) else name

    def _named(self, node: ast.Name | ast.Attribute, depth: int) -> Schema:
        if isinstance(node, ast.Name):
            if node.id in self._known.classes:
                return self._class(node.id, depth)
            if node.id in self._known.aliases:
                return self._alias(self._known.aliases[node.id], depth)
        name = self._name(node)
        if name in _PLAIN:
            return dict(_PLAIN[name])
        if name in _ARRAYS or name in _TUPLES:
            return {"type": "array"}
        if name in _SETS:
            return {"type": "array", "uniqueItems": True}
        return {"type": "object"} if name in _OBJECTS else self._any(name)

    def _any(self, name: str) -> Schema:
        if name not in _ANY:
            self.unknown.append(name)
        return {}

    def _union(self, kinds: Iterable[ast.expr], depth: int) -> Schema:
        """Alternatives that JSON cannot express are left out where there are others."""
        before = len(self.unknown)
        known: list[Schema] = []
        for kind in kinds:
            met = len(self.unknown)
            schema = self.of(kind, depth + 1)
            if len(self.unknown) == met:
                known.append(schema)
        if known:
            del self.unknown[before:]
        return _any_of(known)

    def _alias(self, value: ast.expr, depth: int) -> Schema:
        if isinstance(value, ast.Call):  # NewType("UserId", int)
            return (
                self.of(value.args[1], depth + 1)
                if _last(value.func) == "NewType" and len(value.args) == 2
                else {}
            )
        return self.of(value, depth + 1)

    def _generic(self, name: str, inside: ast.expr, depth: int) -> Schema:  # noqa: PLR0911 - one case a kind of type
        parts = list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]
        if name == "Literal":
            return (
                self._enum([found[0] for each in parts if (found := self.default(each))])
                if self._spent(len(parts))
                else {}
            )
        if name == "Annotated":
            return self._annotated(parts, depth)
        if name == "Optional":
            return self._union([*parts[:1], ast.Constant(None)], depth)
        if name == "Union":
            return self._union(parts, depth)
        if name in _AS_INSIDE and parts:
            return self.of(parts[0], depth + 1)
        if name in _TUPLES:
            return self._tuple(parts, depth)
        if (name in _ARRAYS or name in _SETS) and parts:
            more = {"uniqueItems": True} if name in _SETS else {}
            return {"type": "array", "items": self.of(parts[0], depth + 1), **more}
        if name in _OBJECTS:
            return (
                {"type": "object", "additionalProperties": self.of(parts[1], depth + 1)}
                if len(parts) == 2
                else {"type": "object"}
            )
        return self._any(name)

    def _enum(self, values: list[Any]) -> Schema:
        unique = {json.dumps(value): value for value in values}
        if not unique or not self._spent(sum(len(text) // _NODE for text in unique)):
            return {}
        for kind, name in ((str, "string"), (bool, "boolean"), (int, "integer")):
            if all(type(value) is kind for value in unique.values()):
                return {"type": name, "enum": [*unique.values()]}
        return {"enum": [*unique.values()]}

    def _tuple(self, parts: list[ast.expr], depth: int) -> Schema:
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...:
            return {"type": "array", "items": self.of(parts[0], depth + 1)}
        items = [self.of(each, depth + 1) for each in parts]
        return (
            {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
            if items
            else {"type": "array"}
        )

    def _annotated(self, parts: list[ast.expr], depth: int) -> Schema:
        """`Annotated[int, "what it means"]`, `Annotated[int, Field(description="...", ge=0)]`,
        `Annotated[int, Doc("...")]`."""
        schema = self.of(parts[0], depth + 1) if parts else {}
        for extra in parts[1:]:
            match extra:
                case (
                    ast.Constant(value=str(text))
                    | ast.Call(args=[ast.Constant(value=str(text)), *_])
                ):
                    if self._spent(len(text) // _NODE):
                        schema.setdefault("description", encodable(text))
                case ast.Call(keywords=keywords):
                    found = _limits(keywords, schema)
                    if self._spent(len(json.dumps(found)) // _NODE):
                        schema |= found
        return schema

    def _class(self, name: str, depth: int) -> Schema:
        node = self._known.classes[name]
        bases = {self._name(base) for base in node.bases}
        if bases & _ENUM_BASES:
            return self._enum([value for _, value in self._members(name)])
        decorated = any(_last(each) in _DATACLASS for each in node.decorator_list)
        if (
            not decorated
            and not bases & _RECORD_BASES
            and not any(base in self._known.classes for base in bases)
        ):
            return self._any(name)
        if name not in self.defs:
            before = len(self.unknown)
            self.defs[name] = {}  # a placeholder while it is made: a class may name itself
            self.defs[name] = self._record(node, depth)
            self._foreign |= {name} if len(self.unknown) > before else set()
        elif name in self._foreign:
            self.unknown.append(name)
        return {"$ref": f"#/$defs/{name}"}

    def _record(self, node: ast.ClassDef, depth: int) -> Schema:
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for holder in self._lineage(node):
            total = not any(
                each.arg == "total" and _literal(each.value) == (False,) for each in holder.keywords
            )
            for line in holder.body:
                if (
                    not isinstance(line, ast.AnnAssign)
                    or not isinstance(line.target, ast.Name)
                    or _is_outside(line)
                ):
                    continue
                name = line.target.id
                properties[name] = self.of(line.annotation, depth + 1)
                needed = (
                    total and line.value is None and _outermost(line.annotation) != "NotRequired"
                )
                if (needed or _outermost(line.annotation) == "Required") and name not in required:
                    required.append(name)
                if line.value is not None and (found := self.default(line.value)):
                    properties[name] = with_default(properties[name], found[0])
        schema: Schema = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        if text := ast.get_docstring(node):
            schema["description"] = encodable(text.split("\n\n")[0])
        return schema

    def _lineage(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and its bases in this file, bases first."""
        line: list[ast.ClassDef] = []
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each not in line:
                line.append(each)
                waiting += [
                    self._known.classes[base]
                    for base in map(_last, each.bases)
                    if base in self._known.classes
                ]
        return line[::-1]

    def _members(self, name: str) -> Iterator[tuple[str, Any]]:
        """Of an enumeration, as far as their values can be read."""
        node = self._known.classes.get(name)
        if node is None or not self._spent(len(node.body)):
            return
        is_text = any(self._name(base) == "StrEnum" for base in node.bases)
        count = 0
        for line in node.body:
            match line:
                case ast.Assign(targets=[ast.Name(id=member)], value=ast.Call(func=function)) if (
                    _last(function) == "auto"
                ):
                    count += 1
                    yield member, member.lower() if is_text else count
                case ast.Assign(targets=[ast.Name(id=member)], value=value) if found := _literal(
                    value
                ):
                    count = found[0] if isinstance(found[0], int) else count
                    yield member, found[0]


def _last(node: ast.expr) -> str:
    """The name at the end: of `typing.List` it is `List`; of a call, what is called."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _last(function)
        case ast.Subscript(value=value):
            return _last(value)
    return ""


def _outermost(annotation: ast.expr) -> str:
    return _last(annotation) if isinstance(annotation, ast.Subscript) else ""


def _is_outside(line: ast.AnnAssign) -> bool:
    """A variable of the class, or a field that no caller gives."""
    if _last(line.annotation) == "ClassVar":
        return True
    return isinstance(line.value, ast.Call) and any(
        each.arg == "init" and _literal(each.value) == (False,) for each in line.value.keywords
    )


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    """Of `a | b | c`, in order; a chain can be thousands long."""
    found = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found.append(node.right)
        node = node.left
    yield node
    yield from reversed(found)


def _any_of(schemas: list[Schema]) -> Schema:
    flat: list[Schema] = []
    for schema in schemas:
        for each in schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]:
            if not each:
                return {}
            if each not in flat:
                flat.append(each)
    if len(flat) <= 1:
        return flat[0] if flat else {}
    return {"anyOf": flat}


def with_default(schema: Schema, value: Any) -> Schema:
    """`x: int = None` means that nothing may be given as well."""
    return {**(_or_null(schema) if value is None else schema), "default": value}


def _or_null(schema: Schema) -> Schema:
    null = dict(_PLAIN["None"])
    if (
        not schema
        or null in schema.get("anyOf", ())
        or schema.get("type") == "null"
        or None in schema.get("enum", ())
    ):
        return schema
    about = {key: schema[key] for key in ("description",) if key in schema}
    return {
        **_any_of([{key: value for key, value in schema.items() if key not in about}, null]),
        **about,
    }


def _limits(keywords: list[ast.keyword], schema: Schema) -> Schema:
    found: Schema = {}
    lengths = (
        ("minItems", "maxItems") if schema.get("type") == "array" else ("minLength", "maxLength")
    )
    names = {
        **_LIMITS,
        "min_length": lengths[0],
        "max_length": lengths[1],
        "description": "description",
    }
    for each in keywords:
        if each.arg in names and (value := _literal(each.value)) and value[0] is not None:
            found[names[each.arg]] = value[0]
    return found


def _literal(value: ast.expr) -> tuple[Any] | None:
    try:
        return (_as_json(ast.literal_eval(value)),)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _as_json(value: object) -> Any:
    """Raises `ValueError` for what JSON cannot express."""
    match value:
        case None | bool():
            return value
        case str():
            return encodable(value)
        case int() if abs(value) < _LARGEST_NUMBER:
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple():
            return [_as_json(each) for each in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {encodable(key): _as_json(each) for key, each in value.items()}
    raise ValueError


def encodable(text: str) -> str:
    """A lone surrogate is a character in Python and none in JSON."""
    return text.encode("utf-8", "replace").decode()
