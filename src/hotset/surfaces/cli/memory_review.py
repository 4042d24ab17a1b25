"""`hotset memory review|suggest|promote`: a person's verdicts on new memories, and confirmed ones
as lines for AGENTS.md or as skills."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hotset.errors import BadInput, NotFound
from hotset.nouns.memory import MemoryRecord
from hotset.sources.memory import REVIEW, ReviewVerdict, SkillDraft, as_diff, run_name
from hotset.surfaces.cli.consent import ask_yes, can_ask, yes_option
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.memories import (
    ago,
    as_text,
    colour,
    count_memories,
    no_encode,
    open_project_memories,
    open_updated_memories,
    print_list,
    state,
    title,
    wrap_lines,
)
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, plain, say
from hotset.surfaces.cli.tools import open_tools

if TYPE_CHECKING:
    from hotset.sources.memory import ProjectMemories

_FILES = ("AGENTS.md", "CLAUDE.md")
"""The first that exists gets the suggestions; the first of all if none does."""

_SKILLS = Path(".agents", "skills")
_LONGEST_FILE = 1_000_000  # bytes of AGENTS.md
_MOST_LINES = 12  # of one memory

_WORDS: dict[ReviewVerdict, str] = {
    ReviewVerdict.KEEP: "kept",
    ReviewVerdict.CORRECT: "corrected",
    ReviewVerdict.DROP: "dropped",
    ReviewVerdict.NOT_A_PERSON: "no longer a person's words",
}
_QUESTION = "[k]eep  [c]orrect  [d]rop  [n]ot a person's words  [s]kip  [q]uit"
_CONFLICT = "[1] holds  [2] holds  [b]oth hold  [s]kip  [q]uit"


@dataclass(frozen=True, slots=True)
class _Decision:
    """What a person decided by an option."""

    id: str
    verdict: ReviewVerdict
    text: str = ""


@click.command(
    epilog=examples(
        "hotset memory review                              one by one, in a terminal",
        "hotset memory review --json                       what waits for you",
        "hotset memory review --keep sem-7ha2c0de --drop pit-3k9f2mqx",
        'hotset memory review --correct sem-7ha2c0de "Releases are cut on Wednesdays"',
        "hotset memory review --holds sem-7ha2c0de sem-2b4k9xyz   the first replaces the second",
    )
)
@project_options
@no_encode
@click.option("--keep", "kept", metavar="ID", multiple=True, type=as_text, help="It is right.")
@click.option("--drop", "dropped", metavar="ID", multiple=True, type=as_text, help="Forget it.")
@click.option(
    "--correct",
    "corrected",
    metavar="ID TEXT",
    nargs=2,
    multiple=True,
    type=as_text,
    help="It should say TEXT.",
)
@click.option(
    "--not-a-person",
    "theirs",
    metavar="ID",
    multiple=True,
    type=as_text,
    help="A tool, a file or a model said it.",
)
@click.option(
    "--holds",
    "settled",
    metavar="ID OTHER",
    nargs=2,
    multiple=True,
    type=as_text,
    help="Of two that contradict each other, the first holds.",
)
@click.option(
    "--both",
    "accepted",
    metavar="ID OTHER",
    nargs=2,
    multiple=True,
    type=as_text,
    help="Both hold; you are not asked again.",
)
@as_json
def review(
    chosen: ProjectOptions,
    *,
    no_encode: bool,
    kept: tuple[str, ...],
    dropped: tuple[str, ...],
    corrected: tuple[tuple[str, str], ...],
    theirs: tuple[str, ...],
    settled: tuple[tuple[str, str], ...],
    accepted: tuple[tuple[str, str], ...],
    as_json: bool,
) -> int:
    """Look at new memories one by one: keep, correct or drop each, or say that they are not a
    person's words; and say which of two holds where they contradict each other.

    It goes on where you stopped. What you decide is kept with the memory, and `undo` takes back a
    whole review.
    """
    decisions = [
        *(_Decision(id, ReviewVerdict.KEEP) for id in kept),
        *(_Decision(id, ReviewVerdict.DROP) for id in dropped),
        *(_Decision(id, ReviewVerdict.CORRECT, text) for id, text in corrected),
        *(_Decision(id, ReviewVerdict.NOT_A_PERSON) for id in theirs),
    ]
    run = run_name(REVIEW, time.time())
    with open_updated_memories(chosen, no_encode=no_encode, lists=True) as memories:
        if decisions or settled or accepted:
            done = [memories.judge(each.id, each.verdict, run, each.text) for each in decisions]
            done += [memories.settle_conflict(keep, drop, run) for keep, drop in settled]
            for one, other in accepted:
                memories.accept_both(one, other)
                done += [memories.get(one), memories.get(other)]
            return _print_done(chosen, done, run, as_json=as_json)
        waiting, conflicts = memories.unreviewed(), memories.conflicts()
        if as_json:
            emit_json({"waiting": waiting, "conflicts": conflicts})
        elif not waiting and not conflicts:
            chosen.say("nothing waits for you")
        elif can_ask():
            _ask_all(chosen, memories, waiting, conflicts, run)
        else:
            _print_waiting(chosen, waiting, conflicts)
    return OK if waiting or conflicts else FOUND


def _print_done(
    chosen: ProjectOptions, done: Sequence[MemoryRecord], run: str, *, as_json: bool
) -> int:
    if as_json:
        emit_json({"run": run, "memories": done})
        return OK
    for memory in done:
        emit(memory.id)
        chosen.say(f"  {title(memory)}")
    if any(memory.run == run for memory in done):
        chosen.say(f"to take it back: {chosen.hint(f'memory undo {run}')}")
    return OK


def _print_waiting(
    chosen: ProjectOptions,
    waiting: Sequence[MemoryRecord],
    conflicts: Sequence[tuple[MemoryRecord, MemoryRecord]],
) -> None:
    if waiting:
        print_list(waiting, time.time())
    for one, other in conflicts:
        emit(f"{one.id} or {other.id}: which one holds?")
    chosen.say(
        f"{count_memories(len(waiting))} to look at, {count(len(conflicts), 'contradiction')}; "
        f"decide in a terminal, or: {chosen.hint('memory review --keep ID --drop ID')}"
    )


def _ask_all(
    chosen: ProjectOptions,
    memories: ProjectMemories,
    waiting: Sequence[MemoryRecord],
    conflicts: Sequence[tuple[MemoryRecord, MemoryRecord]],
    run: str,
) -> None:
    """Asks about each, until there is none left or the person stops."""
    decided = 0
    questions: list[MemoryRecord | tuple[MemoryRecord, MemoryRecord]] = [*conflicts, *waiting]
    for number, asked in enumerate(questions, 1):
        say(click.style(f"\n{number} of {len(questions)}", dim=True))
        if isinstance(asked, tuple):
            _show_pair(*asked)
            if (key := _key(_CONFLICT)) == "q":
                break
            decided += _settle(memories, *asked, key, run)
        else:
            _show(asked)
            if (key := _key(_QUESTION)) == "q":
                break
            decided += _decide(memories, asked, key, run)
    left = len(questions) - decided
    say(f"\n{count_memories(decided)} decided, {left:,} left")
    if decided:
        say(f"to take it back: {chosen.hint(f'memory undo {run}')}")


def _key(question: str) -> str:
    """The letter that a person typed, one of those in brackets; Ctrl-C quits."""
    allowed = [part[1] for part in question.split() if part.startswith("[")]
    while True:
        try:
            typed = click.prompt(
                question, prompt_suffix=": ", default="s", show_default=False, err=True
            )
        except click.Abort:
            return "q"
        if (key := str(typed).strip()[:1].lower()) in allowed:
            return key
        say(f"one of {', '.join(allowed)}")


def _show(memory: MemoryRecord) -> None:
    when = ago(memory.created, time.time())
    facts = [str(memory.kind), state(memory), f"trust: {memory.trust}", when]
    emit(
        click.style(memory.id, fg=colour(memory.kind), bold=True)
        + f"  {', '.join(filter(None, facts))}"
    )
    emit("\n".join(wrap_lines(memory.text, "  ", _MOST_LINES)))


def _show_pair(one: MemoryRecord, other: MemoryRecord) -> None:
    emit("These contradict each other. Which one holds?")
    for number, memory in enumerate((one, other), 1):
        emit(f"{number}  {memory.id}, {ago(memory.created, time.time())}")
        emit("\n".join(wrap_lines(memory.text, "   ", _MOST_LINES)))


def _settle(
    memories: ProjectMemories, one: MemoryRecord, other: MemoryRecord, key: str, run: str
) -> bool:
    if key == "1":
        memories.settle_conflict(one.id, other.id, run)
    elif key == "2":
        memories.settle_conflict(other.id, one.id, run)
    elif key == "b":
        memories.accept_both(one.id, other.id)
    return key != "s"


def _decide(memories: ProjectMemories, memory: MemoryRecord, key: str, run: str) -> bool:
    verdicts = {
        "k": ReviewVerdict.KEEP,
        "c": ReviewVerdict.CORRECT,
        "d": ReviewVerdict.DROP,
        "n": ReviewVerdict.NOT_A_PERSON,
    }
    if key not in verdicts:
        return False
    text = ""
    if key == "c":
        asked = "What should it say? (empty: skip)"
        text = str(click.prompt(asked, default="", show_default=False, err=True))
        if not text.strip():
            return False
    memories.judge(memory.id, verdicts[key], run, text)
    say(f"  {_WORDS[verdicts[key]]}")
    return True


@click.command(
    epilog=examples(
        "hotset memory suggest",
        "hotset memory suggest | git apply",
        "hotset memory suggest --file CLAUDE.md",
        "hotset memory suggest --skills               procedures that proved themselves",
    )
)
@project_options
@no_encode
@click.option(
    "--file",
    "name",
    metavar="NAME",
    default="",
    help="The file in the project. [default: AGENTS.md or CLAUDE.md, whichever is there]",
)
@click.option("--skills", is_flag=True, help="Show proven procedures as drafts of skills instead.")
@as_json
def suggest(
    chosen: ProjectOptions, *, no_encode: bool, name: str, skills: bool, as_json: bool
) -> int:
    """Print what you confirmed, and the checks that verified work, as a diff for AGENTS.md or
    CLAUDE.md. Nothing is written.

    What the file says already is left out.
    """
    project = chosen.config().project
    with open_updated_memories(chosen, no_encode=no_encode, lists=True) as memories:
        if skills:
            return _print_drafts(chosen, memories.skills(), as_json=as_json)
        name = name or next((each for each in _FILES if (project / each).is_file()), _FILES[0])
        if not (project / name).resolve().is_relative_to(project.resolve()):
            raise BadInput(f"{name} is not in the project {project}")
        before = _read(project / name)
        after = memories.suggest(before or "")
    diff = as_diff(name, before, after) if after != (before or "") else ""
    if as_json:
        emit_json({"file": name, "diff": diff})
    elif diff:
        # a pipe gets every byte: `git apply` compares them with the file's
        click.echo(plain(diff) if sys.stdout.isatty() else diff.encode(), nl=False)
        apply = "git apply" if Path.cwd() == project else f"git -C {project} apply"
        chosen.say(f"nothing was written; to apply it: {chosen.hint('memory suggest')} | {apply}")
    else:
        chosen.say(
            f"nothing that {name} does not say already; confirm memories first: "
            f"{chosen.hint('memory review')}"
        )
    return OK if diff else FOUND


def _read(file: Path) -> str | None:
    """The text of a file in the project; None if there is none."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_LONGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from None
    try:
        if len(content) > _LONGEST_FILE:
            raise BadInput(f"{file} is too large to be suggested to")
        return content.decode()
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8, so no diff can be made for it") from None


