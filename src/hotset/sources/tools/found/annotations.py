"""Type annotations as JSON schemas, read from syntax alone: nothing is imported, and a type that is
not known is any."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

# of one schema: names that stand for names that stand for names could make billions of one line
# each
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
