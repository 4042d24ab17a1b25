"""Whether a project's files may be read and indexed: one answer for each project, a note in its
store that stays on this machine."""

from __future__ import annotations

import shutil
import time
from enum import StrEnum
from pathlib import Path

import msgspec

from hotset.errors import BadConfig, HotsetError
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.note import Scope, Space
from hotset.sources.code.manifest import remove_manifest
from hotset.store.store_files import has_store
from hotset.typed import decode

_CONSENT = Space("code consent", Scope.MACHINE, keeps=1)
_OLD_FILE = "consent.json"  # where earlier versions kept it


class ConsentAnswer(StrEnum):
    GRANTED = "granted"
    DENIED = "denied"
    UNANSWERED = "unanswered"
    """Nothing is read."""


class Consent(msgspec.Struct, frozen=True):
    answer: ConsentAnswer = msgspec.field(default=ConsentAnswer.UNANSWERED, name="code")
    when: float = 0.0
    root: str = ""
    """The folder that the answer is about: another folder in its place needs its own answer."""

    def allows(self, root: Path) -> bool:
        return self.answer is ConsentAnswer.GRANTED and self.root == str(
            root.expanduser().resolve()
        )


UNANSWERED = Consent()


def read_consent(folder: Path, unreadable: Consent = UNANSWERED) -> Consent:
    """The answer in a project's data folder; `unreadable` if its store cannot be read now.

    Reading creates no store. A note or an old file that cannot be decoded is no answer.
    """
    old_file = folder / _OLD_FILE
    if not has_store(folder):
        try:
            return decode(old_file.read_bytes(), Consent)
        except (OSError, ValueError, msgspec.DecodeError):
            return UNANSWERED
    # Imported here: a tenth of a second that a project without a store does not pay.
    from hotset.store.sqlite import SqliteStore  # noqa: PLC0415
    from hotset.store.stored_value import StoredValue  # noqa: PLC0415

    try:
        with SqliteStore.open_to_look(folder) as store:
            return StoredValue(_CONSENT, Consent, lambda: store, old_file=old_file).read()
    except (HotsetError, OSError):
        return unreadable


def keep_answer(folder: Path, root: Path, *, granted: bool, now: float | None = None) -> Consent:
    """Keep an answer until it is revoked or replaced. Raises `StoreFailed` if it cannot be kept."""
    answer = ConsentAnswer.GRANTED if granted else ConsentAnswer.DENIED
    given = Consent(answer, time.time() if now is None else now, str(root.expanduser().resolve()))
    _keep(folder, msgspec.json.encode(given), given.when)
    return given


def revoke(folder: Path, *derived: Path) -> None:
    """Revoke the answer and remove what was made from the project's files: the manifest, and these
    paths."""
    for path in derived:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise BadConfig(
                f"{path} is not in {folder}: only what hotset keeps for this project is removed"
            )
    if has_store(folder):
        _keep(folder, None, time.time())
    (folder / _OLD_FILE).unlink(missing_ok=True)
    remove_manifest(folder)
    for path in derived:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _keep(folder: Path, value: bytes | None, now: float) -> None:
    from hotset.store.sqlite import SqliteStore  # noqa: PLC0415 - as above

    with SqliteStore.open(folder) as store:
        store.keep(NoteWritten(_CONSENT, "", value, now)).result()
    (folder / _OLD_FILE).unlink(missing_ok=True)