def _print_drafts(chosen: ProjectOptions, drafts: Sequence[SkillDraft], *, as_json: bool) -> int:
    if as_json:
        emit_json(drafts)
        return OK if drafts else FOUND
    for draft in drafts:
        emit(click.style(f"{draft.procedure}  {draft.name}", bold=True))
        emit(plain(draft.text))
    if drafts:
        chosen.say(
            f"nothing was written; to make the first one a skill: "
            f"{chosen.hint(f'memory promote {drafts[0].procedure}')}"
        )
        return OK
    chosen.say("no procedure has succeeded in three sessions yet")
    return FOUND


@click.command(
    epilog=examples(
        "hotset memory suggest --skills          which procedures proved themselves",
        "hotset memory promote proc-3k9f2mqx",
        "hotset memory promote proc-3k9f2mqx --name release --yes",
    )
)
@click.argument("id", type=as_text)
@project_options
@click.option("--name", metavar="NAME", default="", help="Of the skill. [default: by its title]")
@yes_option
@as_json
def promote(chosen: ProjectOptions, id: str, *, name: str, yes: bool, as_json: bool) -> int:
    """Make a skill of a procedure that succeeded in three sessions: a SKILL.md in .agents/skills of
    this project, which agents find with find_tools.

    It shows the draft and asks first. The file is yours to edit.
    """
    config = chosen.config()
    with open_project_memories(chosen) as memories:
        memory = memories.get(id)
        draft = next((each for each in memories.skills() if each.procedure == memory.id), None)
    if draft is None:
        raise NotFound(
            f"{memory.id} has not two steps or more that succeeded in three sessions; see those "
            f"that have: "
            f"{chosen.hint('memory suggest --skills')}"
        )
    named = draft.named(name) if name else draft
    file = config.project / _SKILLS / named.name / "SKILL.md"
    if file.exists():
        raise BadInput(f"{file} exists already; edit it, or choose another --name")
    if not as_json:
        emit(plain(named.text))
    if not ask_yes(f"Write it to {file}?", yes=yes):
        return FOUND
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as new:
        new.write(named.text)
    with open_tools(config) as toolbox:
        toolbox.stock(0.0)
        for waiting in toolbox.waiting(named.name)[:1]:  # they saw all of it
            toolbox.catalogue.approve(named.name, waiting.digest)
    if as_json:
        emit_json({"skill": named.name, "file": file, "procedure": memory.id})
    else:
        emit(str(file))
    again = chosen.hint(f"tools approve {named.name}")
    chosen.say(f"agents find it now; to change it, edit the file and: {again}")
    return OK
