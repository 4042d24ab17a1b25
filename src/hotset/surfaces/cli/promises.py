"""The map of promises: everything hotset sets out to do, by id, and what of it works today.

A test holds a promise by carrying its id: `@pytest.mark.row("V1")`. `tests/test_rows.py` keeps map and tests in step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    WORKING = "working"
    PARTLY = "partly"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Promise:
    id: str
    text: str
    state: State = State.PLANNED
    yet: str = ""
    """What works so far, where only a part does."""


TOPICS = {
    "L": "The infinite toolbox",
    "D": "Tools live and die by use",
    "C": "A lean context every turn",
    "V": "Lossless virtual context",
    "M": "Memory that learns",
    "X": "All of it together",
}

PROMISES = (
    Promise("L1", "Any number of tools from skills, MCP servers, Python and agents; starting loads none", State.WORKING),
    Promise("L2", "Every tool can be found by meaning and by keyword; only what changed is indexed again", State.WORKING),
    Promise("L3", "Tools that fit but are not loaded stand in the model's list as ghosts", State.WORKING),
    Promise("L4", "The first call of a ghost loads it and runs it", State.WORKING),
    Promise("L5", "The least recently used tools are unloaded over a limit; pinned ones stay", State.WORKING),
    Promise("L6", "Changed tool code is used at the next call, without a restart", State.WORKING),
    Promise("D1", "Each tool has its own record of calls, times, failures and tier", State.WORKING),
    Promise("D2", "A tool's score decays while nobody uses it", State.WORKING),
    Promise("D3", "Active, inactive, deleted: a tool's life, rescued by any use, the same after a restart", State.WORKING),
    Promise("D4", "What goes first when the toolbox is full: inactive, then least useful, never protected", State.WORKING),
    Promise("D5", "A registry on disk that a person can read and edit", State.WORKING),
    Promise("D6", "Expired tools that an agent made are deleted whole, and can be restored", State.WORKING),
    Promise("D7", "Clean-up in the background, with a summary of who goes next", State.WORKING),
    Promise("D8", "A graph of which tools belong together", State.WORKING),
    Promise("C1", "Large tool results are shortened by content type; the whole is kept", State.WORKING),
    Promise("C2", "The same result is not shown twice; a changed one shows what changed", State.WORKING),
    Promise("C3", "Recent iterations stay whole, older work by summary and reference", State.WORKING),
    Promise("C4", "Summaries are made in the background and never hold up a turn", State.WORKING),
    Promise("C5", "The model gets any earlier message back, whole", State.WORKING),
    Promise("C6", "Building a context takes under 10 ms and calls no model", State.WORKING),
    Promise(
        "C7",
        "Half the tokens or fewer on long sessions, with the same results",
        State.PARTLY,
        "a third to a half of the tokens of long sessions, half to two thirds of their first 16 and 40 calls; "
        "whether the results are the same takes a model to tell",
    ),
    Promise("C8", "Metrics with alerts: tokens, retrievals, failures, hits", State.WORKING),
    Promise("C9", "Fits any agent without changing its code; off means the full messages again", State.WORKING),
    Promise("V1", "Everything said, called and read is stored the moment it arrives, and found by id and turn", State.WORKING),
    Promise("V2", "Full-text and vector search side by side, working while one is down", State.WORKING),
    Promise("V3", "The project's own files are indexed, with consent, and kept up to date", State.WORKING),
    Promise("V4", "What leaves the window leaves a line that says how to get it back", State.WORKING),
    Promise("V5", "What is evicted depends on the kind of agent, with checkpoints on the way", State.WORKING),
    Promise("V6", "The model searches and retrieves its past within a budget; each retrieval is logged", State.WORKING),
    Promise("V7", "What the next question needs is there before the model sees it", State.WORKING),
    Promise("V8", "What is used stays hot, and prefetches are measured by their use", State.WORKING),
    Promise("V9", "Prefetching races with tools and adds no waiting", State.WORKING),
    Promise("V10", "Search in tiers, each within its time, never blocking", State.WORKING),
    Promise("V11", "A breaker for each backend; one signal alone has to be surer", State.WORKING),
    Promise("V12", "Thresholds tune themselves from what people and models do"),
    Promise("V13", "Observations survive a crash, and replay gives the same state"),
    Promise("V14", "Memory pressure takes things away step by step and gives them back; nothing leaks"),
    Promise("V15", "A full agent hands its work over to a fresh one"),
    Promise("V16", "Several kinds of agents share one project; nothing leaks to another"),
    Promise("V17", "Safety: permissions, isolation, secrets, audit, consent", State.WORKING),
    Promise("M1", "Episodes, facts and procedures are remembered, with errors and how they were resolved", State.WORKING),
    Promise("M2", "What is recalled fits the task; debugging also recalls what went wrong before", State.WORKING),
    Promise("M3", "Memories unfold step by step, only as far as they are needed", State.WORKING),
    Promise("M4", "What memory costs and saves is measured, and acted upon", State.WORKING),
    Promise("M5", "Episodes become patterns; duplicates merge; links say what follows from what", State.WORKING),
    Promise("M6", "Age changes a memory's form, never whether it can be found", State.WORKING),
    Promise("M7", "Memory answers questions of time, word and meaning", State.WORKING),
    Promise("M8", "Working memory in CONTINUITY.md that refers to memories by id", State.WORKING),
    Promise("M9", "A log of strategies and how they fared"),
    Promise("M10", "Profiles are compared side by side on real sessions"),
    Promise("M11", "Weights are learned within bounds, and rolled back when they hurt"),
    Promise("M12", "Whole memory designs are bred and judged on real tasks"),
    Promise(
        "X1",
        "Tools, conversation, memory and code: one store, one search, one policy",
        State.PARTLY,
        "one store, and one search over all four; what goes into the window is still decided source by source",
    ),
    Promise("X2", "A proxy, an MCP server and a library that behave the same", State.WORKING),
    Promise("X3", "Eviction that knows the provider's prompt cache, so that cost falls too", State.WORKING),
    Promise("X4", "A dashboard of the window as a memory map"),
    Promise("X5", "Teams: many gateways over one shared store"),
    Promise("X6", "Any recorded session can be replayed through any policy", State.WORKING),
)
