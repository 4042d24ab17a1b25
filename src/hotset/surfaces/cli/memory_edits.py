"""`hotset memory add|edit|confirm|forget|restore|rollback|consolidate|undo|export|import`: a
person's decisions about memories, and memories as files."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hotset.errors import BadInput
from hotset.nouns.memory import (
    DETAILS,
    Detail,
    Ending,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Pitfall,
    Procedure,
    Standing,
    Trust,
)
from hotset.sources.memory import DEFAULT_KIND, PERSON, WORDED_KINDS, describe_commit
from hotset.surfaces.cli.consent import ask_yes, yes_option
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.memories import (
    as_text,
    count_memories,
    no_encode,
    open_project_memories,
    open_updated_memories,
    print_list,
    progress,
    resolve_session,
    title,
    wrap_lines,
)
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, moment, say, table

if TYPE_CHECKING:
    from hotset.sources.memory import RollbackPlan

_SCISSORS = "# ------------------------ >8 ------------------------"
_BELOW = f"""
{_SCISSORS}
# The first line is the title, what follows is the text. Nothing below the scissors is kept; an unchanged file changes nothing.
# """  # noqa: E501
_WORDED = [str(kind) for kind in MemoryKind if kind in WORDED_KINDS]

_FORMATS = click.Choice(["markdown", "loki"])


@click.command(
    epilog=examples(
        'hotset memory add "Releases are cut on Tuesdays"',
        (
            'hotset memory add "Release" --kind procedure --step "make check" --step "make tag" '
            "--topic release"
        ),
        (
            'hotset memory add "pip install fails behind the proxy" --kind pitfall --instead "use '
            'the mirror"'
        ),
        "hotset memory add --kind handoff < notes.md",
    )
)
@click.argument("text", nargs=-1)
@project_options
@click.option("--kind", type=click.Choice(_WORDED), default=str(DEFAULT_KIND), show_default=True)
@click.option(
    "--title",
    "heading",
    metavar="LINE",
    default="",
    help="One line. [default: how the text begins]",
)
@click.option(
    "--topic", "topics", metavar="WORDS", multiple=True, help="What it is about; repeatable."
)
@click.option(
    "--step",
    "steps",
    metavar="TEXT",
    multiple=True,
    help="One step of a procedure; repeatable, in order.",
)
@click.option("--when", metavar="TEXT", default="", help="Of a procedure: when to use it.")
@click.option("--why", metavar="TEXT", default="", help="Of a pitfall: why it fails.")
@click.option("--instead", metavar="TEXT", default="", help="Of a pitfall: what to do instead.")
@as_json
def add(
    chosen: ProjectOptions,
    text: tuple[str, ...],
    *,
    kind: str,
    heading: str,
    topics: tuple[str, ...],
    as_json: bool,
    **parts: Any,
) -> int:
    """Remember something, in your own words: from the command line, from stdin, or from your
    editor.

    A memory that it contradicts or replaces stays, and is marked so.
    """
    detail = _detail(MemoryKind(kind), " ".join(text), **parts)
    words = " ".join(text) or _read_text(chosen)
    if not words.strip():
        chosen.say("the text is empty, so nothing is kept")
        return FOUND
    begun = time.time()
    with open_project_memories(chosen, makes=True) as memories:
        memory = memories.remember(
            _text_with_detail(words, detail),
            kind=kind,
            title=heading,
            topics=topics,
            by=PERSON,
            trust=Trust.PERSON,
            detail=detail,
        )
        links = memories.details(memory.id).links
    if as_json:
        emit_json(
            {
                "memory": memory,
                "links": [link for link in links if link.time >= begun],
                "known": memory.time < begun,
            }
        )
    else:
        emit(memory.id)
        chosen.say(describe_commit(memory, links, begun))
    return OK


