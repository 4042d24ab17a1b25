"""CONTINUITY.md on the disk: read and written without following a link out of the project, and never over somebody's edit."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hotset.errors import BadInput, NotFound
from hotset.files.folder import sync_folder
from hotset.files.lock import lock_file
from hotset.files.open import PRIVATE
from hotset.files.root import NotTaken, Root, Stat, Why
from hotset.files.write import create_file, is_full
from hotset.nouns.memory import Memory, MemoryId, Standing
from hotset.sources.memory.files.continuity import NAME, Parts, digest_of, updated
from hotset.store.port import Store

MOST_BYTES = 1_000_000  # what a model is told of it are a few hundred tokens; a file of this size is something else
_TRIES = 5  # somebody who saves five times within the milliseconds that this takes will not mind the next session
_PATIENCE = 5.0  # seconds; another hotset holds the folder for milliseconds
_DRAFT = re.compile(rf"\.{re.escape(NAME)}\.[0-9a-f]{{12}}\.hotset")


@dataclass(frozen=True, slots=True)
class Written:
    """What the file says now."""

    path: Path
    text: str
    changed: bool
    trusted: bool
    """Nothing is in it but what was accepted, and what hotset wrote: `digest` may be accepted, too."""

    @property
    def digest(self) -> str:
        return digest_of(self.text)


def load_continuity(root: Path) -> str | None:
    """What the file says; None where there is none. Raises `BadInput`."""
    with Root(root) as project:
        found = _read(project, _within(project))
    return found.text if found is not None else None


def write_continuity(root: Path, parts: Parts, accepted: frozenset[str] = frozenset()) -> Written:
    """Brings the file up to date, and makes it where there is none. Whole or not at all. Raises `BadInput`.

    `accepted` as in `told_continuity`: what stands in a file that nobody accepted is not accepted because hotset adds to it.
    """
    with Root(root) as project, _alone(project.folder):
        name = _within(project)
        path = project.folder / name
        _sweep(path.parent)
        for _ in range(_TRIES):
            found = _read(project, name)
            before = found.text if found is not None else None
            after = updated(before, parts)
            trusted = not before or digest_of(before) in accepted
            if after == (before or ""):
                return Written(path, after, changed=False, trusted=trusted)
            _refuse_read_only(path, found)
            draft = _drafted(path, after, found)
            try:
                if _same(found, _read(project, name)) and _put(draft, path, found):
                    return Written(path, after, changed=True, trusted=trusted)
            finally:
                draft.unlink(missing_ok=True)
    raise BadInput(f"{path} was changed again and again while it was written; it is as it was: try again later")


def resolve(ids: Iterable[MemoryId], store: Store) -> dict[MemoryId, Memory]:
    """The memories that are named, as they are now. Those that are not there, or that somebody forgot, are left out."""
    found: dict[MemoryId, Memory] = {}
    for id in ids:
        with suppress(NotFound):
            memory = store.memory(id)
            if memory.standing is not Standing.FORGOTTEN:
                found[id] = memory
    return found


@dataclass(frozen=True, slots=True)
class _Found:
    text: str
    stat: Stat
    mode: int
    owner: int


def _within(project: Root) -> str:
    """The file's path below the root. A link is followed as long as it stays in the project."""
    path = project.folder / NAME
    if not path.is_symlink():
        return NAME
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:
        raise BadInput(f"{path} is a symbolic link that leads nowhere; remove it") from error
    if not target.is_relative_to(project.folder) or target == project.folder:
        raise BadInput(f"{path} is a symbolic link that leads out of the project; it is not followed: remove it")
    return str(target.relative_to(project.folder))


def _read(project: Root, name: str) -> _Found | None:
    path = project.folder / name
    try:
        content = project.read(name, MOST_BYTES)
        found = path.lstat()
    except NotTaken as error:
        if error.why is Why.GONE:
            return None
        raise BadInput(f"{path} cannot be used: {error.why}") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be used: {error.strerror}") from error
    try:
        text = content.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8, or move it away") from error
    return _Found(text, content.stat, stat.S_IMODE(found.st_mode), found.st_uid)


def _refuse_read_only(path: Path, found: _Found | None) -> None:
    if found is None:
        return
    if not found.mode & stat.S_IWUSR:
        raise BadInput(f"{path} is read-only; `chmod u+w` it, or `hotset continuity off`")
    if found.owner != os.geteuid():
        raise BadInput(f"{path} belongs to another user (uid {found.owner}); it is as it was")


def _drafted(path: Path, text: str, found: _Found | None) -> Path:
    """The new text under another name beside it, with the rights that the file has."""
    draft = path.with_name(f".{NAME}.{secrets.token_hex(6)}.hotset")
    try:
        with create_file(draft) as file:
            os.fchmod(file.fileno(), found.mode if found is not None else PRIVATE)
            file.write(text.encode("utf-8"))
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _not_written(path, error) from error
    return draft


def _same(before: _Found | None, now: _Found | None) -> bool:
    """An editor that saves the same bytes anew has made another file, which has the same words."""
    return (before.text, before.mode) == (now.text, now.mode) if before and now else before is now


def _put(draft: Path, path: Path, found: _Found | None) -> bool:
    """False where there was no file and somebody else has made one in the meantime."""
    try:
        if found is not None or not _linked(draft, path):
            draft.replace(path)
        sync_folder(path.parent)
    except FileExistsError:
        return False
    except OSError as error:
        raise _not_written(path, error) from error
    return True


def _linked(draft: Path, path: Path) -> bool:
    """A link refuses where a file is; False on a file system that has none."""
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            return False
        raise
    return True


def _not_written(path: Path, error: OSError) -> BadInput:
    why = "no room is left" if is_full(error) else error.strerror
    return BadInput(f"{path} could not be written: {why}; it is as it was")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One hotset at a time. The folder itself is locked: nothing of ours is left lying in it."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not lock_file(here, patience=_PATIENCE):
            raise BadInput(f"another process has been writing {folder / NAME} for {_PATIENCE:.0f} s; try later")
        yield
    finally:
        os.close(here)


def _sweep(folder: Path) -> None:
    """Drafts of a hotset that was killed: whoever holds the lock has made none yet."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name):
                with suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108 - the entry's own path
