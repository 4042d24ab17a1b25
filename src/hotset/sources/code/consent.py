"""May a project's files be read and indexed? One answer for each project, kept beside its store, never in the project itself."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hotset.errors import BadConfig
from hotset.files.folder import private_folder
from hotset.files.write import write_atomically

_FILE = "consent.json"


class Answer(StrEnum):
    GRANTED = "granted"
    DENIED = "denied"
    UNANSWERED = "unanswered"
    """Nothing is read."""


@dataclass(frozen=True, slots=True)
class Consent:
    answer: Answer = Answer.UNANSWERED
    when: float = 0.0
    root: str = ""
    """The folder that the answer is about: another one in its place has to be asked for again."""

    def allows(self, root: Path) -> bool:
        return self.answer is Answer.GRANTED and self.root == str(root.expanduser().resolve())


def consent(folder: Path) -> Consent:
    """The answer that is kept in a project's data folder. A file that cannot be understood is no answer."""
    try:
        said = json.loads((folder / _FILE).read_text("utf-8"))
        return Consent(Answer(said["code"]), float(said["when"]), str(said["root"]))
    except FileNotFoundError:
        return Consent()
    except (OSError, ValueError, KeyError, TypeError):
        return Consent()


def answer(folder: Path, root: Path, *, granted: bool, now: float | None = None) -> Consent:
    """Keeps an answer until it is revoked or given anew. Raises `StoreFailed` where it cannot be kept."""
    given = Consent(
        Answer.GRANTED if granted else Answer.DENIED, time.time() if now is None else now, str(root.expanduser().resolve())
    )
    path = private_folder(folder) / _FILE
    write_atomically(path, json.dumps({"code": given.answer, "when": given.when, "root": given.root}).encode())
    return given


def revoke(folder: Path, *derived: Path) -> None:
    """Takes the answer back and removes what was made from the project's files: the manifest, and these files and folders."""
    from hotset.sources.code.manifest import remove_manifest  # noqa: PLC0415 - a start that only asks does not pay for it

    for path in derived:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise BadConfig(f"{path} is not in {folder}: only what hotset keeps for this project is removed")
    (folder / _FILE).unlink(missing_ok=True)
    remove_manifest(folder)
    for path in derived:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