@click.command(
    epilog=examples(
        "hotset memory edit sem-7ha2c0de                    opens your editor",
        'hotset memory edit sem-7ha2c0de --text "Releases are cut on Wednesdays"',
        "hotset memory edit ep-2026-01-05-3k9f2mqx --ending failure --pin",
    )
)
@click.argument("id", type=as_text)
@project_options
@click.option("--title", "heading", metavar="LINE", help="New title.")
@click.option("--text", metavar="TEXT", help="New text; - reads it from stdin.")
@click.option("--topic", "topics", metavar="WORDS", multiple=True, help="New topics; repeatable.")
@click.option("--ending", type=click.Choice(tuple(map(str, Ending))), help="How the work ended.")
@click.option("--confidence", type=click.FloatRange(0, 1), help="How sure it is.")
@click.option(
    "--pin/--unpin",
    "pinned",
    default=None,
    help="Always show it whole, whatever its age; or no longer.",
)
@as_json
def edit(
    chosen: ProjectOptions,
    id: str,
    *,
    heading: str | None,
    text: str | None,
    topics: tuple[str, ...],
    as_json: bool,
    **rest: Any,
) -> None:
    """Correct a memory. Earlier versions stay. Only you can change a memory that you have edited.

    Without a field, its title and text are opened in $EDITOR.
    """
    fields = {
        "title": heading,
        "text": sys.stdin.read() if text == "-" else text,
        "topics": topics or None,
        **rest,
    }
    changes = {name: value for name, value in fields.items() if value is not None}
    with open_project_memories(chosen) as memories:
        before = memories.get(id)
        changes = changes or _edit_in_editor(before)
        changes = {name: value for name, value in changes.items() if value != getattr(before, name)}
        memory = memories.edit(before.id, **changes) if changes else before
    if as_json:
        emit_json(memory)
    elif changes:
        emit(memory.id)
        chosen.say(
            f"version {memory.version} is kept; see them all: "
            f"{chosen.hint(f'memory show {memory.id}')}"
        )
    else:
        chosen.say("nothing changed")


@click.command(
    epilog=examples(
        "hotset memory confirm pit-7ha2c0de", "hotset memory list --standing candidate   what waits"
    )
)
@click.argument("ids", type=as_text, nargs=-1, required=True)
@project_options
@as_json
def confirm(chosen: ProjectOptions, ids: tuple[str, ...], *, as_json: bool) -> None:
    """Confirm memories that wait for you: from now on agents read them as advice."""
    with open_project_memories(chosen) as memories:
        confirmed = [memories.confirm(memory.id) for memory in [memories.get(id) for id in ids]]
    if as_json:
        emit_json(confirmed)
        return
    for memory in confirmed:
        emit(memory.id)
        chosen.say("\n".join([f"  {title(memory)}", *wrap_lines(memory.text, "  ")]))
        if memory.standing is not Standing.ACTIVE:
            say(
                f"  it is {memory.standing}, so agents do not read it until you restore it: "
                f"{chosen.hint(f'memory restore {memory.id}')}"
            )
    names = " ".join(memory.id for memory in confirmed)
    chosen.say(
        f"{count_memories(len(confirmed))} confirmed; to take it back: "
        f"{chosen.hint(f'memory forget {names}')}"
    )


