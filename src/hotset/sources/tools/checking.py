"""Arguments against a schema. (Stands in until the real one is here: overwrite it.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hotset.nouns.tool import Tool


def check(tool: Tool, arguments: Mapping[str, Any]) -> str:  # noqa: ARG001
    return ""


def compact(tool: Tool, *, max_tokens: int = 400) -> str:  # noqa: ARG001
    return f"{tool.name}: {tool.description} {tool.parameters.decode()}"


def read_arguments(value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = msgspec.json.decode(value or "{}")
    return dict(value) if isinstance(value, dict) else {}
