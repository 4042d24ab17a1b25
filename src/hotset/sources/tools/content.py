"""What a call gave, as text for a model; and values of Python as what a call gives. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from hotset.nouns.tool import Returned


def text_of(returned: Returned) -> str:
    """Every text of it. What is no text is told by its kind and size; a JSON value stands in where nothing else was said."""
    blocks = msgspec.json.decode(returned.content)
    told = [text for block in blocks if isinstance(block, dict) and (text := _told(block))]
    if not told and returned.structured is not None:
        told = [returned.structured.decode("utf-8", "replace")]
    return "\n".join(told)


def returned(value: object, *, failed: bool = False) -> Returned:
    """What a Python function gave back, as any other tool would say it."""
    if isinstance(value, Returned):
        return value
    if value is None:
        return Returned(b"[]", failed)
    if isinstance(value, str):
        return Returned(_blocks({"type": "text", "text": _encodable(value)}), failed)
    if isinstance(value, bytes):
        blob = {"uri": "data:,", "mimeType": "application/octet-stream", "blob": base64.b64encode(value).decode()}
        return Returned(_blocks({"type": "resource", "resource": blob}), failed)
    text = msgspec.json.encode(value, enc_hook=str)
    structured = text if text.startswith(b"{") else b'{"result":' + text + b"}"
    return Returned(_blocks({"type": "text", "text": text.decode()}), failed, structured)


def _told(block: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one case a kind of block
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return f"[{kind}, {block.get('mimeType', 'of unknown type')}, {len(data) * 3 // 4:,} bytes]"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return f"[resource, {resource.get('mimeType', 'of unknown type')}, {len(data) * 3 // 4:,} bytes]"
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