@click.command(
    epilog=examples(
        "hotset memory forget sem-7ha2c0de",
        'hotset memory forget sem-7ha2c0de --why "it was a joke"',
        "hotset memory forget sem-7ha2c0de --erase",
    )
)
@click.argument("ids", type=as_text, nargs=-1, required=True)
@project_options
@click.option("--why", metavar="TEXT", default="", help="Kept with it.")
@click.option(
    "--erase", is_flag=True, help="Remove it from the disk with all its versions, for good."
)
@yes_option
@as_json
def forget(
    chosen: ProjectOptions, ids: tuple[str, ...], *, why: str, erase: bool, yes: bool, as_json: bool
) -> int:
    """Forget memories: no search finds them any more. `restore` brings them back, unless they were
    erased.

    The session itself stays in the store.
    """
    now = time.time()
    with open_project_memories(chosen) as memories:
        wanted = [memories.get(id) for id in ids]
        if erase:
            for memory in wanted:
                chosen.say(f"{memory.id}  {title(memory)}")
            if not ask_yes("Erase this for good?", yes=yes):
                return FOUND
        for memory in wanted:
            memories.forget(memory.id, erase=erase, why=why)
    if as_json:
        emit_json({"forgotten": [memory.id for memory in wanted], "erased": erase, "time": now})
        return OK
    for memory in wanted:
        emit(memory.id)
    names = " ".join(memory.id for memory in wanted)
    chosen.say(
        "erased for good"
        if erase
        else f"forgotten; to bring it back: {chosen.hint(f'memory restore {names}')}"
    )
    return OK


@click.command(
    epilog=examples(
        "hotset memory restore",
        "hotset memory restore sem-7ha2c0de",
        "hotset memory restore --run rollback-1a2b3c",
    )
)
@click.argument("ids", type=as_text, nargs=-1)
@project_options
@click.option(
    "--run",
    metavar="NAME",
    default="",
    help="Everything that this run removed (see: hotset memory undo).",
)
@as_json
def restore(chosen: ProjectOptions, ids: tuple[str, ...], *, run: str, as_json: bool) -> int:
    """Bring back what was forgotten or rolled back. Without IDS: what can be brought back."""
    with open_project_memories(chosen, lists=not ids and not run) as memories:
        if not ids and not run:
            gone = list(memories.list(standings=frozenset({Standing.FORGOTTEN}), limit=None))
            return _print_forgotten(gone, chosen, as_json=as_json)
        restored = memories.restore([memories.get(id).id for id in ids], run=run)
    if as_json:
        emit_json({"restored": restored})
    else:
        chosen.say(f"{count_memories(restored)} restored")
    return OK if restored else FOUND


@click.command(
    epilog=examples(
        "hotset memory rollback --source https://example.com/guide --dry-run",
        "hotset memory rollback --source docs/setup.md --yes",
        "hotset memory rollback --session last",
        "hotset memory rollback --agent codex",
    )
)
@project_options
@click.option("--source", metavar="PLACE", default="", help="A tool, an address or a file.")
@click.option(
    "--session",
    metavar="ID",
    type=as_text,
    default="",
    help="A session: an id, the beginning of one, or `last`.",
)
@click.option("--agent", metavar="NAME", default="", help="An agent.")
@click.option(
    "--by",
    metavar="NAME",
    default="",
    help="Who wrote it: rules, person, import, or a model.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be taken back, and change nothing.")
@yes_option
@as_json
def rollback(
    chosen: ProjectOptions, *, dry_run: bool, yes: bool, as_json: bool, **wanted: str
) -> int:
    """Remove all memories from one place, and those derived from it alone. `restore` brings them
    back.

    A memory that has other sources, too, stays, with less confidence.
    """
    if not any(wanted.values()):
        raise click.UsageError("where from? use --source, --session, --agent or --by")
    session = resolve_session(chosen, wanted["session"])
    where = {
        "place": wanted["source"],
        "session": session,
        "agent": wanted["agent"],
        "by": wanted["by"],
    }
    with open_project_memories(chosen) as memories:
        would = memories.plan_rollback(**where)
        changes = len(would.forgotten) + len(would.lessened)
        if not as_json:
            _print_rollback(would)
        taken: tuple[MemoryId, ...] = ()
        if changes and not dry_run:
            forgets, lessens = count_memories(len(would.forgotten)), len(would.lessened)
            if not ask_yes(f"Take back {forgets}, and change {lessens}?", yes=yes):
                return FOUND
            taken = memories.rollback(**where)
    if as_json:
        emit_json(
            {
                "memories": would.forgotten,
                "lessened": would.lessened,
                "revived": would.revived,
                "taken_back": taken,
            }
        )
    elif not changes:
        chosen.say("nothing is remembered from there")
    elif dry_run:
        chosen.say("nothing was changed")
    else:
        chosen.say(
            f"{count_memories(len(taken))} taken back; to bring one back: "
            f"{chosen.hint('memory restore ID')}"
        )
    return OK if changes else FOUND


