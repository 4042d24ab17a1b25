"""Disks that misbehave on purpose, as SQLite VFS: one that loses its power, one whose n-th write
fails."""

import random
import threading
from itertools import count
from pathlib import Path

import apsw

_SECTOR = 512
_numbers = count()


class _Disk(apsw.VFS):
    """Passes everything on to the real disk, through files that tell it what they do."""

    def __init__(self):
        self.name = f"{type(self).__name__}-{next(_numbers)}"
        self.lock = threading.RLock()
        super().__init__(self.name, "")

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's own name
        return _File(self, name, flags)

    def excepthook(self, *_):
        """Faults are made here on purpose; SQLite has been told."""


class _File(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        self._disk = disk
        self._path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name or "")
        super().__init__("", name, flags)

    def excepthook(self, *_):
        pass

    def xWrite(self, data, offset):  # noqa: N802 - SQLite's own name
        with self._disk.lock:
            self._disk.before("write", self._path, offset, bytes(data))
            super().xWrite(data, offset)

    def xTruncate(self, size):  # noqa: N802 - SQLite's own name
        with self._disk.lock:
            self._disk.before("truncate", self._path, size, b"")
            super().xTruncate(size)

    def xSync(self, flags):  # noqa: N802 - SQLite's own name
        with self._disk.lock:
            self._disk.before("sync", self._path, 0, b"")
            super().xSync(flags)


class FailingDisk(_Disk):
    """From `arm` on, the n-th change fails; with `for_ever`, every one after it too."""

    def __init__(self, error):
        super().__init__()
        self._error = error
        self._left = None
        self._for_ever = False
        self.failed = 0

    def arm(self, n, *, for_ever=False):
        with self.lock:
            self._left, self._for_ever, self.failed = n, for_ever, 0

    def heal(self):
        with self.lock:
            self._left = None

    def before(self, act, path, offset, data):
        if self._left is None:
            return
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._for_ever):
            self.failed += 1
            raise self._error


class PowerCutDisk(_Disk):
    """Remembers what was synced. At a cut, each sector that was not may be there, be missing or be
    torn."""

    def __init__(self, folder, seed, cuts):
        super().__init__()
        self._rng = random.Random(seed)
        self._folder = Path(folder)
        self._cuts_left = cuts
        self._chance = 0.0
        self._platters = {}
        self._pending = {}
        self.acknowledged = []
        self.images = []

    def start(self, chance):
        """What is on the disk now is taken as safe; from here on each change may be the last."""
        with self.lock:
            for path in self._folder.parent.glob("live/store.db*"):
                if not path.name.endswith("-shm"):
                    self._platters[path.name] = bytearray(path.read_bytes())
            self._chance = chance

    def before(self, act, path, offset, data):
        if not self._chance:
            return
        if self._cuts_left and self._rng.random() < self._chance:
            self._cuts_left -= 1
            self.images.append((self._image(), len(self.acknowledged)))
        pending = self._pending.setdefault(path.name, [])
        if act == "sync":
            platter = self._platters.setdefault(path.name, bytearray())
            for change in pending:
                _apply(platter, *change)
            pending.clear()
        else:
            pending.append((act, offset, data))

    @property
    def done(self):
        return self._cuts_left == 0

    def _image(self):
        """The folder as it would be found after the lights came back."""
        image = self._folder / f"{len(self.images)}"
        image.mkdir(mode=0o700)
        for name in {*self._platters, *self._pending}:
            content = bytearray(self._platters.get(name, b""))
            for act, offset, data in self._pending.get(name, ()):
                if act == "truncate":
                    if self._rng.random() < 0.5:
                        _apply(content, act, offset, data)
                    continue
                for start in range(0, len(data), _SECTOR):
                    sector = data[start : start + _SECTOR]
                    fate = self._rng.random()
                    if fate < 0.5:
                        _apply(content, act, offset + start, sector)
                    elif fate < 0.65:
                        _apply(
                            content, act, offset + start, sector[: self._rng.randrange(len(sector))]
                        )
            (image / name).write_bytes(content)
        seal = self._folder.parent / "live" / "store.seal"
        if seal.exists():  # at worst it reached the disk although nobody synced it
            (image / seal.name).write_bytes(seal.read_bytes())
        return image


def _apply(content, act, offset, data):
    if act == "truncate":
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data
