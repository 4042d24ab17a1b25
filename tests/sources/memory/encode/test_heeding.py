"""Whether a memory helped or misled is told by what was done after it was told."""

from __future__ import annotations

from told_sessions import NOW, PASSED, Told, fixed

from hotset.nouns.memory import MemoryId, MemoryKind, MemoryRecord, Provenance, Trust, Used
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.economics import LOADED
from hotset.sources.memory.encode.encoder import worded_memory
from hotset.sources.memory.usefulness import (
    HEEDED,
    MemoryVerdict,
    judge_memories,
    shown_memories,
    verdict_deposits,
)


def pitfall() -> MemoryRecord:
    """`pytest -q tests/test_parser.py` fails with ModuleNotFoundError: `uv sync`."""
    return fixed(Told("earlier")).memories(MemoryKind.PITFALL)[0]


def judged(told: Told, memory: MemoryRecord, turn: int = 1) -> list[Used]:
    material = told.material()
    return [
        each.how
        for each in judge_memories(material, told.memories(MemoryKind.EPISODE), [(memory, turn)])
    ]


def begun() -> Told:
    told = Told().user("The parser's tests are red again, please mend them.")
    return told.runs(
        "pytest -q tests/test_parser.py",
        "E   ModuleNotFoundError: No module named 'toml'\n1 failed",
        1,
    )


def test_advice_that_was_taken_in_work_that_came_out_well_helped():
    told = (
        begun()
        .runs("uv sync", "Installed 1 package")
        .runs("pytest -q tests/test_parser.py", PASSED)
        .says("Green.")
    )
    assert judged(told, pitfall()) == [Used.HELPED]


def test_advice_after_which_the_same_error_came_again_misled():
    told = begun().runs("uv sync", "ok")
    told.runs(
        "pytest -q tests/test_parser.py",
        "E   ModuleNotFoundError: No module named 'yaml'\n1 failed",
        1,
    ).says("Still red.")
    assert judged(told, pitfall()) == [Used.MISLED]


def test_advice_that_nobody_took_or_that_was_known_before_counts_for_nothing():
    ignored = (
        begun().edits("src/parser.py").runs("pytest -q tests/test_parser.py", PASSED).says("Green.")
    )
    known = Told().user("Run uv sync, then mend the parser's tests please.").runs("uv sync", "ok")
    known.runs("pytest -q tests/test_parser.py", PASSED).says("Green.")
    unsure = begun().runs("uv sync", "ok").says("Hm.")
    late = (
        begun().runs("uv sync", "ok").runs("pytest -q tests/test_parser.py", PASSED).says("Green.")
    )
    assert [judged(told, pitfall()) for told in (ignored, known, unsure)] == [[], [], []]
    assert judged(late, pitfall(), turn=9) == []


def test_a_procedure_is_followed_by_two_of_its_steps():
    made = Told("earlier").user("Regenerate the client of the billing API.")
    made.runs("uv run scripts/generate_client.py billing", "wrote 12 files").runs(
        "make verify", "ok"
    ).says("Done.")
    (way,) = made.memories(MemoryKind.PROCEDURE)
    both = (
        Told()
        .user("The client of the billing API is stale.")
        .runs("uv run scripts/generate_client.py billing", "ok")
    )
    both.runs("make verify", "ok").says("Done.")
    one = (
        Told()
        .user("The client of the billing API is stale.")
        .runs("make verify", "ok")
        .says("Done.")
    )
    assert [judged(told, way) for told in (both, one)] == [[Used.HELPED], []]


def test_a_fact_helped_where_a_name_that_only_it_told_was_used():
    fact = worded_memory(
        MemoryKind.FACT,
        "The staging database is stage_db_7 on port 6543.",
        trust=Trust.PERSON,
        source=Provenance("person"),
        created=1.0,
    )
    used = (
        Told()
        .user("Check the invoices on staging.")
        .runs("psql -h stage_db_7 -c 'select 1'", "1")
        .runs("make verify", "ok")
    )
    guessed = (
        Told()
        .user("Check the invoices on staging.")
        .runs("psql -h localhost -c 'select 1'", "1")
        .runs("make verify", "ok")
    )
    assert [judged(told.says("Done."), fact) for told in (used, guessed)] == [[Used.HELPED], []]


def test_what_was_told_stands_in_the_events_of_a_session():
    events = [
        Event(LOADED, 1.0, SessionId("s"), 4, {"layer": "full", "ids": "pit-a sem-b"}),
        Event(LOADED, 2.0, SessionId("s"), 2, {"layer": "full", "ids": "sem-b"}),
        Event(LOADED, 3.0, SessionId("s"), 1, {"layer": "index", "ids": "sem-c"}),
        Event("Other", 3.0, SessionId("s"), 1, {"layer": "full", "ids": "sem-d"}),
    ]
    assert shown_memories(events) == {"pit-a": 4, "sem-b": 2}


def test_a_memory_is_counted_once_a_session_and_the_event_says_why_without_words():
    found = [
        MemoryVerdict(MemoryId("pit-a"), Used.HELPED, "copied 1 (command); it came out well", 3)
    ]
    uses, events = verdict_deposits(found, SessionId("s"), [], NOW)
    assert [(use.memory, use.how, use.session) for use in uses] == [("pit-a", Used.HELPED, "s")]
    assert [(event.name, event.turn, event.detail["how"]) for event in events] == [
        (HEEDED, 3, "helped")
    ]
    assert verdict_deposits(found, SessionId("s"), events, NOW) == ((), ())
