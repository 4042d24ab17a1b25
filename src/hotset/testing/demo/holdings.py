"""What the demonstration's store holds at a moment: counted there, not kept in mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hotset.nouns.page import Kind, Page
from hotset.nouns.turn import Outcome
from hotset.store.port import Census, Where
from hotset.store.sqlite import SqliteStore


@dataclass(frozen=True, slots=True)
class Holdings:
    census: Census
    done: int
    """Turns whose reply is there whole."""
    unfinished: int
    """Turns whose reply never came to its end."""
    branches: Mapping[str, int]
    """Turns by session and branch, as `session/branch`."""
    kinds: Mapping[str, tuple[int, int]]
    """Pages and bytes by kind."""
    largest: Page | None
    """The largest tool result."""


def look(folder: Path) -> Holdings:
    with closing(SqliteStore.open(folder)) as store:
        pages, sizes = Counter[str](), Counter[str]()
        largest: Page | None = None
        for page in store.pages(Where()):
            pages[page.kind] += 1
            sizes[page.kind] += page.size
            if page.kind.family is Kind.TOOL_RESULT and (
                largest is None or page.size > largest.size
            ):
                largest = page
        turns = [turn for session in store.sessions() for turn in store.turns(session.id)]
        return Holdings(
            census=store.census(),
            done=sum(turn.outcome is Outcome.DONE for turn in turns),
            unfinished=sum(turn.outcome is not Outcome.DONE for turn in turns),
            branches=Counter(f"{turn.session}/{turn.branch}" for turn in turns),
            kinds={kind: (count, sizes[kind]) for kind, count in pages.most_common()},
            largest=largest,
        )
