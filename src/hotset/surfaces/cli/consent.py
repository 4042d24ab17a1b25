"""Questions to the person: consent to what is hard to undo, to indexing the project's files, and to
learning from earlier sessions. The last two answers are stored until they are changed."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from hotset.config import Config
from hotset.errors import BadInput
from hotset.sources import code
from hotset.surfaces.cli.options import ProjectOptions
from hotset.surfaces.cli.terminal import safe_text, say

yes_option = click.option("--yes", is_flag=True, help="Do not ask; for scripts.")


def ask_yes(question: str, *, yes: bool) -> bool:
    """Asks for consent; True for yes. Raises `BadInput` where there is no terminal to ask in."""
    if yes:
        return True
    if not can_ask():
        raise BadInput("this needs your consent, and there is no terminal to ask in; use --yes")
    return click.confirm(safe_text(question), default=False, err=True)


def is_allowed(config: Config) -> bool:
    return code.read_consent(config.folder).allows(config.project)


def require_consent(chosen: ProjectOptions, config: Config, *, yes: bool) -> bool:
    """Asks unless indexing is allowed already, also after a no; for commands about indexing. Raises
    `BadInput`."""
    if is_allowed(config):
        return True
    if yes:
        return code.keep_answer(config.folder, config.project, granted=True).allows(config.project)
    if not can_ask():
        raise BadInput(
            f"reading the files of {config.project} needs your consent, and there is no terminal "
            f"to ask in; run {chosen.hint('index')} in a terminal, or {chosen.hint('index --yes')}"
        )
    return _ask(chosen, config)


def offer_indexing(chosen: ProjectOptions, config: Config, *, yes: bool) -> None:
    """Asks once, in a terminal, and only if the folder looks like a project; for commands about
    something else."""
    consent = code.read_consent(config.folder)
    answered = (
        consent.answer is not code.ConsentAnswer.UNANSWERED and Path(consent.root) == config.project
    )
    if yes:
        require_consent(chosen, config, yes=True)
    elif not answered and not chosen.quiet and can_ask() and _is_project(config.project):
        _ask(chosen, config)


def offer_learning(chosen: ProjectOptions, config: Config, answer: bool | None) -> tuple[Path, ...]:
    """Folders of earlier sessions to learn from now. Asks once, in a terminal, if a client of this
    machine may have some; the answer is kept. `answer` is the person's, given by an option."""
    from hotset.runtime.reader import open_memories  # noqa: PLC0415 - only where there are sessions

    folders = dict(recordings(config.project, os.environ))
    if not folders or not config.memory.enabled:
        return ()
    with open_memories(config) as memories:
        known = memories.learn_answer
        granted = answer if answer is not None else known.granted if known is not None else None
        if granted is None and not chosen.quiet and can_ask() and _is_project(config.project):
            granted = _ask_to_learn(chosen, folders)
        if granted is not None and (known is None or known.granted != granted):
            memories.answer_learning(granted=granted)
            known = memories.learn_answer
    return tuple(folders.values()) if known is not None and known.granted and not known.done else ()


def keep_learned(config: Config) -> None:
    """Notes that earlier sessions were learned: it is not done again by itself."""
    from hotset.runtime.reader import open_memories  # noqa: PLC0415 - as above

    with open_memories(config) as memories:
        memories.answer_learning(granted=True, done=True)


def recordings(project: Path, env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The clients of this machine, and the folder of each that may hold sessions of this project.
    None of these is read."""
    home = Path(env.get("HOME") or "~").expanduser()
    claude = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
    codex = Path(env.get("CODEX_HOME") or home / ".codex") / "sessions"
    shared = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share")
    for name, folder in (
        ("Claude Code", claude / re.sub(r"[^A-Za-z0-9]", "-", str(project))),
        ("Codex", codex),
        ("opencode", shared / "opencode" / "storage"),
    ):
        if folder.is_dir():
            yield name, folder


def _ask_to_learn(chosen: ProjectOptions, folders: Mapping[str, Path]) -> bool:
    names = shlex.join(map(str, folders.values()))
    say(
        click.style(
            "hotset can learn from sessions of this project that you already have.", bold=True
        )
    )
    say(f"  It reads    {names}; only sessions that were about this project")
    say("  It keeps    them and what they teach, on this machine; secrets are left out of memories")
    say("  To undo     hotset memory rollback --source FOLDER")
    granted = click.confirm("Learn from them in the background?", default=False, err=True)
    if not granted:
        again = chosen.hint(f"memory learn {names}")
        say(f"Nothing is read, and you are not asked again. To change that: {again}")
    say()
    return granted


def _ask(chosen: ProjectOptions, config: Config) -> bool:
    say(
        click.style(
            "hotset can index this project, so that you and your agents can search its code.",
            bold=True,
        )
    )
    say(
        f"  It reads    the files in {config.project}; not those that .gitignore excludes, "
        f"nor files of secrets"
    )
    say(
        f"  It keeps    what it finds in {config.folder}; nothing leaves this machine; "
        f"secrets in files are left out"
    )
    say(f"  To undo     {chosen.hint('index --revoke')} removes all of it")
    granted = click.confirm("Index it?", default=False, err=True)
    code.keep_answer(config.folder, config.project, granted=granted)
    if not granted:
        say(f"Nothing is read, and you are not asked again. To change that: {chosen.hint('index')}")
    say()
    return granted


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _is_project(folder: Path) -> bool:
    """False for a home folder and the root: an agent started there rarely means all of it."""
    return folder not in (Path.home(), Path(folder.anchor))
