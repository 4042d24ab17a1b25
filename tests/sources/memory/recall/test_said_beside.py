"""What else a person said where something was found."""

from __future__ import annotations

from hotset.nouns.memory import Episode, MemoryKind, MemoryRecord, Provenance
from hotset.nouns.page import Kind, SessionId
from hotset.sources.memory.kinds import memory_id
from hotset.sources.memory.recall import NEIGHBOUR_WHY, TALK, RecalledItem, neighbour_pages
from hotset.store.port import Store, Where
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk


def a_talk(store: Store, key: str, *said: str) -> list[RecalledItem]:
    """A conversation, and the person's words of it as a recall would give them."""
    talk = StoreTalk(store, key=key)
    for words in said:
        talk.turn(words, f"The model had a long answer to: {words}")
    session = next(each.id for each in store.sessions() if each.key == key)
    pages = store.pages(Where(session=session, kinds=frozenset({Kind.PROMPT})))
    return [
        RecalledItem(
            page.id,
            TALK,
            "",
            text,
            page.time,
            1.0,
            (),
            {},
            None,
            page.id,
            "user",
            page.session,
            page.turn,
        )
        for page, text in zip(pages, said, strict=True)
    ]


def texts(items) -> list[str]:
    return [item.text for item in items]


def test_what_was_said_nearest_to_what_was_found_comes_first_and_only_the_persons_words():
    store = RamStore()
    said = a_talk(
        store,
        "music",
        "My flute came from an uncle in Porto.",
        "Strings break on my cello every winter.",
        "I bought a guitar in Madrid last year.",
        "The piano in our hall needs a tuner.",
    )

    beside = list(neighbour_pages([said[2]], store, "how many instruments do I own?"))

    assert texts(beside) == [said[1].text, said[3].text, said[0].text]
    assert {(item.speaker, item.kind, item.why) for item in beside} == {
        ("user", TALK, (NEIGHBOUR_WHY,))
    }


def test_sessions_take_turns_in_the_order_of_what_was_found():
    store = RamStore()
    one = a_talk(
        store,
        "one",
        "Alpha boats lie in the harbour.",
        "Beta boats lie in the harbour.",
        "Gamma boats lie in the bay.",
    )
    two = a_talk(
        store, "two", "Delta trains stop in the valley.", "Epsilon trains stop in the valley."
    )

    beside = texts(neighbour_pages([two[0], one[0]], store))

    assert beside == [two[1].text, one[1].text, one[2].text]


def test_nothing_of_whoever_asks_nothing_that_says_nothing_and_nothing_twice():
    store = RamStore()
    one = a_talk(
        store,
        "one",
        "Alpha boats lie in the harbour.",
        "ok",
        "Beta boats lie in the bay.",
        "Beta boats lie in the bay.",
    )
    two = a_talk(
        store, "two", "Delta trains stop in the valley.", "Epsilon trains stop in the valley."
    )

    assert texts(neighbour_pages([one[0], two[0]], store, but=two[0].session)) == [one[2].text]


def test_an_episode_that_was_found_brings_what_the_person_said_in_it():
    store = RamStore()
    said = a_talk(store, "one", "Alpha boats lie in the harbour.", "Beta boats lie in the bay.")
    session = SessionId(str(said[0].session))
    id = memory_id(MemoryKind.EPISODE, "boats")
    episode = MemoryRecord(
        id,
        MemoryKind.EPISODE,
        "Boats",
        "Asked about boats.",
        0.0,
        Provenance("rules", session),
        Episode("boats", turns=(1, 2)),
    )
    item = RecalledItem(
        id, MemoryKind.EPISODE, "Boats", episode.text, 0.0, 1.0, (), {}, episode, session=session
    )

    assert texts(neighbour_pages([item], store)) == texts(said)


def test_pages_are_read_only_when_they_are_wanted():
    store = RamStore()
    said = a_talk(store, "one", *(f"Boat number {at} lies in the harbour." for at in range(30)))
    reads: list[str] = []

    class Watched:
        def pages(self, where: Where):
            return store.pages(where)

        def page(self, id):
            return store.page(id)

        def content(self, digest):
            reads.append(digest)
            return store.content(digest)

    first = neighbour_pages(said[:1], Watched())  # type: ignore[arg-type]  # the three methods that it needs
    next(first)
    assert (
        len(set(reads)) <= 2
    )  # the page, and the reply before it, by which it is known who speaks
