"""Tools: found by asking, checked, run when they are called, offered to conversations, and let go when nothing uses them.

This is the room's public face. Each name is imported when it is first used: a start pays for none of them.
Read `toolbox.py` first; `found/` reads servers, skills and what agents wrote, `running/` starts and calls them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sources.tools.calls import USED as USED
    from hotset.sources.tools.calls import LostReplies as LostReplies
    from hotset.sources.tools.calls import PendingCall as PendingCall
    from hotset.sources.tools.calls import ToolCalls as ToolCalls
    from hotset.sources.tools.consent import ToolState as ToolState
    from hotset.sources.tools.consent import diff as diff
    from hotset.sources.tools.consent import readable as readable
    from hotset.sources.tools.deferral import Deferrals as Deferrals
    from hotset.sources.tools.deferral import found_by as found_by
    from hotset.sources.tools.found.clients import blank_comments as blank_comments
    from hotset.sources.tools.found.clients import decode_jsonc as decode_jsonc
    from hotset.sources.tools.found.clients import known_client_files as known_client_files
    from hotset.sources.tools.found.clients import read_client as read_client
    from hotset.sources.tools.found.servers import add_servers as add_servers
    from hotset.sources.tools.found.servers import remove_server as remove_server
    from hotset.sources.tools.graph import GraphSnapshot as GraphSnapshot
    from hotset.sources.tools.graph import render_dot as render_dot
    from hotset.sources.tools.graph import render_json as render_json
    from hotset.sources.tools.offers import NOTHING as NOTHING
    from hotset.sources.tools.offers import OfferDecision as OfferDecision
    from hotset.sources.tools.offers import OwnToolNames as OwnToolNames
    from hotset.sources.tools.offers import SessionOpening as SessionOpening
    from hotset.sources.tools.offers import ToolOffer as ToolOffer
    from hotset.sources.tools.offers import ToolOffers as ToolOffers
    from hotset.sources.tools.offers import beginning as beginning
    from hotset.sources.tools.offers import kept_offer as kept_offer
    from hotset.sources.tools.offers import own_tool_names as own_tool_names
    from hotset.sources.tools.offers import prompt_in as prompt_in
    from hotset.sources.tools.offers import weigh as weigh
    from hotset.sources.tools.registry import tier as tier
    from hotset.sources.tools.render import compact as compact
    from hotset.sources.tools.running.pool_thread import running_everywhere as running_everywhere
    from hotset.sources.tools.sweep import CYCLE as CYCLE
    from hotset.sources.tools.sweep import summary as summary
    from hotset.sources.tools.toolbox import Toolbox as Toolbox
    from hotset.sources.tools.toolbox import ToolLibrary as ToolLibrary
    from hotset.sources.tools.toolbox import ToolUse as ToolUse

_FACE = {
    "calls": ("USED", "LostReplies", "PendingCall", "ToolCalls"),
    "consent": ("ToolState", "diff", "readable"),
    "deferral": ("Deferrals", "found_by"),
    "found.clients": ("blank_comments", "decode_jsonc", "known_client_files", "read_client"),
    "found.servers": ("add_servers", "remove_server"),
    "graph": ("GraphSnapshot", "render_dot", "render_json"),
    "offers": (
        *("NOTHING", "OfferDecision", "OwnToolNames", "SessionOpening", "ToolOffer", "ToolOffers"),
        *("beginning", "kept_offer", "own_tool_names", "prompt_in", "weigh"),
    ),
    "registry": ("tier",),
    "render": ("compact",),
    "running.pool_thread": ("running_everywhere",),
    "sweep": ("CYCLE", "summary"),
    "toolbox": ("ToolLibrary", "ToolUse", "Toolbox"),
}
_HOMES = {name: module for module, names in _FACE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
