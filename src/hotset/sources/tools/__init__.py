"""Tools: found by asking, checked, run when they are called, offered to conversations, and let go
when nothing uses them.

This is the room's public face. Each name is imported when it is first used: a start pays for none
of them. Read `toolbox.py` first; `found/` reads servers, skills and what agents wrote, `running/`
starts and calls them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sources.tools.approval import (
        KnownTool as KnownTool,
        ToolState as ToolState,
        diff as diff,
        readable as readable,
    )
    from hotset.sources.tools.client_tools import (
        hand_over as hand_over,
        weigh_tools as weigh_tools,
    )
    from hotset.sources.tools.found.servers import (
        add_servers as add_servers,
        blank_comments as blank_comments,
        decode_jsonc as decode_jsonc,
        known_client_files as known_client_files,
        read_client as read_client,
        remove_server as remove_server,
    )
    from hotset.sources.tools.graph import (
        GraphSnapshot as GraphSnapshot,
        render_dot as render_dot,
        render_json as render_json,
    )
    from hotset.sources.tools.running.server_pool import (
        RunningServer as RunningServer,
        running_everywhere as running_everywhere,
    )
    from hotset.sources.tools.schemas import compact as compact
    from hotset.sources.tools.session_tools import (
        client_tool_name as client_tool_name,
        estimate_tokens as estimate_tokens,
        latest_tools as latest_tools,
        never_called as never_called,
    )
    from hotset.sources.tools.source import (
        USED as USED,
        ToolSource as ToolSource,
        beginning as beginning,
        kept_offer as kept_offer,
        weigh as weigh,
    )
    from hotset.sources.tools.sweep import CYCLE as CYCLE, LifeSummary as LifeSummary
    from hotset.sources.tools.toolbox import (
        Toolbox as Toolbox,
        ToolLibrary as ToolLibrary,
        ToolUse as ToolUse,
    )

_FACE = {
    "approval": ("KnownTool", "ToolState", "diff", "readable"),
    "client_tools": ("hand_over", "weigh_tools"),
    "session_tools": ("client_tool_name", "estimate_tokens", "latest_tools", "never_called"),
    "found.servers": (
        *("add_servers", "blank_comments", "decode_jsonc", "known_client_files", "read_client"),
        "remove_server",
    ),
    "graph": ("GraphSnapshot", "render_dot", "render_json"),
    "schemas": ("compact",),
    "running.server_pool": ("RunningServer", "running_everywhere"),
    "source": ("ToolSource", "USED", "beginning", "kept_offer", "weigh"),
    "sweep": ("CYCLE", "LifeSummary"),
    "toolbox": ("ToolLibrary", "ToolUse", "Toolbox"),
}
_HOMES = {name: module for module, names in _FACE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