@click.command(epilog=examples("hotset memory consolidate", "hotset memory consolidate --json"))
@project_options
@no_encode
@as_json
def consolidate(chosen: ProjectOptions, *, no_encode: bool, as_json: bool) -> None:
    """Find what memories have in common: patterns and pitfalls of similar episodes, duplicates,
    contradictions, links.

    Also done in the background. Nothing is lost: what it changed can be taken back with `undo`. It
    goes on where it was stopped.
    """
    with open_updated_memories(chosen, no_encode=no_encode) as memories, progress(chosen) as moved:
        done = memories.consolidate(moved)
    if as_json:
        emit_json(done)
        return
    made = [
        ("fact", done.facts),
        ("procedure", done.procedures),
        ("pitfall", done.pitfalls),
        ("link", done.links),
    ]
    parts = [count(number, what) for what, number in made if number]
    parts += [f"{done.merged:,} merged"] if done.merged else []
    parts += [f"{done.superseded:,} superseded"] if done.superseded else []
    emit(", ".join(parts) or "nothing new")
    if parts:
        chosen.say(f"to take it back: {chosen.hint(f'memory undo {done.run}')}")


@click.command(
    epilog=examples(
        "hotset memory undo                  the pieces of work that can be taken back",
        "hotset memory undo RUN",
    )
)
@click.argument("run", default="")
@project_options
@as_json
def undo(chosen: ProjectOptions, run: str, *, as_json: bool) -> int:
    """Take back what one piece of work changed: memories are again as they were before. Without
    RUN: what can be taken back."""
    with open_project_memories(chosen, lists=not run) as memories:
        if not run:
            return _print_runs(memories.runs(), chosen, as_json=as_json)
        undone = memories.undo(run)
    if as_json:
        emit_json({"run": run, "undone": undone})
    else:
        chosen.say(f"{count_memories(undone)} as before")
    return OK if undone else FOUND


def _print_rollback(would: RollbackPlan) -> None:
    now = time.time()
    for heading, memories in (
        ("", would.forgotten),
        ("stays, less sure:", would.lessened),
        ("holds again:", would.revived),
    ):
        if memories:
            if heading:
                emit(heading)
            print_list(memories, now)


def _detail(
    kind: MemoryKind, text: str, *, steps: tuple[str, ...], when: str, why: str, instead: str
) -> Detail:
    if (steps or when) and DETAILS[kind] is not Procedure:
        raise click.UsageError("--step and --when are for --kind procedure")
    if (why or instead) and DETAILS[kind] is not Pitfall:
        raise click.UsageError("--why and --instead are for --kind pitfall")
    if steps or when:
        return Procedure(when, steps)
    if why or instead:
        return Pitfall(text, why, instead)
    return None


def _text_with_detail(text: str, detail: Detail) -> str:
    """The text with the detail that was given by options."""
    match detail:
        case Procedure(when, steps):
            return "\n".join(
                [
                    text,
                    *([f"When: {when}"] if when else []),
                    *(f"{n}. {step}" for n, step in enumerate(steps, 1)),
                ]
            )
        case Pitfall(_, why, instead):
            return "\n".join(
                [
                    text,
                    *([f"Why: {why}"] if why else []),
                    *([f"Instead: {instead}"] if instead else []),
                ]
            )
    return text


