"""`hotset rows` and the map of promises: everything that hotset promises, by id, and what of it
works today.

A test covers a promise by carrying its id: `@pytest.mark.row("V1")`. `tests/test_rows.py` keeps map
and tests in step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import click

from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import emit_json, table


class RowState(StrEnum):
    WORKING = "working"
    """A test with its id drives it from outside: through the proxy, MCP, the CLI or the library, as
    installed."""
    PARTLY = "partly"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Promise:
    id: str
    text: str
    state: RowState = RowState.PLANNED
    yet: str = ""
    """The part that works so far, if not all of it does."""


TOPICS = {
    "L": "The infinite toolbox",
    "D": "Tools live and die by use",
    "C": "A lean context every turn",
    "V": "Lossless virtual context",
    "M": "Memory that learns",
    "X": "All of it together",
}

PROMISES = (
    Promise(
        "L1",
        "Any number of tools from skills, MCP servers, Python and agents; starting loads none",
        RowState.WORKING,
    ),
    Promise(
        "L2",
        "Every tool can be found by meaning and by keyword; only what changed is indexed again",
        RowState.WORKING,
    ),
    Promise(
        "L3",
        "Tools that fit but are not loaded are in the model's list as ghosts",
        RowState.WORKING,
    ),
    Promise("L4", "The first call of a ghost loads it and runs it", RowState.WORKING),
    Promise(
        "L5",
        "The least recently used tools are unloaded over a limit; pinned ones stay",
        RowState.WORKING,
    ),
    Promise(
        "L6",
        "Changed tool code is used at the next call, without a restart",
        RowState.WORKING,
    ),
    Promise(
        "D1",
        "Each tool has its own record of calls, times, failures and tier",
        RowState.WORKING,
    ),
    Promise("D2", "A tool's score decays while it is not used", RowState.WORKING),
    Promise(
        "D3",
        "Active, inactive, deleted: a tool's life, rescued by any use, the same after a restart",
        RowState.WORKING,
    ),
    Promise(
        "D4",
        "What goes first when the toolbox is full: inactive, then least useful, never protected",
        RowState.WORKING,
    ),
    Promise("D5", "A registry on disk that a person can read and edit", RowState.WORKING),
    Promise(
        "D6",
        "Expired tools that an agent made are deleted whole, and can be restored",
        RowState.WORKING,
    ),
    Promise(
        "D7",
        "Clean-up in the background, with a summary of who goes next",
        RowState.WORKING,
    ),
    Promise("D8", "A graph of which tools belong together", RowState.WORKING),
    Promise(
        "C1",
        "Large tool results are shortened by content type; the whole is kept",
        RowState.WORKING,
    ),
    Promise(
        "C2",
        "The same result is not shown twice; a changed one shows what changed",
        RowState.WORKING,
    ),
    Promise(
        "C3", "Recent iterations stay whole, older work by summary and reference", RowState.WORKING
    ),
    Promise(
        "C4", "Summaries are made in the background and never hold up a turn", RowState.WORKING
    ),
    Promise("C5", "The model gets any earlier message back, whole", RowState.WORKING),
    Promise(
        "C6",
        "Building a context takes under 10 ms and calls no model",
        RowState.PARTLY,
        (
            "11 ms from request to checked body (`make bench-plan`), and no model is called; no "
            "test drives it from outside yet"
        ),
    ),
    Promise(
        "C7",
        "Half the tokens or fewer on long sessions, with the same results",
        RowState.PARTLY,
        "a third to a half of the tokens of long sessions, half to two thirds of their first "
        "16 and 40 calls; "
        "only a model can judge whether the results are the same",
    ),
    Promise("C8", "Metrics with alerts: tokens, retrievals, failures, hits", RowState.WORKING),
    Promise(
        "C9",
        "Fits any agent without changing its code; off means the full messages again",
        RowState.WORKING,
    ),
    Promise(
        "V1",
        ("Every message, call and result is stored when it arrives, and found by id and turn"),
        RowState.WORKING,
    ),
    Promise(
        "V2",
        "Full-text and vector search side by side, working while one is down",
        RowState.WORKING,
    ),
    Promise(
        "V3",
        "The project's own files are indexed, with consent, and kept up to date",
        RowState.WORKING,
    ),
    Promise(
        "V4",
        "What leaves the window leaves a line that says how to get it back",
        RowState.WORKING,
    ),
    Promise(
        "V5",
        "What is evicted depends on the kind of agent, with checkpoints on the way",
        RowState.WORKING,
    ),
    Promise(
        "V6",
        "The model searches and retrieves its past within a budget; each retrieval is logged",
        RowState.WORKING,
    ),
    Promise(
        "V7",
        "What the next question needs is there before the model sees it",
        RowState.WORKING,
    ),
    Promise(
        "V8",
        "What is used stays hot, and prefetches are measured by their use",
        RowState.WORKING,
    ),
    Promise(
        "V9",
        "Prefetching races with tools and adds no waiting",
        RowState.PARTLY,
        "it races and is not waited for; off by default: its likelihood is fitted to prompts",
    ),
    Promise(
        "V10",
        "Search in tiers, each within its time, never blocking",
        RowState.PARTLY,
        "what is hot is found at once, the rest within the caller's time; no search stops early",
    ),
    Promise(
        "V11",
        "A breaker for each backend; one signal alone has to be surer",
        RowState.WORKING,
    ),
    Promise("V12", "Thresholds tune themselves from what people and models do", RowState.WORKING),
    Promise(
        "V13",
        "Observations survive a crash, and replay gives the same state",
        RowState.WORKING,
    ),
    Promise(
        "V14",
        "Memory pressure takes things away step by step and gives them back; nothing leaks",
        RowState.WORKING,
    ),
    Promise("V15", "A full agent hands its work over to a fresh one", RowState.WORKING),
    Promise(
        "V16",
        "Several kinds of agents share one project; nothing leaks to another",
        RowState.WORKING,
    ),
    Promise("V17", "Safety: permissions, isolation, secrets, audit, consent", RowState.WORKING),
    Promise(
        "M1",
        "Episodes, facts and procedures are remembered, with errors and how they were resolved",
        RowState.WORKING,
    ),
    Promise(
        "M2",
        "What is recalled fits the task; debugging also recalls what went wrong before",
        RowState.WORKING,
    ),
    Promise(
        "M3",
        "Memories unfold step by step, only as far as they are needed",
        RowState.WORKING,
    ),
    Promise("M4", "What memory costs and saves is measured, and acted upon", RowState.WORKING),
    Promise(
        "M5",
        "Episodes become patterns; duplicates merge; links say what follows from what",
        RowState.WORKING,
    ),
    Promise("M6", "Age changes a memory's form, never whether it can be found", RowState.WORKING),
    Promise(
        "M7",
        "Memory answers questions of time, word and meaning",
        RowState.WORKING,
    ),
    Promise(
        "M8", "Working memory in CONTINUITY.md that refers to memories by id", RowState.WORKING
    ),
    Promise("M9", "A log of strategies and how they fared", RowState.WORKING),
    Promise("M10", "Profiles are compared side by side on real sessions", RowState.WORKING),
    Promise(
        "M11", "Weights are learned within bounds, and rolled back when they hurt", RowState.WORKING
    ),
    Promise("M12", "Whole memory designs are bred and judged on real tasks", RowState.WORKING),
    Promise(
        "X1",
        "Tools, conversation, memory and code: one store, one search, one policy",
        RowState.WORKING,
    ),
    Promise("X2", "A proxy, an MCP server and a library that behave the same", RowState.WORKING),
    Promise(
        "X3",
        "Eviction that knows the provider's prompt cache, so that cost falls too",
        RowState.WORKING,
    ),
    Promise(
        "X4",
        "A dashboard of the window as a memory map",
        RowState.WORKING,
    ),
    Promise(
        "X5",
        "Teams: many gateways over one shared store",
        RowState.PARTLY,
        "the machines of a person share a desk in PostgreSQL; people share nothing yet",
    ),
    Promise("X6", "Any recorded session can be replayed through any policy", RowState.WORKING),
)


@click.command(epilog=examples("hotset rows", "hotset rows --state working", "hotset rows --json"))
@project_options
@click.option(
    "--state",
    type=click.Choice([state.value for state in RowState]),
    help="Only those in this state.",
)
@as_json
def rows(chosen: ProjectOptions, state: str | None, as_json: bool) -> None:
    """What hotset promises, by id, and what of it works today."""
    selected = [promise for promise in PROMISES if state in (None, promise.state)]
    if as_json:
        emit_json(selected)
        return
    table(
        ("id", "state", "promise"),
        [
            (each.id, each.state, f"{each.text} ({each.yet})" if each.yet else each.text)
            for each in selected
        ],
    )
    states = ", ".join(
        f"{sum(each.state is state for each in PROMISES)} {state}" for state in RowState
    )
    chosen.say(
        f"\n{states}. "
        f"{'; '.join(f'{letter}: {topic.lower()}' for letter, topic in TOPICS.items())}."
    )
