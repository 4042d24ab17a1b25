"""hotset inside a program: `hotset.open`, `hotset.wrap`, and windows. The walk is the proxy's own."""

from hotset.surfaces.library.memory import AsyncMemory, Memory, open, wrap  # noqa: A004 - `hotset.open`, like `gzip.open`
from hotset.surfaces.library.window import AsyncWindow, Said, ToolCall, Window

__all__ = ["AsyncMemory", "AsyncWindow", "Memory", "Said", "ToolCall", "Window", "open", "wrap"]
