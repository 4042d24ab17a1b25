"""The part of a store's contract about memories: versions, links, uses, and erasure."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from hotset.errors import BadInput, Conflict, NotFound
from hotset.nouns.deposit import Erased, Remembered
from hotset.nouns.memory import (
    DETAILS,
    Action,
    Arrangement,
    Checkpoint,
    Detail,
    Ending,
    Episode,
    Fact,
    MemoryId,
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
    Trouble,
    Trust,
    Used,
    Uses,
)
from hotset.nouns.page import PageId, SessionId
from hotset.nouns.turn import Event
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import MATCHES, Row, Store
from hotset.testing.contract import checks_in, on_fresh, raises
from hotset.testing.store_talk import StoreTalk, kept


def fact(name: str, **traits: Any) -> MemoryRecord:
    """A fact called `sem-<name>`; `traits` are any other fields of `MemoryRecord`."""
    plain = MemoryRecord(
        MemoryId(f"sem-{name}"),
        MemoryKind.FACT,
        name,
        f"{name} holds",
        1.0,
        Provenance("rules"),
        time=2.0,
        run="work",
    )
    return replace(plain, **traits)


def lives(store: Store, session: SessionId | None = None) -> None:
    """Keeps memories of every kind with every field, in several versions, with links and uses."""
    every = tuple(_of_kind(kind, session) for kind in MemoryKind)
    again = tuple(
        replace(memory, version=2, title="again", run="second", why="because")
        for memory in every[::2]
    )
    forgotten = replace(again[0], version=3, standing=Standing.FORGOTTEN, run="third")
    kept(store, Remembered((*every, *again, forgotten)))
    links = [
        MemoryLink(one.id, other.id, Relation.DERIVED_FROM, 4.0, "work")
        for one, other in pairwise(every)
    ]
    links += [
        replace(links[0], gone=True, time=5.0),
        links[0],
        replace(links[1], relation=Relation.CONTRADICTS),
    ]
    uses = [
        MemoryUse(every[0].id, how, time, session, task)
        for how, time, task in zip(Used, (6.0, 7.0, 8.5, 9.0), Task, strict=False)
    ]
    kept(
        store,
        Remembered((), tuple(links), (*uses, uses[1], replace(uses[2], session=None, task=None))),
    )


@on_fresh
def check_a_memory_of_any_kind_comes_back_as_it_was_kept(store: Store) -> None:
    awkward = 'zażółć \0 \U0001f9ed \r\n\t \x7f " \\ ' * 200
    for kind in MemoryKind:
        memory = _of_kind(kind, SessionId("s1"))
        plain = replace(
            memory,
            id=MemoryId(f"plain-{kind}"),
            detail=None,
            text="",
            title="",
            source=Provenance(""),
            time=-1e308,
        )
        odd = replace(
            memory,
            id=MemoryId(f"odd ' \0 ł {kind}"),
            text=awkward,
            created=5e-324,
            topics=(awkward,),
            run=awkward,
        )
        kept(store, Remembered((memory, plain, odd)))
        for each in (memory, plain, odd):
            assert store.memory(each.id) == each, f"a memory of kind {kind} came back changed"
            assert type(store.memory(each.id).detail) is type(each.detail), (
                f"the detail of a {kind} is of another kind"
            )
    assert {type(memory.detail) for memory in store.memories()} >= {
        type_ for type_ in DETAILS.values() if type_
    }


@on_fresh
def check_versions_follow_each_other_and_the_latest_holds(store: Store) -> None:
    first, other = fact("a"), fact("b")
    second, third = (
        replace(first, version=2, title="corrected"),
        replace(first, version=3, standing=Standing.SUPERSEDED),
    )
    kept(store, Remembered((first, other)))
    kept(store, Remembered((second, third)))
    assert store.memory(first.id) == third, "the latest version does not hold"
    assert list(store.memory_versions(first.id)) == [first, second, third], (
        "a version was lost, or they are not in order"
    )
    assert list(store.memories()) == [third, other], (
        "memories do not come in the order in which they were first kept"
    )
    assert list(store.memories(standings=frozenset({Standing.ACTIVE}))) == [other], (
        "an older version's standing still holds"
    )
    assert not store.memory_versions(MemoryId("sem-none")), (
        "a memory that is not there has versions"
    )
    assert raises(NotFound, lambda: store.memory(MemoryId("sem-none"))), (
        "a missing memory is not reported as missing"
    )


@on_fresh
def check_memories_are_found_by_kind_standing_and_prefix(store: Store) -> None:
    lives(store)
    many = tuple(
        fact(f"{number:03}", standing=[*Standing][number % 5], created=float(number * 7 % 50))
        for number in range(600)
    )
    kept(store, Remembered(many))
    every = list(store.memories())
    assert len(every) == len({memory.id for memory in every}) == len(MemoryKind) + 600, (
        "a memory is missing, or there twice"
    )
    for kind in MemoryKind:
        wanted = [memory for memory in every if memory.kind is kind]
        assert list(store.memories(frozenset({kind}))) == wanted, (
            f"those of kind {kind} are not found in their order"
        )
    some, standings = (
        frozenset({MemoryKind.FACT, MemoryKind.PITFALL}),
        frozenset({Standing.ACTIVE, Standing.MERGED}),
    )
    wanted = [memory for memory in every if memory.kind in some and memory.standing in standings]
    assert list(store.memories(some, standings)) == wanted, (
        "kinds and standings together find others"
    )
    newest = sorted(every, key=lambda memory: (memory.created, memory.id), reverse=True)
    assert list(store.newest_memories()) == newest, "the newest do not come first"
    since, until = 10.0, 40.0
    between = [memory for memory in newest if since <= memory.created < until and memory in wanted]
    assert list(store.newest_memories(some, standings, since=since, until=until)) == between, (
        "a span finds others"
    )
    assert list(store.memory_match("sem-00")) == [
        MemoryId(f"sem-{number:03}") for number in range(MATCHES)
    ], "the first ids that begin with a prefix are not found"
    assert list(store.memory_match("sem-599")) == [MemoryId("sem-599")], (
        "an id is not found by itself"
    )
    assert not store.memory_match("sem-6"), "an id is found that does not begin so"


@on_fresh
def check_a_version_that_somebody_else_wrote_first_is_a_conflict(store: Store) -> None:
    memory = fact("a", text="one")
    kept(store, Remembered((memory,)))
    before = list(store.dump())
    again = replace(memory, time=99.0, run="another", why="made again")
    kept(store, Remembered((memory, again)))
    assert list(store.dump()) == before, "a memory that says the same was written again"
    for bad in (
        replace(memory, text="two"),
        replace(memory, version=3),
        replace(memory, standing=Standing.FORGOTTEN),
    ):
        deposit = Remembered(
            (fact("new"), bad), (_link("a", "new"),), (MemoryUse(memory.id, Used.READ, 1.0),)
        )
        assert raises(Conflict, partial(kept, store, deposit)), (
            f"{bad} was taken over another version"
        )
        assert list(store.dump()) == before, "a conflict left something behind"
    later = replace(memory, version=2, text="two")
    kept(store, Remembered((memory, later, replace(later, version=3), later)))
    assert [each.version for each in store.memory_versions(memory.id)] == [1, 2, 3], (
        "versions of one deposit do not follow"
    )
    clash = Remembered((fact("twice", text="one"), fact("twice", text="two")))
    assert raises(Conflict, lambda: kept(store, clash)), (
        "a deposit that contradicts itself was kept"
    )


@on_fresh
def check_what_cannot_be_remembered_is_refused_with_a_sentence(store: Store) -> None:
    kept(store, Remembered((fact("a"),)))
    before = list(store.dump())
    good = fact("b")
    bad: tuple[MemoryRecord | MemoryLink | MemoryUse, ...] = (
        replace(good, id=MemoryId("")),
        replace(good, version=0),
        *(replace(good, confidence=number) for number in (-0.01, 1.01, math.nan, math.inf)),
        *(replace(good, created=number) for number in (math.nan, math.inf, -math.inf)),
        replace(good, valid_until=math.nan),
        replace(good, text="\ud800"),
        replace(good, topics=("fine", "\udfff")),
        replace(good, detail=Episode("a goal")),
        replace(good, kind=MemoryKind.LEARNING, detail=Fact()),
        replace(
            good,
            kind=MemoryKind.EPISODE,
            detail=Episode("goal", actions=(Action(math.nan, "tool", "target"),)),
        ),
        replace(good, kind=MemoryKind.ARRANGEMENT, detail=Arrangement(scores={"topic": math.inf})),
        replace(fact("a"), version=2, kind=MemoryKind.LEARNING),
        _link("", "a"),
        _link("a", ""),
        replace(_link("a", "b"), time=math.nan),
        MemoryUse(MemoryId(""), Used.READ, 1.0),
        MemoryUse(MemoryId("a"), Used.READ, math.inf),
    )
    for row in bad:
        deposit = _deposit(good, row)
        assert raises(BadInput, partial(kept, store, deposit)), f"{row} was accepted"
        assert list(store.dump()) == before, f"{row} was refused and left something behind"
        assert raises(BadInput, partial(store.load, [good, row])), f"{row} was loaded"
        assert list(store.dump()) == before, f"loading {row} left something behind"
    assert raises(BadInput, lambda: kept(store, Erased((MemoryId(""),), 1.0))), (
        "a memory without an id was erased"
    )


@on_fresh
def check_versions_can_be_followed_in_the_order_in_which_they_were_kept(store: Store) -> None:
    assert not store.memories_after(0, 10), "an empty store has memories to follow"
    one, two = fact("a", time=9.0), fact("b", time=1.0)
    versions = [one, two, replace(one, version=2, time=0.0), replace(two, version=2), fact("c")]
    for memory in versions:
        kept(store, Remembered((memory,)))
    every = store.memories_after(0, 100)
    assert [memory for _, memory in every] == versions, (
        "versions do not come in the order in which they were kept"
    )
    assert all(0 < before < after for (before, _), (after, _) in pairwise(every)), (
        "their numbers do not grow from 1 up"
    )
    followed: list[tuple[int, MemoryRecord]] = []
    while some := store.memories_after(followed[-1][0] if followed else 0, 2):
        assert len(some) <= 2, "more came than were asked for"
        followed += some
    assert followed == list(every), "versions were lost or came twice between one step and the next"
    assert not store.memories_after(0, 0), "versions came though none were asked for"
    kept(store, Erased((versions[-1].id, one.id), 3.0))
    left = [each for each in every if each[1].id == two.id]
    assert store.memories_after(0, 100) == left, (
        "a version got another number when others were erased"
    )
    kept(store, Remembered((fact("d"),)))
    assert [memory.title for _, memory in store.memories_after(every[-1][0], 9)] == ["d"], (
        "a follower of the store misses what came after an erasure"
    )


@on_fresh
def check_links_hold_until_they_are_taken_back(store: Store) -> None:
    kept(store, Remembered(tuple(map(fact, "abc"))))
    ab, bc, ca = _link("a", "b"), _link("b", "c"), _link("c", "a", Relation.SUPERSEDES)
    kept(store, Remembered(links=(ab, bc, ca)))
    assert list(store.memory_links()) == [ab, bc, ca], (
        "links came back changed, or in another order"
    )
    assert list(store.memory_links(ab.to)) == [ab, bc], "links from and to a memory are not found"
    kept(
        store,
        Remembered(
            links=(
                replace(ab, time=9.0, run="again"),
                replace(ab, relation=Relation.RELATED_TO),
            )
        ),
    )
    assert [(link.of, link.to, link.time) for link in store.memory_links(ab.of)].count(
        (ab.of, ab.to, 1.0)
    ) == 2, "a link that holds was made again, or two relations of two memories are one"
    kept(
        store,
        Remembered(links=(replace(ab, gone=True, time=-5.0), replace(_link("b", "a"), gone=True))),
    )
    left = [(link.of, link.to, link.relation) for link in store.memory_links()]
    assert (ab.of, ab.to, ab.relation) not in left, "a link that was taken back holds"
    assert (ab.to, ab.of, ab.relation) not in left, (
        "a link that never was holds since it was taken back"
    )
    kept(store, Remembered(links=(ab,)))
    assert [*store.memory_links()][-1] == ab, "a link that was taken back cannot be made again"
    assert not store.memory_links(MemoryId("sem-none")), "a memory that is not there has links"


@on_fresh
def check_uses_are_counted(store: Store) -> None:
    a, b = fact("a").id, fact("b").id
    read = MemoryUse(a, Used.READ, 5.0, SessionId("s"), Task.REVIEW)
    uses = (
        read,
        read,
        MemoryUse(a, Used.SHOWN, 50.0),
        MemoryUse(a, Used.HELPED, 4.0),
        MemoryUse(b, Used.MISLED, 9.0),
        MemoryUse(b, Used.SHOWN, 8.0),
    )
    kept(store, Remembered(uses=uses))
    counted = {a: Uses(shown=1, read=2, helped=1, last=5.0), b: Uses(shown=1, misled=1)}
    assert dict(store.memory_uses()) == counted, (
        "uses are counted wrongly, or two equal ones became one"
    )
    assert dict(store.memory_uses([b, MemoryId("sem-none")])) == {b: counted[b]}, (
        "the uses of some memories are not found"
    )
    kept(store, Remembered(uses=(MemoryUse(a, Used.HELPED, 7.0),)))
    assert store.memory_uses([a])[a] == Uses(1, 2, 2, 0, 7.0), "a later use is not counted"


@on_fresh
def check_pieces_of_work_are_listed_with_the_latest_first(store: Store) -> None:
    assert not store.memory_runs(), "an empty store has pieces of work"
    kept(
        store,
        Remembered(
            (fact("a", run="one", time=9.0), fact("b", run="two", time=3.0), fact("c", run=""))
        ),
    )
    kept(store, Remembered((fact("b", run="one", version=2, time=4.0),)))
    assert list(store.memory_runs()) == [("one", 2, 9.0), ("two", 1, 3.0)], (
        "the pieces of work are listed wrongly"
    )


@on_fresh
def check_what_is_erased_is_gone_with_all_that_belongs_to_it(store: Store) -> None:
    lives(store)
    rows = list(store.dump())
    gone = [memory.id for memory in store.memories()][:3]
    count = {"memories": 3, "versions": 6, "links": 6, "uses": 6}
    kept(store, Erased((*gone, gone[0], MemoryId("sem-none")), 77.0))
    event = Event("Erased", 77.0, detail=dict(count))
    assert list(store.dump()) == [event, *(row for row in rows if not _of(row, gone))], (
        "more or less than asked for is gone"
    )
    for id in gone:
        assert raises(NotFound, partial(store.memory, id)), "an erased memory is still there"
        assert not store.memory_versions(id), "an erased memory has versions"
        assert not store.memory_links(id), "an erased memory has links"
    assert not store.memory_uses(gone), "an erased memory has uses"
    assert not list(store.verify()), "a store does not verify after something was erased"
    kept(store, Remembered((fact("new", id=gone[0]),)))
    assert store.memory(gone[0]).version == 1, "an id cannot be used again after it was erased"


@on_fresh
def check_memories_of_two_stores_meet_without_a_loss(here: Store, there: Store) -> None:
    shared, ahead = fact("shared"), fact("ahead")
    for store in (here, there):
        kept(store, Remembered((shared, ahead, fact("same"))))
    kept(there, Remembered((replace(ahead, version=2, text="later"), fact("theirs"))))
    ours, theirs = (
        replace(shared, version=2, standing=Standing.FORGOTTEN),
        replace(shared, version=2, text="corrected"),
    )
    kept(here, Remembered((ours,)))
    kept(there, Remembered((theirs, replace(theirs, version=3, text="corrected twice"))))
    rows = list(there.dump())
    assert here.load(rows) == 5, "not exactly what is new was taken in"
    assert here.memory(ahead.id).text == "later", (
        "a version that follows ours was not taken in as it is"
    )
    assert here.memory(shared.id).standing is Standing.FORGOTTEN, (
        "what holds here was changed by what holds elsewhere"
    )
    texts = [memory.text for memory in here.memory_versions(shared.id)]
    assert texts == [shared.text, ours.text, "corrected", "corrected twice", ours.text], (
        "a version was lost"
    )
    assert [memory.version for memory in here.memory_versions(shared.id)] == [1, 2, 3, 4, 5], (
        "versions have wrong numbers"
    )
    assert here.load(rows) == 0, "loading twice brought something new"
    there.load(list(here.dump()))
    assert there.memory(shared.id).text == "corrected twice", (
        "what held there was changed by what holds here"
    )
    assert (here.load(list(there.dump())), there.load(list(here.dump()))) == (0, 0), (
        "two stores never agree"
    )
    alien = fact("shared", kind=MemoryKind.LEARNING)
    before = list(here.dump())
    assert raises(BadInput, lambda: here.load([fact("x"), alien])), (
        "one memory became a memory of two kinds"
    )
    assert list(here.dump()) == before, "a load that failed left something behind"


@on_fresh
def check_a_session_goes_out_with_its_memories(store: Store, other: Store) -> None:
    mine, its = (
        StoreTalk(store).turn("hello", "hi").session,
        StoreTalk(store, key="k").turn("hello", "hi").session,
    )
    a, b = (
        fact("a", source=Provenance("rules", mine)),
        fact("b", source=Provenance("rules", its)),
    )
    c = fact("c", source=Provenance("rules", mine))
    merged = replace(a, version=2, source=Provenance("rules", its), standing=Standing.MERGED)
    inside, across = _link("a", "c"), _link("a", "b")
    used = MemoryUse(a.id, Used.READ, 5.0, mine)
    kept(
        store,
        Remembered(
            (a, b, c, merged),
            (inside, across),
            (used, replace(used, session=its), replace(used, memory=b.id)),
        ),
    )
    rows = [
        row for row in store.dump(mine) if isinstance(row, MemoryRecord | MemoryLink | MemoryUse)
    ]
    assert rows == [a, c, merged, inside, used], (
        "a session goes out with other memories than its own"
    )
    other.load(store.dump(mine))
    assert other.memory(a.id) == merged, "an older version holds where a session was loaded"
    assert list(read_lines(write_lines(rows))) == rows, "memories came back changed from text"


MEMORY_CHECKS = checks_in(globals())


# --- below the checks
# --------------------------------------------------------------------------------------------------


def _of_kind(kind: MemoryKind, session: SessionId | None) -> MemoryRecord:
    details: dict[MemoryKind, Detail] = {
        MemoryKind.EPISODE: Episode(
            goal="make it work",
            phase="testing",
            turns=(1, 4),
            branch=2,
            seconds=12.5,
            actions=(Action(0.5, "bash", "make"), Action(1.0, "bash", "make test", failed=True)),
            more_actions=3,
            troubles=(
                Trouble(
                    "exit 1", "no rule", "bash", "make", ("edit Makefile",), True, PageId("p1")
                ),
            ),
            files=("a.py",),
            artifacts=("b.py",),
            decisions=("use make",),
            constraints=("without cmake",),
            answer="It works with make.",
            tokens=99,
        ),
        MemoryKind.FACT: Fact("build"),
        MemoryKind.PROCEDURE: Procedure("when it breaks", ("look", "mend")),
        MemoryKind.PITFALL: Pitfall("cmake", "is not there", "make"),
        MemoryKind.LEDGER: Checkpoint(("one",), "two", ("three",), ("none",)),
        MemoryKind.HANDOFF: Checkpoint(("one",), "two", ("three",), (), "reviewer"),
        MemoryKind.LEARNING: None,
        MemoryKind.ARRANGEMENT: Arrangement(
            {"auth": 0.5}, {"login": "auth"}, {"web": ("auth", "http")}, ("old",), True, 3.0
        ),
    }
    return MemoryRecord(
        id=MemoryId(f"{kind}-1"),
        kind=kind,
        title=f"a {kind}",
        text=f"what a {kind} says " * 80,
        created=1767571200.25,
        source=Provenance(
            "rules", session, "coder", (PageId("p1"), PageId("p2")), ("bash", "a.py")
        ),
        detail=details[kind],
        topics=("build", "zażółć"),
        task=Task.DEBUGGING,
        ending=Ending.PARTIAL,
        confidence=0.1 + 0.2,
        trust=Trust.OUTSIDE,
        standing=Standing.CANDIDATE,
        valid_until=1767571201.0,
        pinned=True,
        tokens=7,
        time=1767571202.0,
        run="first",
        why="it was said",
    )


def _link(of: str, to: str, relation: Relation = Relation.DERIVED_FROM) -> MemoryLink:
    return MemoryLink(
        MemoryId(f"sem-{of}" if of else ""),
        MemoryId(f"sem-{to}" if to else ""),
        relation,
        1.0,
        "work",
    )


def _deposit(good: MemoryRecord, bad: MemoryRecord | MemoryLink | MemoryUse) -> Remembered:
    match bad:
        case MemoryRecord():
            return Remembered((good, bad) if bad.id != good.id else (bad,))
        case MemoryLink():
            return Remembered((good,), (bad,))
        case MemoryUse():
            return Remembered((good,), (), (bad,))


def _of(row: Row, ids: list[MemoryId]) -> bool:
    match row:
        case MemoryRecord():
            return row.id in ids
        case MemoryLink():
            return row.of in ids or row.to in ids
        case MemoryUse():
            return row.memory in ids
        case _:
            return False
