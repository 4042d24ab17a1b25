"""Memories: made from sessions, recalled, disclosed step by step and consolidated. Session pages
stay the source of truth.

The public interface of the room: everything outside imports from here. Names are loaded on first
use, so that start-up does not pay for numpy and word tables.

`source.py` is the source, `project_memories.py` the facade of everything else. `encode/` makes
memories from a session, `memory_writer.py` writes them, `recall.py` finds them (`recall_signals`,
`tasks`, `time_parser`), `days.py` lists those of a range of time, `memory_text.py` and `layers.py`
render them, `economics.py` measures their cost and savings. Upkeep: `supersede`, `patterns`,
`consolidation`, `usefulness`, `curation`. `exchange/` writes and reads files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sources.memory.consolidation import RollbackPlan as RollbackPlan
    from hotset.sources.memory.curation import (
        ReviewVerdict as ReviewVerdict,
        SkillDraft as SkillDraft,
        as_diff as as_diff,
    )
    from hotset.sources.memory.data_lines import RenderedText as RenderedText
    from hotset.sources.memory.days import (
        Standup as Standup,
        WorkDay as WorkDay,
        day_name as day_name,
        local_offset as local_offset,
        title_of as title_of,
    )
    from hotset.sources.memory.economics import (
        Breach as Breach,
        Economics as Economics,
        SessionEconomics as SessionEconomics,
    )
    from hotset.sources.memory.encode.encoder import (
        GoalWork as GoalWork,
        judge_session as judge_session,
    )
    from hotset.sources.memory.encode.session import (
        OUTCOME as OUTCOME,
        read_session as read_session,
    )
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
    from hotset.sources.memory.memory_text import (
        describe_commit as describe_commit,
        memory_heading as memory_heading,
        memory_text as memory_text,
    )
    from hotset.sources.memory.memory_writer import (
        REVIEW as REVIEW,
        follow_memories as follow_memories,
        run_name as run_name,
    )
    from hotset.sources.memory.project_memories import (
        MemoryDetails as MemoryDetails,
        MemoryTopic as MemoryTopic,
        ProjectMemories as ProjectMemories,
        RecallAnswer as RecallAnswer,
    )
    from hotset.sources.memory.recall import RecalledItem as RecalledItem
    from hotset.sources.memory.source import (
        HOW as HOW,
        EpisodeWriter as EpisodeWriter,
        MemorySource as MemorySource,
        Reminder as Reminder,
        read_deposits as read_deposits,
        read_memory as read_memory,
    )
    from hotset.sources.memory.time_parser import time_words as time_words

_ROOMS = {
    "consolidation": "RollbackPlan",
    "encode.encoder": "GoalWork judge_session",
    "encode.session": "OUTCOME read_session",
    "curation": "SkillDraft ReviewVerdict as_diff",
    "memory_writer": "REVIEW follow_memories run_name",
    "kinds": "DEFAULT_KIND KINDS NAMED_KINDS PERSON WORDED_KINDS ids_in is_memory_id kind_named",
    "recall": "RecalledItem",
    "time_parser": "time_words",
    "days": "Standup WorkDay day_name local_offset title_of",
    "economics": "Breach Economics SessionEconomics",
    "memory_text": "describe_commit memory_heading memory_text",
    "data_lines": "RenderedText",
    "project_memories": "MemoryDetails MemoryTopic ProjectMemories RecallAnswer",
    "source": "EpisodeWriter HOW MemorySource Reminder read_deposits read_memory",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    return value
