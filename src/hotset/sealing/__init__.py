"""Finds secrets and seals them in text. Pure: nothing is read, and no secret is ever part of a
message, a repr or a log. Each name below is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sealing.sealer import (
        KnownSecrets,
        SealedText,
        SecretMatch,
        TextSpan,
        find,
        gather,
        seal,
    )
    from hotset.sealing.secret_files import secret_file

VERSION = 3
"""Version of the patterns, part of the identity of everything made from sealed text. Any change in
what is found increases it."""

__all__ = [
    "VERSION",
    "KnownSecrets",
    "SealedText",
    "SecretMatch",
    "TextSpan",
    "find",
    "gather",
    "seal",
    "secret_file",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "secret_files" if name == "secret_file" else "sealer"
    return getattr(import_module(f"{__name__}.{home}"), name)
