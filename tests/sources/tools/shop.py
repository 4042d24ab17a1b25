"""Tools and sources for the tests of the catalogue."""

import json

from hotset.nouns.tool import OriginKind, Tool, ToolOrigin
from hotset.sources.tools.tool_names import full_name

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "Where it lies"}},
    "required": ["path"],
}


def server(name="files", **more):
    return ToolOrigin(name, OriginKind.SERVER, **more)


def tool(own, source="files", description="", parameters=None, origin=OriginKind.SERVER, **more):
    raw = json.dumps(SCHEMA if parameters is None else parameters, ensure_ascii=False).encode()
    said = description or f"Does what {own} says."
    return Tool(full_name(source, own), source, origin, own, said, raw, **more)


def tools_of(source, *owns):
    return [tool(own, source.name, origin=source.origin) for own in owns]
