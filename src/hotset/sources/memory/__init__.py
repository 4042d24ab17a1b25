"""Memories: made from sessions, found again, shown step by step, kept in order. The words of a
session stay the source.

This is the face of the room: everything outside imports from here. A name is loaded when it is
first asked for, so that a start does not pay for numpy and tables of words.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sources.memory.consolidate.undo import RollbackPlan as RollbackPlan
    from hotset.sources.memory.encode.session import OUTCOME as OUTCOME
    from hotset.sources.memory.index import follow_memories as follow_memories
    from hotset.sources.memory.kinds import (
        DEFAULT_KIND as DEFAULT_KIND,
        KINDS as KINDS,
        NAMED_KINDS as NAMED_KINDS,
        PERSON as PERSON,
        WORDED_KINDS as WORDED_KINDS,
        ids_in as ids_in,
        is_memory_id as is_memory_id,
        kind_named as kind_named,
    )
    from hotset.sources.memory.recall.search import RecalledItem as RecalledItem
    from hotset.sources.memory.recall.time_words import time_words as time_words
    from hotset.sources.memory.reminders import (
        HOW as HOW,
        MemoryOffers as MemoryOffers,
        Reminder as Reminder,
        memory_hits as memory_hits,
        read_deposits as read_deposits,
        read_memory as read_memory,
    )
    from hotset.sources.memory.render.economics import (
        Breach as Breach,
        Economics as Economics,
        SessionEconomics as SessionEconomics,
    )
    from hotset.sources.memory.render.memories import (
        describe_commit as describe_commit,
        memory_heading as memory_heading,
        memory_text as memory_text,
    )
    from hotset.sources.memory.render.text import RenderedText as RenderedText
    from hotset.sources.memory.source import (
        MemoryDetails as MemoryDetails,
        MemorySource as MemorySource,
        RecallAnswer as RecallAnswer,
    )
    from hotset.sources.memory.upkeep import (
        EpisodeWriter as EpisodeWriter,
        MemoryUpkeep as MemoryUpkeep,
    )

_ROOMS = {
    "consolidate.undo": "RollbackPlan",
    "encode.session": "OUTCOME",
    "index": "follow_memories",
    "kinds": "DEFAULT_KIND KINDS NAMED_KINDS PERSON WORDED_KINDS ids_in is_memory_id kind_named",
    "recall.search": "RecalledItem",
    "recall.time_words": "time_words",
    "reminders": "HOW MemoryOffers Reminder memory_hits read_deposits read_memory",
    "render.economics": "Breach Economics SessionEconomics",
    "render.memories": "describe_commit memory_heading memory_text",
    "render.text": "RenderedText",
    "source": "MemoryDetails MemorySource RecallAnswer",
    "upkeep": "EpisodeWriter MemoryUpkeep",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    return value