def _read_text(chosen: ProjectOptions) -> str:
    """Text from a pipe, or from the person's editor."""
    if not sys.stdin.isatty():
        return sys.stdin.read()
    chosen.say("opening your editor; an empty file keeps nothing")
    return _above_scissors(click.edit(_BELOW, extension=".md") or "")


def _edit_in_editor(before: MemoryRecord) -> dict[str, str]:
    """The text as a person changed it in their editor."""
    if not sys.stdin.isatty():
        raise BadInput(
            "what to change? use --title, --text, --topic, --ending, --confidence, --pin or --unpin"
        )
    given = f"{before.title}\n\n{before.text}\n{_BELOW}{before.id}, {before.kind}\n"
    heading, _, text = _above_scissors(click.edit(given, extension=".md") or given).partition("\n")
    if not heading.strip():
        return {}
    return {"title": heading.strip(), "text": text.strip()}


def _above_scissors(typed: str) -> str:
    return typed.partition(_SCISSORS)[0].strip()


def _print_forgotten(gone: list[MemoryRecord], chosen: ProjectOptions, *, as_json: bool) -> int:
    if as_json:
        emit_json(gone)
    elif gone:
        print_list(gone, time.time())
        chosen.say(f"\nbring one back: {chosen.hint(f'memory restore {gone[0].id}')}")
    if not gone:
        chosen.say(f"nothing is forgotten; see what is remembered: {chosen.hint('memory list')}")
    return OK


def _print_runs(
    runs: Sequence[tuple[str, int, float]], chosen: ProjectOptions, *, as_json: bool
) -> int:
    if as_json:
        emit_json(
            [{"run": run, "versions": versions, "time": when} for run, versions, when in runs]
        )
    elif runs:
        table(
            ("run", "when", "memories"),
            [(run, moment(when), f"{versions:,}") for run, versions, when in runs],
        )
        chosen.say(f"\ntake one back: {chosen.hint(f'memory undo {runs[0][0]}')}")
    if not runs:
        chosen.say(
            f"nothing that can be taken back; see what is remembered: {chosen.hint('memory list')}"
        )
    return OK


@click.command(
    epilog=examples("hotset memory export notes", "hotset memory export .loki/memory --format loki")
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@project_options
@click.option(
    "--format",
    "form",
    type=_FORMATS,
    default="markdown",
    show_default=True,
    help="loki: JSON by layers and kinds.",
)
@no_encode
@as_json
def export(
    chosen: ProjectOptions, folder: Path, *, form: str, no_encode: bool, as_json: bool
) -> None:
    """Write every memory into FOLDER, as files that people and other programs read. `import` reads
    them back."""
    with open_updated_memories(chosen, no_encode=no_encode) as memories, progress(chosen) as moved:
        written = memories.export(folder, form, moved)
    if as_json:
        emit_json({"folder": str(folder), "format": form, "memories": written})
    chosen.say(f"{count_memories(written)} written to {folder}")


@click.command(
    "import",
    epilog=examples(
        "hotset memory import notes", "hotset memory import .loki/memory --format loki --trusted"
    ),
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@project_options
@click.option("--format", "form", type=_FORMATS, help="[default: by the files]")
@click.option(
    "--trusted",
    is_flag=True,
    help="Trust the folder: its procedures and pitfalls count at once.",
)
@as_json
def import_(
    chosen: ProjectOptions, folder: Path, *, form: str | None, trusted: bool, as_json: bool
) -> int:
    """Read memories from FOLDER. What is there already stays; what you edited becomes a new
    version.

    Procedures and pitfalls by others wait until you confirm them (hotset memory confirm), unless
    you use --trusted.
    """
    with open_project_memories(chosen, makes=True) as memories, progress(chosen) as moved:
        taken = memories.import_(folder, form or "", trusted=trusted, progress=moved)
    if as_json:
        emit_json({"folder": str(folder), "memories": taken})
    chosen.say(f"{count_memories(taken)} new or changed" if taken else "nothing new")
    return OK if taken else FOUND
