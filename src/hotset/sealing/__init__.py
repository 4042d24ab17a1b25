"""What is a secret, and text without it. Pure: nothing is read, and no secret is ever part of a
message, a repr or a log."""

from hotset.sealing.seal import KnownSecrets, SealedText, SecretMatch, TextSpan, find, gather, seal
from hotset.sealing.secret_files import secret_file

VERSION = 3
"""Of the patterns: part of the identity of whatever is made from sealed text. A change that finds
more, or less, counts it up."""

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
