"""Memories for the tests of what becomes of them."""

from __future__ import annotations

import random

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Action,
    Ending,
    Episode,
    Fact,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Pitfall,
    Procedure,
    Provenance,
    Relation,
    Standing,
    Trouble,
    Trust,
)
from hotset.sources.memory.kinds import memory_id
from hotset.testing.fakes import HashingEmbedder

DAY = 86_400.0
EMBEDDER = HashingEmbedder(64)


def fact(
    text,
    *,
    session="s1",
    created=1.0,
    subject="",
    trust=Trust.PERSON,
    confidence=0.6,
    places=(),
    **more,
):
    return MemoryRecord(
        id=memory_id(MemoryKind.FACT, f"{session}\0{created}\0{text}"),
        kind=MemoryKind.FACT,
        title=text[:60],
        text=text,
        created=created,
        source=Provenance("rules", session, "agent", (f"{session}-page-{created}",), tuple(places)),
        detail=Fact(subject),
        confidence=confidence,
        trust=trust,
        **more,
    )


def episode(
    goal,
    *,
    session,
    created,
    files=("src/auth.py",),
    commands=("make test",),
    troubles=(),
    ending=Ending.SUCCESS,
    places=(),
    **more,
):
    trust = more.pop("trust", Trust.OUTCOME)
    return MemoryRecord(
        id=memory_id(MemoryKind.EPISODE, f"{session}\0{created}", created),
        kind=MemoryKind.EPISODE,
        title=goal,
        text=f"Asked: {goal}",
        created=created,
        source=Provenance("rules", session, "agent", (f"{session}-page",), tuple(places)),
        detail=Episode(
            goal=goal,
            actions=tuple(
                Action(float(at), "Bash", command) for at, command in enumerate(commands)
            ),
            troubles=tuple(troubles),
            files=tuple(files),
            artifacts=tuple(files[:1]),
        ),
        topics=("auth",),
        ending=ending,
        trust=trust,
        **more,
    )


def procedure(
    steps,
    *,
    session,
    created,
    trust=Trust.OUTCOME,
    standing=Standing.ACTIVE,
    when="Rotate the token",
):
    return MemoryRecord(
        id=memory_id(MemoryKind.PROCEDURE, f"{session}\0{steps}"),
        kind=MemoryKind.PROCEDURE,
        title=when,
        text=f"{when}: {'; '.join(steps)}",
        created=created,
        source=Provenance("rules", session, "agent", (f"{session}-page",)),
        detail=Procedure(when, tuple(steps)),
        ending=Ending.SUCCESS,
        confidence=0.8,
        trust=trust,
        standing=standing,
    )


def pitfall(
    what,
    instead,
    *,
    session,
    created=1.0,
    trust=Trust.OUTCOME,
    standing=Standing.ACTIVE,
    by="rules",
):
    return MemoryRecord(
        id=memory_id(MemoryKind.PITFALL, f"{session}\0{what}"),
        kind=MemoryKind.PITFALL,
        title=what,
        text=f"{what}. What resolved it: {instead}.",
        created=created,
        source=Provenance(by, session, "agent", (f"{session}-page",)),
        detail=Pitfall(what, "it says so", instead),
        confidence=0.6,
        trust=trust,
        standing=standing,
    )


def trouble(command="make migrate", said="error: relation already exists", *, resolved=()):
    return Trouble("error", said, "Bash", command, tuple(resolved), is_resolved=bool(resolved))


def derived(one, other, at=1.0):
    return MemoryLink(one.id, other.id, Relation.DERIVED_FROM, at)


def keep(store, *memories, links=()):
    store.keep(Remembered(tuple(memories), tuple(links))).result(120)


GOALS = (
    (
        "rotate the login token of the auth service",
        ("src/auth/token.py", "src/auth/service.py"),
        ("make rotate", "make test"),
    ),
    (
        "cache the rendered report pages",
        ("src/report/cache.py", "src/report/pages.py"),
        ("make report", "make lint"),
    ),
    (
        "migrate the billing table to cents",
        ("src/billing/table.py", "src/billing/cents.py"),
        ("make migrate", "make bill"),
    ),
    (
        "speed up the search index build",
        ("src/search/index.py", "src/search/build.py"),
        ("make index", "make bench"),
    ),
)
ASIDES = ("please", "now", "again", "quickly", "for the customer", "before Friday")


def varied(many, seed=1):
    """Episodes about a few goals, each worded a little differently, and some that are about nothing
    else."""
    rng = random.Random(seed)
    found = []
    for number in range(many):
        goal, files, commands = GOALS[number % len(GOALS)]
        created = 1000.0 + number * 50
        if number % 7 == 6:
            words = " ".join(f"w{rng.randrange(10_000)}" for _ in range(8))
            found.append(
                episode(
                    f"{words} {number}",
                    session=f"s{number}",
                    created=created,
                    files=(f"src/x{number}.py",),
                    commands=(),
                )
            )
        else:
            said = f"{goal} {rng.choice(ASIDES)}"
            troubles = (trouble("make audit"),) if "migrate" in goal else ()
            found.append(
                episode(
                    said,
                    session=f"s{number}",
                    created=created,
                    files=files,
                    commands=commands,
                    troubles=troubles,
                )
            )
    return found


def filled(store, many=120):
    """A store with episodes, procedures that some led to, facts that repeat or replace each other,
    and advice that waits."""
    for number, each in enumerate(varied(many)):
        recipe = procedure(
            ("run `make rotate`", "run `make test`"), session=f"s{number}", created=each.created
        )
        links = (derived(recipe, each),) if "rotate" in each.title else ()
        keep(store, each, *((recipe,) if links else ()), links=links)
    for number in range(12):
        at = 5000.0 + number
        keep(
            store,
            fact(
                (
                    f"We deploy the {('web', 'api', 'job')[number % 3]} service on port "
                    f"{8000 + number % 3}"
                ),
                session=f"f{number}",
                created=at,
            ),
        )
    keep(
        store,
        fact("The retry cap is 60 seconds", session="g1", created=6000.0, subject="retry cap"),
    )
    keep(
        store,
        fact("The retry cap is 30 seconds", session="g2", created=7000.0, subject="retry cap"),
    )
    keep(store, pitfall("`npm test` fails with exit 1", "ran `bun test` instead", session="h1"))
    waiting = pitfall(
        "`npm test` fails with exit 1 here",
        "ran `bun test` instead",
        session="h2",
        trust=Trust.AGENT,
        standing=Standing.CANDIDATE,
        by="model",
    )
    keep(store, waiting)
