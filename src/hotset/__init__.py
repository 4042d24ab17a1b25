"""hotset: virtual memory for LLM agents. Each name is imported when it is first used: importing
hotset costs nothing."""

TYPE_CHECKING = False  # as in `typing`, without importing it

if TYPE_CHECKING:
    from hotset.errors import HotsetError
    from hotset.surfaces.library import (
        AgentWindow,
        AsyncAgentWindow,
        AsyncMemory,
        AsyncWindow,
        Memory,
        ToolCall,
        Window,
        WindowReply,
        open,  # noqa: A004
        wrap,
    )
else:

    def __getattr__(name: str) -> object:
        from importlib import import_module  # noqa: PLC0415 - loaded on demand

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(
            import_module("hotset.errors" if name == "HotsetError" else "hotset.surfaces.library"),
            name,
        )


__version__ = "0.1.0"

__all__ = [
    "AgentWindow",
    "AsyncAgentWindow",
    "AsyncMemory",
    "AsyncWindow",
    "HotsetError",
    "Memory",
    "ToolCall",
    "Window",
    "WindowReply",
    "__version__",
    "open",
    "wrap",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
