"""What `hotset learn now` does: sessions that ended are observed, teachers propose changes from the
earlier ones and replay them on the later ones, and what follows is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotset.config import Config
from hotset.learn.state import may_propose
from hotset.replay.formats.export import stored_sessions
from hotset.replay.report import Ruling
from hotset.replay.teach import TaughtChange, gate_explored, teach
from hotset.replay.teaching import TeachingMaterial
from hotset.replay.trials import Trials, teaching_sessions
from hotset.runtime.learned_state import learn_event, note_teaching, read_state, take_decisions
from hotset.runtime.learning import learned_knobs, pinned_knobs
from hotset.runtime.observe import QUIET_SECONDS, observe_ended
from hotset.runtime.reader import Store
from hotset.surfaces.cli.progress import counting

_MOST_SESSIONS = 150  # the latest, that are replayed


def learn_from_sessions(
    store: Store,
    config: Config,
    seconds: float,
    *,
    everything: bool,
    quiet: bool,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[int, tuple[TaughtChange, ...]]:
    """The number of sessions that were observed, and the lessons. `everything`: also sessions that
    ended just now; `stopped`: ends it early."""
    now = time.time()
    seen = observe_ended(store, config, now, quiet=0.0 if everything else QUIET_SECONDS)
    take_decisions(store, now)
    until = time.monotonic() + seconds
    lessons: list[TaughtChange] = []
    state = read_state(store)
    if state.is_on:
        with _progress(until, stopped, config, quiet=quiet) as trials:
            recorded = list(stored_sessions(store))[-_MOST_SESSIONS:]
            material = TeachingMaterial(teaching_sessions(recorded, trials.ruling), trials, store)
            knobs = learned_knobs(config, state)
            for lesson in gate_explored(material, knobs, state):
                lessons.append(lesson)
                store.keep(learn_event("ChangeGated", lesson.verdict, time.time())).result()
            for lesson in teach(material, knobs, pinned=pinned_knobs(config), state=state):
                if may_propose(state, lesson.change, passed=lesson.verdict.passed):
                    lessons.append(lesson)
                    _keep(store, lesson)
    take_decisions(store, time.time())
    note_teaching(store, time.time())
    return seen, tuple(lessons)


def _keep(store: Store, lesson: TaughtChange) -> None:
    now = time.time()
    store.keep(
        learn_event("ChangeProposed", lesson.change, now),
        learn_event("ChangeGated", lesson.verdict, now),
    ).result()


@contextmanager
def _progress(
    until: float, stopped: Callable[[], bool], config: Config, *, quiet: bool
) -> Iterator[Trials]:
    with counting("replaying", quiet=quiet, until=until) as counter:

        def clock() -> float:
            return until if stopped() else time.monotonic()

        def step(_: int) -> None:
            counter.step()

        yield Trials(Ruling(config.prices), until, clock, step)
