"""Finds secrets and seals them in text. Pure: nothing is read, and no secret is ever part of a
message, a repr or a log."""

from hotset.sealing.seal import KnownSecrets, SealedText, SecretMatch, TextSpan, find, gather, seal
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
