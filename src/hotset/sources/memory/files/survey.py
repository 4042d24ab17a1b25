"""The index and the timeline of an export, gathered while memories pass by. Pure."""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

from hotset.nouns.memory import Checkpoint, Episode, Memory
from hotset.sources.memory.files.kinds import EPISODE, MARK
from hotset.sources.memory.files.loki_items import Item, iso_day, iso_time

FORMAT = 1
VERSION = "1.0"
"""Of the layout, as loki-mode counts."""

_TOPICS = 500  # in the index; further ones are found all the same
_RECENT = 20  # in the timeline


@dataclass(slots=True)
class _Topic:
    memories: int = 0
    tokens: int = 0
    last: float = 0.0
    title: str = ""


@dataclass(slots=True)
class Survey:
    count: int = 0
    tokens: int = 0
    last: float = 0.0
    topics: defaultdict[str, _Topic] = field(default_factory=lambda: defaultdict(_Topic))
    recent: list[tuple[float, str, Memory]] = field(default_factory=list)
    """The latest episodes, as a heap."""
    checkpoint: Memory | None = None

    def add(self, memory: Memory) -> None:
        self.tokens += memory.tokens
        self.last = max(self.last, memory.created, memory.time)
        for each in memory.topics:
            topic = self.topics[each]
            topic.memories += 1
            topic.tokens += memory.tokens
            if memory.created >= topic.last:
                topic.last, topic.title = memory.created, memory.title
        if memory.kind is EPISODE:
            heapq.heappush(self.recent, (memory.created, memory.id, memory))
            if len(self.recent) > _RECENT:
                heapq.heappop(self.recent)
        if isinstance(memory.detail, Checkpoint) and (self.checkpoint is None or memory.created >= self.checkpoint.created):
            self.checkpoint = memory

    def index(self) -> Item:
        most = max((topic.memories for topic in self.topics.values()), default=1)
        named = sorted(self.topics.items(), key=lambda each: (-each[1].memories, each[0]))[:_TOPICS]
        return {
            "version": VERSION,
            "last_updated": iso_time(self.last),
            "topics": [
                {
                    "id": name,
                    "summary": topic.title,
                    "relevance_score": round(topic.memories / most, 2),
                    "last_accessed": iso_time(topic.last),
                    "token_count": topic.tokens,
                }
                for name, topic in named
            ],
            "total_memories": self.count,
            "total_tokens_available": self.tokens,
            MARK: {"format": FORMAT},
        }

    def timeline(self) -> Item:
        recent = [memory for _, _, memory in sorted(self.recent, key=lambda each: each[:2], reverse=True)]
        checkpoint = (
            self.checkpoint.detail if self.checkpoint and isinstance(self.checkpoint.detail, Checkpoint) else Checkpoint()
        )
        decisions = [
            {"decision": said, "rationale": "", "date": iso_day(memory.created), "topic_id": _topic(memory)}
            for memory in recent
            if isinstance(memory.detail, Episode)
            for said in memory.detail.decisions
        ]
        return {
            "version": VERSION,
            "last_updated": iso_time(self.last),
            "recent_actions": [
                {
                    "timestamp": iso_time(memory.created),
                    "action": memory.title,
                    "outcome": memory.ending.value,
                    "topic_id": _topic(memory),
                }
                for memory in recent
            ],
            "key_decisions": decisions[:_RECENT],
            "active_context": {
                "current_focus": _topic(recent[0]) if recent else None,
                "blocked_by": list(checkpoint.blockers),
                "next_up": list(checkpoint.next),
            },
        }


def _topic(memory: Memory) -> str:
    return memory.topics[0] if memory.topics else ""
