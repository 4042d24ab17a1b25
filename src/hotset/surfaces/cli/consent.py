"""Questions to the person: consent to what is hard to undo, and to indexing the project's files.
The answer about the files is stored until it is changed."""

from __future__ import annotations

import sys
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
    if not _can_ask():
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
    if not _can_ask():
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
    elif not answered and not chosen.quiet and _can_ask() and _is_project(config.project):
        _ask(chosen, config)


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


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _is_project(folder: Path) -> bool:
    """False for a home folder and the root: an agent started there rarely means all of it."""
    return folder not in (Path.home(), Path(folder.anchor))
