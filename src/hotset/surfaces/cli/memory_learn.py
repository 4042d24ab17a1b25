"""`hotset memory learn`: memories from sessions that people already have."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hotset.config import Config
from hotset.errors import BadInput, NotFound
from hotset.nouns.memory import MemoryRecord
from hotset.replay.formats import find, read
from hotset.replay.learning import (
    LEARNABLE,
    KnownSessions,
    LearnableSession,
    RecordState,
    keep_learned,
    plan_learning,
)
from hotset.runtime.reader import empty_where_missing, open_memories
from hotset.surfaces.cli.consent import recordings
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.memories import (
    count_memories,
    encode_new,
    index_new,
    open_project_memories,
    progress,
)
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.progress import counting
from hotset.surfaces.cli.replay import print_notes
from hotset.surfaces.cli.terminal import count, emit, emit_json, table

if TYPE_CHECKING:
    from hotset.sources.memory import ProjectMemories

_WHY_NOT = {
    RecordState.KNOWN: "known already",
    RecordState.LIVE: "went through hotset",
    RecordState.ELSEWHERE: "about other folders (--any-folder takes them too)",
    RecordState.SUBAGENT: "of subagents",
    RecordState.UNANSWERED: "without a reply",
}


@dataclass(slots=True)
class _Learned:
    """What became of the sessions that were read."""

    states: Counter[RecordState] = field(default_factory=Counter)
    turns: int = 0
    notes: list[str] = field(default_factory=list)
    memories: Sequence[MemoryRecord] = ()

    @property
    def sessions(self) -> int:
        return sum(self.states[state] for state in LEARNABLE)


@click.command(
    epilog=examples(
        "hotset memory learn                                where sessions of this project may be",
        "hotset memory learn ~/.claude/projects/-home-me-shop --dry-run",
        "hotset memory learn ~/.codex/sessions",
        "hotset memory learn export.jsonl old-sessions/ --any-folder",
    )
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@project_options
@click.option("--dry-run", is_flag=True, help="Show what would be learned, and keep nothing.")
@click.option(
    "--any-folder", is_flag=True, help="Also sessions that were about another folder than this one."
)
@as_json
def learn(
    chosen: ProjectOptions,
    paths: tuple[Path, ...],
    *,
    dry_run: bool,
    any_folder: bool,
    as_json: bool,
) -> int:
    """Make memories from sessions that you already have, by the same rules as for sessions that go
    through hotset.

    PATH is a file or a folder of sessions: Claude Code and Codex transcripts, opencode's export or
    its storage, OpenAI or Anthropic messages, what `hotset export` writes; gzipped or not. To learn
    a session again changes nothing; one that has grown adds what is new. Secrets are left out of
    memories. Without PATH nothing is read: it says where sessions of this project may be.
    """
    config = chosen.config()
    if not paths:
        return _print_recordings(chosen, config, as_json=as_json)
    files = list(dict.fromkeys(file for path in paths for file in find(path)))
    named = frozenset(paths)
    project = None if any_folder else config.project
    with open_project_memories(chosen, makes=not dry_run, lists=True) as memories:
        known = KnownSessions(memories.store())
        learned = _Learned()
        sessions = _learnable(files, named, known, project, learned, quiet=chosen.quiet)
        with _scratch(config) if dry_run else _same(memories) as target:
            for session in sessions:
                keep_learned(target.store(), session)
            if learned.sessions or learned.states[RecordState.KNOWN]:  # a run that was cut short
                learned.memories = _remember(target, chosen, is_dry=dry_run)
    print_notes(learned.notes, quiet=chosen.quiet)
    if as_json:
        emit_json(_as_json(learned, dry_run=dry_run))
    else:
        _print_learned(chosen, learned, paths, dry_run=dry_run)
    return OK if learned.sessions or learned.states[RecordState.KNOWN] else FOUND


def _print_recordings(chosen: ProjectOptions, config: Config, *, as_json: bool) -> int:
    found = list(recordings(config.project, os.environ))
    if as_json:
        emit_json([{"client": name, "folder": folder} for name, folder in found])
    else:
        for name, folder in found:
            emit(f"{name}: {folder}")
    if found:
        names = " ".join(str(folder) for _, folder in found)
        chosen.say(f"nothing was read; to learn from these: {chosen.hint(f'memory learn {names}')}")
        return OK
    chosen.say(
        f"no known client has sessions of {config.project}; name a file or a folder: "
        f"{chosen.hint('memory learn PATH')}"
    )
    return FOUND


def _learnable(
    files: Sequence[Path],
    named: frozenset[Path],
    known: KnownSessions,
    project: Path | None,
    learned: _Learned,
    *,
    quiet: bool,
) -> Iterator[LearnableSession]:
    """The sessions that are new or have grown; all are counted in `learned`. A file that was named
    must be readable; another one is noted."""
    errors: list[BadInput] = []
    total = len(files) if len(files) > 1 else None  # of one file: its sessions, however many
    with counting("reading sessions", total, quiet=quiet) as counter:
        for file in files:
            counter.step(1 if total else 0)
            try:
                for recorded in read([file], note=learned.notes.append):
                    counter.step(0 if total else 1)
                    session = plan_learning(recorded, file.resolve(), known, project)
                    learned.states[session.state] += 1
                    if session.state in LEARNABLE:
                        learned.turns += len(session.turns)
                        yield session
            except BadInput as error:
                if file in named:
                    raise
                errors.append(error)
    if errors and not learned.states:
        raise errors[0]
    learned.notes += [f"passed over: {error}" for error in errors]
    if not learned.states:
        raise NotFound("there is nothing to learn: no session in these files")


def _remember(
    memories: ProjectMemories, chosen: ProjectOptions, *, is_dry: bool
) -> Sequence[MemoryRecord]:
    """Makes memories of what was just kept; returns those that are new or changed."""
    begun = time.time()
    encode_new(memories, chosen)
    with progress(chosen) as moved:
        memories.consolidate(moved)
    if not is_dry:
        index_new(memories, chosen)
    return [each for each in memories.list(limit=None) if each.time >= begun]


@contextmanager
def _scratch(config: Config) -> Iterator[ProjectMemories]:
    """Memories that are gone afterwards."""
    with empty_where_missing(config, is_there=False) as there, open_memories(there) as memories:
        yield memories


@contextmanager
def _same(memories: ProjectMemories) -> Iterator[ProjectMemories]:
    yield memories


def _as_json(learned: _Learned, *, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "sessions": {str(state): learned.states[state] for state in RecordState},
        "turns": learned.turns,
        "memories": learned.memories,
        "passed_over": learned.notes,
    }


def _print_learned(
    chosen: ProjectOptions, learned: _Learned, paths: Sequence[Path], *, dry_run: bool
) -> None:
    new, grown = learned.states[RecordState.NEW], learned.states[RecordState.GROWN]
    parts = [f"{count(new, 'session')} {'to learn' if dry_run else 'learned'}"]
    parts += [f"{grown:,} grown"] if grown else []
    parts += [
        f"{many:,} {why}" for state, why in _WHY_NOT.items() if (many := learned.states[state])
    ]
    emit(", ".join(parts))
    if not learned.memories:
        return
    kinds = Counter(str(each.kind) for each in learned.memories)
    table(
        ("memories", "kind"),
        [(f"{many:,}", kind) for kind, many in kinds.most_common()],
        right=(0,),
    )
    if dry_run:
        chosen.say("nothing was kept; without --dry-run it is")
        return
    chosen.say(
        f"{count_memories(len(learned.memories))}; look at them: {chosen.hint('memory review')}"
    )
    chosen.say(f"to take it back: {chosen.hint(f'memory rollback --source {paths[0].resolve()}')}")
