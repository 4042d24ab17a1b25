"""What a function gave or raised, as MCP tells it. Stdlib only, and for older Pythons, too."""

# ruff: noqa: PTH100, PTH120 - as few imports as can be before the first answer

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping

TYPE_CHECKING = False  # typing takes longer to import than most of what is called here takes to run
if TYPE_CHECKING:
    from typing import Any

_LONGEST = 4_000  # characters of a traceback
_DEEPEST = 100  # beyond it a value is told as Python would print it
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_OURS = (os.path.dirname(os.path.abspath(__file__)) + os.sep, "<frozen ")


def told(value: Any) -> dict[str, Any]:
    """Text as it is, nothing as nothing, bytes as a picture or blob, everything else as JSON: as text and as a value."""
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [_text(value)]}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"content": [_blob(bytes(value))]}
    plain = _plain(value)
    said = {"content": [_text(plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False))]}
    if isinstance(plain, dict):
        return {**said, "structuredContent": plain}
    if isinstance(plain, list):
        return {**said, "structuredContent": {"result": plain}}  # the protocol wants an object
    return said


def failed(sentence: str) -> dict[str, Any]:
    return {"content": [_text(sentence)], "isError": True}


def raised(error: BaseException, folder: str) -> str:
    """The traceback without what is ours: the frames of the folder, and the one in which it was raised."""
    import traceback  # noqa: PLC0415 - most calls end well

    whole = traceback.TracebackException.from_exception(error)
    for each in _chain(whole, set()):
        shown = [frame for frame in each.stack if _is_within(frame.filename, folder)]
        last = each.stack[-1:]
        if last and last[0] not in shown and not last[0].filename.startswith(_OURS):
            shown += last
        each.stack = traceback.StackSummary.from_list(shown)
    text = "".join(whole.format()).strip()
    half = _LONGEST // 2 - 10
    return text if len(text) <= _LONGEST else f"{text[:half]}\n[...]\n{text[-half:]}"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _blob(content: bytes) -> dict[str, Any]:
    encoded = _base64(content)
    for magic, kind in _PICTURES:
        if content.startswith(magic):
            return {"type": "image", "data": encoded, "mimeType": kind}
    return {"type": "resource", "resource": {"uri": "result:bytes", "mimeType": "application/octet-stream", "blob": encoded}}


def _base64(content: bytes) -> str:
    import base64  # noqa: PLC0415 - few give bytes

    return base64.b64encode(content).decode()


def _plain(value: Any, depth: int = 0) -> Any:  # noqa: C901, PLR0911 - one case a kind of value
    if hasattr(value, "__members__") or depth > _DEEPEST:
        return str(value)
    if _is_enum(value):
        return _plain(value.value, depth + 1)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None  # JSON has no word for it
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _base64(bytes(value))
    fields = _fields(value)
    if fields is not None:
        return {name: _plain(each, depth + 1) for name, each in fields.items()}
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(_plain(key)): _plain(each, depth + 1) for key, each in value.items()}
    for way in ("isoformat", "tolist", "to_dict"):  # dates; arrays and numbers of numpy; tables of pandas
        if callable(getattr(value, way, None)):
            return _plain(getattr(value, way)(), depth + 1)
    if isinstance(value, (Collection, Iterator)):
        return [_plain(each, depth + 1) for each in value]
    return str(value)


def _is_enum(value: Any) -> bool:
    return hasattr(type(value), "__members__") and hasattr(value, "value")


def _fields(value: Any) -> dict[str, Any] | None:
    """Of a dataclass, a named tuple, or a record of pydantic, msgspec or attrs."""
    kind = type(value)
    if callable(getattr(kind, "model_dump", None)):
        return dict(value.model_dump())
    names: Iterable[str] | None = None
    if hasattr(kind, "__dataclass_fields__"):
        names = [each.name for each in sys.modules["dataclasses"].fields(value)]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [each.name for each in kind.__attrs_attrs__]
    elif hasattr(kind, "__struct_fields__"):
        names = kind.__struct_fields__
    elif isinstance(value, tuple):
        names = getattr(kind, "_fields", None)
    return None if names is None else {name: getattr(value, name) for name in names}


def _chain(error: Any, seen: set[int]) -> Iterator[Any]:
    """A traceback with those that it came from, and those that it holds."""
    if id(error) not in seen:
        seen.add(id(error))
        yield error
        for other in (error.__cause__, error.__context__, *(getattr(error, "exceptions", None) or ())):
            if other is not None:
                yield from _chain(other, seen)


def _is_within(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep) and f"{os.sep}site-packages{os.sep}" not in path
