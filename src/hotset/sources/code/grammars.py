"""Grammars for tree-sitter, from the package that brings them along: unpacked once into a folder of
ours, never downloaded.

The package would unpack into a cache that it shares with others, and would load whatever it finds
there. A grammar is machine code: here it goes into a private folder, and is loaded only if it is,
byte for byte, what the package's list says.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import platform
import tarfile
import tempfile
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotset.errors import HotsetError
from hotset.files.folder import private_folder
from hotset.files.write import write_atomically

if TYPE_CHECKING:
    from tree_sitter import Language

_PACKAGE = "semble_grammars"
_SYSTEMS = {"darwin": "macos", "linux": "linux"}
_MACHINES = {"arm64": "arm64", "aarch64": "arm64", "x86_64": "x86_64", "amd64": "x86_64"}
_loaded: list[ctypes.CDLL] = []
"""Kept for as long as the process lives: grammars point into them."""


class NoGrammar(HotsetError):
    """This machine has no grammar for a language; its files are cut by their lines."""


def identity() -> str:
    """Changes when the same text could be parsed otherwise."""
    return f"{version('semble-grammars')} {version('tree-sitter')}"


@cache
def grammar(name: str, folder: Path | None = None) -> Language:
    """A grammar, unpacked into `folder`; without one, or where it cannot be written, into one that
    lasts as long as needed.

    Raises `NoGrammar`.
    """
    from tree_sitter import Language  # noqa: PLC0415

    listed = _listed()
    try:
        entry = listed["languages"][name]
    except KeyError:
        raise NoGrammar(f"no grammar for {name}") from None
    if folder is not None and (kept := _kept(entry, folder)) is not None:
        return Language(_capsule(kept, entry["symbol"]))
    content = _unpacked(listed["archive"], entry)
    if folder is not None and (kept := _keep(content, entry, folder)) is not None:
        return Language(_capsule(kept, entry["symbol"]))
    with tempfile.TemporaryDirectory(prefix="hotset-grammars-") as passing:
        kept = Path(passing) / entry["file"]
        kept.write_bytes(content)
        return Language(
            _capsule(kept, entry["symbol"])
        )  # what is loaded stays loaded when its file is gone


@cache
def _listed() -> Any:
    """The package's list for this machine."""
    system, machine = platform.system().lower(), platform.machine().lower()
    here = (
        resources.files(_PACKAGE)
        / "grammars"
        / f"{_SYSTEMS.get(system, system)}-{_MACHINES.get(machine, machine)}"
    )
    try:
        listed = json.loads((here / "manifest.json").read_text("utf-8"))
    except OSError as error:
        raise NoGrammar(f"{_PACKAGE} has no grammars for {system} on {machine}") from error
    return listed | {"archive": str(here / listed["archive"])}


def _kept(entry: Any, folder: Path) -> Path | None:
    path = folder / version("semble-grammars") / entry["file"]
    try:
        right = hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    except OSError:
        return None
    return path if right else None


def _unpacked(archive: str, entry: Any) -> bytes:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            member = tar.extractfile(entry["file"])
            content = member.read() if member is not None else b""
    except (OSError, KeyError, tarfile.TarError) as error:
        raise NoGrammar(f"{_PACKAGE} is damaged: install it again") from error
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise NoGrammar(f"{_PACKAGE} is damaged: install it again")
    return content


def _keep(content: bytes, entry: Any, folder: Path) -> Path | None:
    """Several processes may do so at once: each writes a file of its own and moves it into
    place."""
    try:
        here = private_folder(private_folder(folder) / version("semble-grammars"))
        path = here / str(entry["file"])
        write_atomically(path, content)
    except HotsetError:
        return None
    return path


def _capsule(path: Path, symbol: str) -> object:
    try:
        library = ctypes.CDLL(str(path))
        found = getattr(library, symbol)
    except (OSError, AttributeError) as error:
        raise NoGrammar(f"{path.name} cannot be loaded here") from error
    _loaded.append(library)
    found.restype = ctypes.c_void_p
    wrap = ctypes.pythonapi.PyCapsule_New
    wrap.restype = ctypes.py_object
    wrap.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return wrap(found(), b"tree_sitter.Language", None)
