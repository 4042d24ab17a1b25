"""Functions of the program that imported us, as tools; and values of Python as what a call gives.

They run where they are: they belong to that program.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from hotset.errors import BadInput, Malformed
from hotset.nouns.tool import OriginKind, Returned, Tool, ToolOrigin
from hotset.sources.tools.tool_names import full_name, slug
from hotset.typed import convert, json_schemas

OURS = ToolOrigin("hotset", OriginKind.CALLABLE)
"""Where tools of our own come from."""

_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A function and how a model sees it."""

    tool: Tool
    function: Callable[..., Any]
    types: Mapping[str, Any]

    def call(self, arguments: Mapping[str, Any]) -> Returned:
        """Calls the function; an exception becomes a failed result. Not from a running event loop
        where the function is async."""
        given = self._converted(arguments)
        try:
            value = self.function(**given)
            return returned(asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value)
        except Exception as error:  # the program's own code: the model gets the error, and goes on
            return returned(f"{type(error).__name__}: {error}", failed=True)

    async def call_async(self, arguments: Mapping[str, Any]) -> Returned:
        given = self._converted(arguments)
        try:
            if inspect.iscoroutinefunction(self.function):
                return returned(await self.function(**given))
            value = await asyncio.to_thread(self.function, **given)
            return returned(await value if inspect.isawaitable(value) else value)
        except Exception as error:  # as in `call`
            return returned(f"{type(error).__name__}: {error}", failed=True)

    def _converted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {
                name: convert(value, self.types.get(name, Any), strict=False)
                for name, value in arguments.items()
            }
        except msgspec.ValidationError as error:
            raise Malformed(f"{self.tool.name}: {error}") from error


def bind_function(
    function: Callable[..., Any], source: ToolOrigin, *, name: str = "", description: str = ""
) -> BoundFunction:
    """A function with annotated parameters as a tool. Raises `BadInput` where it cannot be one, and
    says why."""
    own = name or getattr(function, "__name__", "")
    if not own.isidentifier():
        raise BadInput(f"{own!r} cannot be a tool's name: give it one with name=")
    try:
        signature, hints = (
            inspect.signature(function),
            get_type_hints(function, include_extras=True),
        )
    except (TypeError, ValueError, NameError) as error:
        raise BadInput(f"the parameters of {own} cannot be read: {error}") from error
    types: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind not in _KINDS or parameter.name not in hints:
            raise BadInput(
                f"{own}: parameter {parameter.name} needs a type, and to be given by name"
            )
        types[parameter.name] = hints[parameter.name]
    about = description or inspect.getdoc(function) or ""
    tool = Tool(
        full_name(source.name, own),
        source.name,
        source.origin,
        own,
        about,
        _schema(own, signature, types),
    )
    return BoundFunction(tool, function, types)


def program() -> ToolOrigin:
    """The source of this program's functions: named like its script, so that two programs do not
    collide."""
    return ToolOrigin(
        slug(
            Path(sys.argv[0]).stem if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "here"
        ),
        OriginKind.CALLABLE,
    )


def _schema(own: str, signature: inspect.Signature, types: Mapping[str, Any]) -> bytes:
    try:
        schemas, components = json_schemas(types.values())
    except TypeError as error:
        raise BadInput(f"{own}: a parameter's type cannot be told in JSON: {error}") from error
    properties = dict(zip(types, schemas, strict=True))
    for name, parameter in signature.parameters.items():
        if parameter.default not in (inspect.Parameter.empty, None):
            properties[name] = {
                **properties[name],
                "default": msgspec.to_builtins(parameter.default, enc_hook=str),
            }
    required = [
        name
        for name, each in signature.parameters.items()
        if each.default is inspect.Parameter.empty
    ]
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return msgspec.json.encode({**schema, "$defs": components} if components else schema)


async def _awaited(value: Any) -> Any:
    return await value


def text_of(returned: Returned) -> str:
    """All texts of a result. What is no text is described by kind and size; a JSON value is used
    where there is nothing else."""
    blocks = msgspec.json.decode(returned.content)
    texts = [text for block in blocks if isinstance(block, dict) and (text := _render_block(block))]
    if not texts and returned.structured is not None:
        texts = [returned.structured.decode("utf-8", "replace")]
    return "\n".join(texts)


def returned(value: object, *, failed: bool = False) -> Returned:
    """The value of a Python function as a tool's result."""
    if isinstance(value, Returned):
        return value
    if value is None:
        return Returned(b"[]", failed)
    if isinstance(value, str):
        return Returned(_blocks({"type": "text", "text": _encodable(value)}), failed)
    if isinstance(value, bytes):
        blob = {
            "uri": "data:,",
            "mimeType": "application/octet-stream",
            "blob": base64.b64encode(value).decode(),
        }
        return Returned(_blocks({"type": "resource", "resource": blob}), failed)
    text = msgspec.json.encode(value, enc_hook=str)
    structured = text if text.startswith(b"{") else b'{"result":' + text + b"}"
    return Returned(_blocks({"type": "text", "text": text.decode()}), failed, structured)


def _render_block(block: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one case a kind of block
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return (
                f"[{kind}, {block.get('mimeType', 'of unknown type')}, {len(data) * 3 // 4:,} "
                f"bytes]"
            )
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return (
                f"[resource, {resource.get('mimeType', 'of unknown type')}, "
                f"{len(data) * 3 // 4:,} bytes]"
            )
        case {"type": "resource_link", "uri": str(uri)}:
            return f"[resource {block.get('name', '')}: {uri}]"
        case {"type": str(kind)}:
            return f"[{kind[:40]}]"
    return ""


def _blocks(*blocks: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(blocks)


def _encodable(text: str) -> str:
    """A lone surrogate is a character in Python and none in UTF-8."""
    return text.encode("utf-8", "replace").decode()
