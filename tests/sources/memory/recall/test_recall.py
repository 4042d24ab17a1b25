"""What is recalled: the words that were said and the memories made of them, in one order, each with
its reasons."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.deposit import Erased, Remembered
from hotset.nouns.memory import (
    Ending,
    Episode,
    Fact,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    MemoryUse,
    Pitfall,
    Procedure,
    Provenance,
    Relation,
    Standing,
    Task,
    Trust,
    Used,
)
from hotset.nouns.page import Kind
from hotset.sealing import VERSION
from hotset.sources.history import follow
from hotset.sources.memory.kinds import memory_id
from hotset.sources.memory.memory_writer import follow_memories
from hotset.sources.memory.recall import TALK, RecallQuery, recall
from hotset.store.port import Where
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk

NOW = datetime(2026, 4, 20, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0


@pytest.fixture
def store():
    return RamStore()


@pytest.fixture
def index(tmp_path):
    with LocalIndex(tmp_path / "index", WordVectors(), sealing=VERSION, folds=False) as opened:
        yield opened


def made(kind, text, *, days=10.0, **fields):
    detail = {
        MemoryKind.FACT: Fact(),
        MemoryKind.PROCEDURE: Procedure(),
        MemoryKind.PITFALL: Pitfall(),
    }.get(kind)
    source = fields.pop("source", Provenance("rules"))
    ready = {"detail": detail, "trust": Trust.PERSON, **fields}
    return MemoryRecord(
        memory_id(kind, text), kind, text[:60], text, NOW - days * DAY, source, **ready
    )


def keep(store, *memories, links=(), uses=()):
    store.keep(Remembered(memories, tuple(links), tuple(uses))).result(120)


def asked(store, index, query, **fields):
    if index is not None:
        follow(store, index, time.monotonic() + 60)
        follow_memories(store, index, time.monotonic() + 60)
    return recall(RecallQuery(query, NOW, deadline=30.0, **fields), index, store)


def ids(recalled):
    return [item.id for item in recalled.items]


def test_what_was_said_and_what_is_known_come_in_one_order(store, index):
    StoreTalk(store).turn("I keep the staging password rotation on Fridays", "noted")
    rotation = made(MemoryKind.FACT, "Passwords of staging rotate every Friday")
    keep(store, rotation, made(MemoryKind.FACT, "The logo is green"))

    found = asked(store, index, "when does the staging password rotate?")

    assert {item.kind for item in found.items} == {TALK, "fact"}
    assert rotation.id in ids(found)
    said = next(item for item in found.items if item.kind == TALK)
    assert (said.speaker, said.text, said.page) == (
        "user",
        "I keep the staging password rotation on Fridays",
        said.id,
    )
    assert said.memory is None
    assert not [item for item in found.items if "logo" in item.text]


def test_every_item_says_why_in_the_words_by_which_it_was_found(store, index):
    keep(store, made(MemoryKind.FACT, "Refresh tokens are rotated daily", days=60))

    (item,) = asked(store, index, "how is the refresh token rotated?").items

    assert item.why[0] == "words: refresh, tokens, rotated"


@pytest.mark.parametrize("standing", [Standing.FORGOTTEN, Standing.MERGED, Standing.CANDIDATE])
def test_nobody_is_told_what_was_forgotten_merged_or_never_confirmed(store, index, standing):
    memory = made(MemoryKind.FACT, "Refresh tokens are rotated daily")
    keep(store, memory)
    assert ids(asked(store, index, "refresh tokens")) == [memory.id]

    keep(store, replace(memory, version=2, standing=standing))  # the index has not come by yet

    assert recall(RecallQuery("refresh tokens", NOW, deadline=30.0), index, store).items == ()
    assert recall(RecallQuery("refresh tokens", NOW, deadline=30.0), None, store).items == ()


def test_what_was_erased_since_it_was_indexed_is_not_told(store, index):
    memory = made(MemoryKind.FACT, "Refresh tokens are rotated daily")
    keep(store, memory)
    asked(store, index, "refresh tokens")
    store.keep(Erased((memory.id,), NOW)).result(120)

    assert recall(RecallQuery("refresh tokens again", NOW, deadline=30.0), index, store).items == ()


def superseded(store):
    old = made(MemoryKind.FACT, "On a merge clash the latest record wins", days=60)
    new = made(MemoryKind.FACT, "The record with the most filled fields is kept", days=5)
    ended = replace(old, version=2, standing=Standing.SUPERSEDED, valid_until=new.created)
    keep(store, old, new)
    keep(store, ended, links=[MemoryLink(new.id, old.id, Relation.SUPERSEDES, NOW)])
    return old, new


def test_a_fact_that_was_replaced_brings_the_one_that_holds_now(store, index):
    old, new = superseded(store)

    found = asked(store, index, "which record wins in a merge clash?")

    assert ids(found) == [new.id]
    assert f"in place of {old.id}" in found.items[0].why[0]


def told_in(store, session):
    page = next(store.pages(Where(session=session, kinds=frozenset({Kind.PROMPT}))))
    return Provenance("rules", session, pages=(page.id,))


def test_words_of_a_decision_that_was_made_anew_come_behind_the_new_ones_and_say_so(store, index):
    first, later = StoreTalk(store, key="first"), StoreTalk(store, key="later")
    first.time, later.time = NOW - 60 * DAY, NOW - 5 * DAY
    before = first.turn("In a merge clash of two records the latest record wins", "Settled.")
    after = later.turn(
        "From now on the record with more filled fields is kept in a clash", "Amended."
    )
    old = made(
        MemoryKind.FACT,
        "On a merge clash the latest record wins",
        days=60,
        source=told_in(store, before.session),
    )
    new = made(
        MemoryKind.FACT,
        "The record with most filled fields is kept",
        days=5,
        source=told_in(store, after.session),
    )
    keep(store, old, new)
    assert (
        asked(store, index, "which record wins in a merge clash?", memories=False)
        .items[0]
        .text.startswith("In a merge clash")
    )

    ended = replace(old, version=2, standing=Standing.SUPERSEDED, valid_until=new.created)
    keep(store, ended, links=[MemoryLink(new.id, old.id, Relation.SUPERSEDES, NOW)])
    (now_first, then) = asked(
        store, index, "which record wins in a merge clash?", memories=False, most=2
    ).items

    assert now_first.text.startswith("From now on")
    assert then.why[0] == f"what was decided there was decided anew on 15 April 2026: {new.id}"


def test_where_something_was_decided_anew_comes_first_though_the_question_has_the_words_of_before(
    store, index
):
    first, later = StoreTalk(store, key="first"), StoreTalk(store, key="later")
    first.time, later.time = NOW - 60 * DAY, NOW - 5 * DAY
    before = first.turn(
        "After every sync run the contact list shows the same person twice",
        "Which of the two shall win?",
    )
    first.turn("The one that was changed last wins a merge", "Settled.")
    after = later.turn("Amendment to the merge of contacts: the fuller one wins", "Amended.")
    old = made(
        MemoryKind.FACT,
        "In a merge of contacts the latest wins",
        days=60,
        source=Provenance("rules", before.session),
    )
    new = made(
        MemoryKind.FACT,
        "In a merge of contacts the fuller wins",
        days=5,
        source=told_in(store, after.session),
    )
    keep(store, old, new)
    query = "after a sync run the same contact shows up twice in the contact list"
    assert asked(store, index, query, memories=False).items[0].session == before.session

    ended = replace(old, version=2, standing=Standing.SUPERSEDED, valid_until=new.created)
    keep(store, ended, links=[MemoryLink(new.id, old.id, Relation.SUPERSEDES, NOW)])
    found = asked(store, index, query, memories=False).items

    assert [item.session for item in found[:2]] == [after.session, before.session]


def test_whoever_asks_about_the_time_before_is_told_what_held_then(store, index):
    old, _ = superseded(store)

    found = asked(store, index, "which record won a merge clash in February?")

    assert found.items[0].id == old.id
    assert any(reason.startswith("held until") for reason in found.items[0].why)


def test_a_replaced_fact_without_a_successor_is_told_with_a_mark(store, index):
    memory = made(MemoryKind.FACT, "Refresh tokens are rotated daily", standing=Standing.SUPERSEDED)
    keep(store, memory)

    (item,) = asked(store, index, "refresh tokens").items

    assert item.signals["outdated"] == 1.0
    assert "something else holds now" in item.why


def test_words_for_a_time_bring_what_was_said_then(store, index):
    for days in (5, 35, 65, 95):
        talk = StoreTalk(store, key=f"session {days}")
        talk.time = NOW - days * DAY
        talk.turn(f"Met Alice for lunch, plan {days}", "nice")

    found = asked(store, index, "what was the plan with Alice for lunch in February?")

    assert found.items[0].text == "Met Alice for lunch, plan 65"
    assert "you asked about 1 February 2026 to 28 February 2026" in found.items[0].why
    assert (found.since, found.until) == (
        datetime(2026, 2, 1, tzinfo=UTC).timestamp(),
        datetime(2026, 3, 1, tzinfo=UTC).timestamp(),
    )


def test_a_question_about_what_the_model_said_prefers_its_words(store, index):
    StoreTalk(store).turn(
        "Which sealant should I use for the paper vase?",
        "For the paper vase I recommend a matte sealant.",
    )

    told = asked(store, index, "the sealant for the paper vase")
    remembered = asked(store, index, "remind me which sealant you recommended for the paper vase")

    assert told.items[0].speaker == "user"
    assert remembered.items[0].speaker == "assistant"


def test_an_answer_that_shares_no_word_with_the_question_comes_by_the_turns_around_it(store, index):
    talk = StoreTalk(store)
    talk.turn("We need a name for the ferret that guards the archive.", "Which do you like?")
    talk.turn("Let it be Balthasar, after my grandfather.", "Balthasar it is.")
    for number in range(20):
        StoreTalk(store, key=f"other {number}").turn(
            f"Please paint wall {number} of the kitchen.", "Painted."
        )

    items = asked(store, index, "What name did the ferret of the archive get?").items

    (named,) = [item for item in items if item.text == "Let it be Balthasar, after my grandfather."]
    assert named in items[:5]
    assert "what was said around it fits" in named.why


def test_a_long_text_that_the_question_quotes_comes_first(store, index):
    steps = "\n".join(
        f"Step {number}: move table {number} of the warehouse." for number in range(99)
    )
    quoted = "keep the nightly export of the warehouse idempotent"
    long, *others = (StoreTalk(store, key=str(number)) for number in range(9))
    plan = long.turn(f"Plan for the warehouse.\n{steps}\nAnd {quoted}, please.", "Done.")
    for other in others:
        other.turn(f"Is export {other.key} of the warehouse nightly? I keep asking.", "Yes, it is.")

    found = asked(store, index, f"You were told to {quoted}. Is it?", memories=False)

    assert found.items[0].session == plan.session
    assert found.items[0].signals["quoted"] > 0


def test_debugging_tells_what_to_avoid_even_where_much_else_fits_better(store, index):
    facts = [
        made(MemoryKind.FACT, f"The upload test of module {number} talks to the upload server")
        for number in range(12)
    ]
    pitfall = made(MemoryKind.PITFALL, "Uploads time out behind the proxy")
    keep(store, *facts, pitfall)

    found = asked(
        store, index, "the upload test of the upload server fails", task=Task.DEBUGGING, most=5
    )
    other = asked(
        store, index, "document the upload test of the upload server", task=Task.REVIEW, most=5
    )

    assert len(found.items) == len(other.items) == 5
    assert pitfall.id in ids(found)
    assert (
        "pitfall for a debugging task"
        in next(item for item in found.items if item.id == pitfall.id).why
    )
    assert pitfall.id not in ids(other)


def test_debugging_prefers_episodes_that_went_wrong(store, index):
    well, badly = (
        made(
            MemoryKind.EPISODE,
            f"Moved the uploads to the new queue {ending}",
            ending=ending,
            detail=Episode("move uploads"),
        )
        for ending in (Ending.SUCCESS, Ending.FAILURE)
    )
    keep(store, well, badly)

    assert ids(asked(store, index, "uploads new queue", task=Task.DEBUGGING))[0] == badly.id


def test_of_procedures_and_pitfalls_two_are_told_at_a_time(store, index):
    keep(
        store,
        *(
            made(MemoryKind.PROCEDURE, f"Deploy service {number} by the deploy script")
            for number in range(6)
        ),
        *(
            made(MemoryKind.PITFALL, f"Deploy script {number} hangs without a tag")
            for number in range(6)
        ),
    )

    kinds = [item.kind for item in asked(store, index, "deploy script", task=Task.DEBUGGING).items]

    assert kinds.count("procedure") == 2
    assert kinds.count("pitfall") == 2
    assert (
        len(
            asked(
                store, index, "deploy script", kinds=frozenset({MemoryKind.PITFALL}), talk=False
            ).items
        )
        == 6
    )


def test_the_task_decides_between_kinds_that_fit_alike(store, index):
    episode = made(
        MemoryKind.EPISODE, "Changed the retry policy of uploads", detail=Episode("retries")
    )
    fact = made(MemoryKind.FACT, "Changed the retry policy of uploads")
    keep(store, episode, replace(fact, text="Changed: the retry policy of uploads"))

    assert (
        ids(asked(store, index, "retry policy of uploads", task=Task.EXPLORATION))[0] == episode.id
    )
    assert (
        ids(asked(store, index, "retry policy of uploads", task=Task.IMPLEMENTATION))[0] == fact.id
    )


def test_what_was_read_often_comes_first_and_what_misled_last(store, index):
    facts = [
        made(MemoryKind.FACT, f"The cache of region {name} is warm")
        for name in ("alpha", "beta", "gamma")
    ]
    uses = [MemoryUse(facts[1].id, Used.READ, NOW) for _ in range(3)] + [
        MemoryUse(facts[0].id, Used.MISLED, NOW) for _ in range(3)
    ]
    keep(store, *facts, uses=uses)

    found = asked(store, index, "is the cache of the region warm")

    assert ids(found) == [facts[1].id, facts[2].id, facts[0].id]
    assert "read 3 times" in found.items[0].why


def test_a_memory_that_fits_lifts_the_page_that_it_stands_on(store, index):
    talk = StoreTalk(store)
    for number in range(4):
        talk.turn(f"Let us talk about the release of week {number}", "ok")
    pages = [
        item.page for item in asked(store, index, "release week").items if item.speaker == "user"
    ]
    last = pages[-1]
    keep(
        store,
        made(
            MemoryKind.FACT,
            "The release needs a signed tag",
            source=Provenance("rules", pages=(last,)),
        ),
    )

    said = [item for item in asked(store, index, "release").items if item.kind == TALK]

    assert said[0].page == last
    assert "a memory that fits stands on it" in said[0].why


def test_the_same_words_are_told_once(store, index):
    for number in range(3):
        StoreTalk(store, key=str(number)).turn("the zeppelin is blue", f"noted {number}")

    texts = [item.text for item in asked(store, index, "zeppelin").items]

    assert texts.count("the zeppelin is blue") == 1


def test_who_asks_is_not_told_what_stands_in_its_own_window(store, index):
    StoreTalk(store, key="other").turn("the zeppelin is blue", "noted")
    mine = StoreTalk(store, key="mine").turn("the zeppelin is green", "noted")

    texts = [item.text for item in asked(store, index, "zeppelin", session=mine.session).items]

    assert texts == ["the zeppelin is blue"]


def test_words_alone_can_be_asked_for_and_memories_alone(store, index):
    StoreTalk(store).turn("the zeppelin is blue", "noted")
    keep(store, made(MemoryKind.FACT, "A zeppelin is an airship"))

    assert {item.kind for item in asked(store, index, "zeppelin", memories=False).items} == {TALK}
    assert {item.kind for item in asked(store, index, "zeppelin", talk=False).items} == {"fact"}


def test_without_an_index_the_newest_memories_are_looked_through_by_their_words(store):
    memory = made(MemoryKind.FACT, "Refresh tokens are rotated daily")
    keep(store, made(MemoryKind.FACT, "The logo is green"), memory)

    found = asked(store, None, "how are refresh tokens rotated?")

    assert ids(found) == [memory.id]
    assert "index" in found.lacking


def test_without_an_index_what_was_kept_last_is_found_among_very_many(store):
    keep(
        store,
        *(made(MemoryKind.FACT, f"Fact number {number} of the zeppelin") for number in range(2500)),
    )
    last = made(MemoryKind.FACT, "Refresh tokens are rotated daily")
    keep(store, last)
    keep(store, replace(last, version=2, title="Tokens"))

    found = asked(store, None, "refresh tokens")

    assert [(item.id, item.title) for item in found.items] == [(last.id, "Tokens")]


def test_what_the_store_does_not_have_any_more_is_not_told(store, index):
    StoreTalk(store).turn("the zeppelin is blue", "noted")
    assert asked(store, index, "zeppelin").items

    assert recall(RecallQuery("zeppelin", NOW, deadline=30.0), index, RamStore()).items == ()


def test_a_closed_index_is_told_as_lacking_and_the_memories_are_found_all_the_same(store, index):
    memory = made(MemoryKind.FACT, "Refresh tokens are rotated daily")
    keep(store, memory)
    index.close()

    found = recall(RecallQuery("refresh tokens", NOW, deadline=30.0), index, store)

    assert ids(found) == [memory.id]
    assert found.lacking >= {"index", "words", "meaning"}


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        '"',
        "\x00",
        "?!",
        "the of and",
        "a" * 100_000,
        "\ud800",
        "NOT AND (",
        "zeppelin" * 1000,
    ],
)
def test_no_question_is_an_error(store, index, query):
    keep(store, made(MemoryKind.FACT, "A zeppelin is an airship"))

    found = asked(store, index, query)

    assert len(found.items) <= 1


def test_words_that_nobody_said_recall_nothing(store, index):
    talk = StoreTalk(store)
    for number in range(20):
        talk.turn(f"what is in the box number {number}?", f"in the box there is thing {number}")
    keep(store, made(MemoryKind.FACT, "Refresh tokens are rotated daily"))

    assert asked(store, index, "unicorns of the meadow").items == ()
