"""Cheap rules that decide whether a value found by a pattern is a secret or a placeholder."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from itertools import pairwise

_PLACEHOLDERS = re.compile(
    rb"(?i)example|placeholder|change[-_]?(?:me|this|it)|your[-_ "
    rb"]?|dummy|fake|sample|redacted|removed|hidden|masked|"
    rb"(?-i:x{4}|X{4})|\*\*\*|\.\.\.|insert|replace|fixme|todo|foo[-_]?bar|lorem|secret:|"
    rb"not[-_]?a[-_]?real|hunter2|s3cr3t|"
    rb"<[^>]*>|\$[({]|\{\{|\}\}|%\(|%[sdr]\b|\{[a-z_.0-9]*\}|#\{|"
    rb"process\.env|environ|getenv|\benv[.\[(]|secrets\.|config\.|settings\.|\bvault:|keychain|"
    rb"test[-_]?(?:key|token|secret|pass|pw|api)|(?:key|token|secret|pass|password)[-_]?test|"
    rb"(?:api|access|my|some|the)[-_](?:key|token|secret|pass)|"
    rb"p[a@4]ssw[o0]rd|correct[-_]?horse|12345|abcdef|qwert|deadbeef|00000|11111|aaaaa"
)
"""What people write in place of a secret: templates, look-ups, and the words of examples."""

_FIXED_PLACEHOLDERS = re.compile(
    rb"(?i)example|placeholder|your[-_]|dummy|redacted|(?-i:xxxx|XXXX)|\*\*\*|\.\.\.|0000000|"
    rb"1234567|abcdefg|aaaaaaa"
)
"""The same for tokens recognized by their shape: short words occur in long random ones by
chance."""

_PIECES = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LETTERS = re.compile(rb"[A-Za-z]{2,}")
_HEX = re.compile(
    rb"[0-9a-f]{16,}|[0-9A-F]{16,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
_SYMBOLS = frozenset(b"!@#$%^&*?+=~|")
_CODE = re.compile(
    rb"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+|[A-Za-z]+(?:[-_./:][A-Za-z]+)+|[\w.]+\(."
    rb"*|[@#/.~][\w./-]*|[\d.,:/+-]+|"
    rb"0x[0-9a-fA-F]+[lLuU]*"
)
"""A look-up, joined words, a call, a path, a date or a number."""

_CAMEL = re.compile(rb"_*(?:[a-z]{3,})?(?:[A-Z][a-z]{2,})+")
"""`SyntaxKind`, `getCsrfToken`: a name of words. Of ten random letters 1.5 % look like one; with a
digit in them none."""

_DENSE = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_DATE = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.Z+-]*")
_COMMON_PAIRS = frozenset(
    re.findall(
        r"\S+",
        """
        th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne
        ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa
        ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp
        fe bl ab gh ty op wo sa ay ex ke ui gr ap ue up ag do ck ey ok ub by da db ef if cl pi cr ob bu bo br ba bi dd od fa
        fl fr ga gi go
        """,  # noqa: E501
    )
)
"""Pairs of letters common in words: 83 % of those in the names of real code, 24 % in random
letters."""

# mean length of runs of one class: 1.9 in random letters and digits, 2.1 in hex, 5.8 in names of
# real code
_RANDOM_PIECE = 2.6
_SURELY_RANDOM = (2.4, 20)  # mean length of runs, and least length of a value for which it decides
_RANDOM_IF_SHORT, _SHORT = 2.2, 12
_COMMON_SHARE = 0.56
_LONG = 32  # characters; a name of that length has separators
_LEAST_BITS = 2.5  # per character; `aaaa1111` has 1


def is_placeholder(value: bytes) -> bool:
    """True for a word of an example, a template or a look-up."""
    return _PLACEHOLDERS.search(value) is not None or is_monotonous(value)


def is_real_token(value: bytes) -> bool:
    """True if a value with the shape of a token is more than an example."""
    return _FIXED_PLACEHOLDERS.search(value) is None and entropy(value) >= _LEAST_BITS


def looks_random(value: bytes) -> bool:
    """True if the value looks random. Names made by people have long runs of one class of
    characters, and pairs of letters that words have."""
    pieces = _PIECES.findall(value)
    digits = sum(len(piece) for piece in pieces if piece.isdigit())
    together = sum(map(len, pieces))
    if (
        not together
        or digits == together
        or not is_real_token(value)
        or is_monotonous(value)
        or _DATE.fullmatch(value)
    ):
        return False
    run = together / len(pieces)
    if _HEX.fullmatch(value) or (run <= _SURELY_RANDOM[0] and len(value) >= _SURELY_RANDOM[1]):
        return True
    if (
        is_placeholder(value)
        or _CAMEL.fullmatch(value)
        or (_CODE.fullmatch(value) and not (digits and is_unlike_words(value)))
    ):
        return False
    if len(value) >= _LONG and _DENSE.fullmatch(value) and digits and _is_mixed_case(value):
        return True
    if len(value) < _SHORT:
        return (
            run <= _RANDOM_IF_SHORT if digits else _is_mixed_case(value) and is_unlike_words(value)
        )
    return (bool(digits) and run <= _RANDOM_PIECE) or is_unlike_words(value)


def _is_mixed_case(value: bytes) -> bool:
    return value != value.lower() and value != value.upper()


def is_unlike_words(value: bytes) -> bool:
    """True if few of its pairs of letters are common in words."""
    pairs = [
        run[at : at + 2].decode()
        for run in _LETTERS.findall(value.lower())
        for at in range(len(run) - 1)
    ]
    return len(pairs) >= 4 and sum(pair in _COMMON_PAIRS for pair in pairs) <= _COMMON_SHARE * len(
        pairs
    )


def is_password(value: bytes) -> bool:
    """True if it looks like a password that a person made up: letters, digits and a symbol."""
    if is_placeholder(value) or _CODE.fullmatch(value) or entropy(value) < _LEAST_BITS:
        return False
    lower, upper = (
        any(0x61 <= byte <= 0x7A for byte in value),
        any(0x41 <= byte <= 0x5A for byte in value),
    )
    digit, symbol = any(0x30 <= byte <= 0x39 for byte in value), not _SYMBOLS.isdisjoint(value)
    return digit and (lower or upper) and symbol and lower + upper + digit + symbol >= 3


def is_word_password(value: bytes, *, quoted: bool) -> bool:
    """True if a value named a password looks made of words and digits. Without quotes it may be a
    name."""
    if not _WORDS_AND_DIGITS.fullmatch(value) or _EXAMPLES.fullmatch(value) or _TERMS.search(value):
        return False
    if is_placeholder(value) or _CODE.fullmatch(value) or entropy(value) < _LEAST_BITS:
        return False
    digits = sum(0x30 <= byte <= 0x39 for byte in value)
    if not digits or value.lower() == value.upper() or (b"_" in value and not quoted):
        return False
    return digits >= _DIGITS or (_APART.search(value) is None and (quoted or _is_mixed_case(value)))


_WORDS_AND_DIGITS = re.compile(rb"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_APART = re.compile(rb"[_.-]")
_DIGITS = 2  # distinguish a password from a numbered name: `newPwd2`, `form-step-2`
_EXAMPLES = re.compile(
    rb"(?i)(?:(?:my|the|a|new|old|user|db|some|super)?[-_.]?"
    rb"(?:test(?:ing|er|user)?|admin|user(?:name)?|guest|root|demo|pass(?:wd|word|phrase|code)"
    rb"?|pwd|pw|secret|hello|foo|bar|baz|abc|temp|value|string|"
    rb"field|param|arg|input|text|key|token))[-_.]?[0-9]{0,4}"
)
"""Passwords of examples and tests, and names of parameters: words and a counting number."""

_TERMS = re.compile(
    rb"(?i)sha-?[0-9]|md[45]|pbkdf|argon|bcrypt|scrypt|utf-?(?:8|16)|aes[-_]?[0-9]|"
    rb"base-?(?:32|58|64)|x509|oauth|rfc-?[0-9]|"
    rb"u?int-?[0-9]|float-?[0-9]|bytes?[0-9]|str(?:ing)?[0-9]|char[0-9]|http|py(?:thon|test)|"
    rb"iso-?[0-9]|latin|ascii|regex"
)
"""Names of types, encodings and algorithms that contain a number."""


def entropy(value: bytes) -> float:
    """Bits per character, by frequency."""
    size = len(value)
    return (
        -sum(count / size * math.log2(count / size) for count in Counter(value).values())
        if size
        else 0.0
    )


def is_monotonous(value: bytes) -> bool:
    """True for a counting or repetitive value."""
    steps = sum(abs(b - a) <= 1 for a, b in pairwise(value))
    return 2 * steps >= len(value) or len(set(value)) <= 3


def decode_base64(value: bytes) -> bytes | None:
    """The decoded base64 of either alphabet; None if it is not base64."""
    plain = value.rstrip(b"=").translate(_URL_SAFE)
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def has_valid_check_digit(digits: bytes) -> bool:
    """True if a card number passes the Luhn check."""
    total = 0
    for place, byte in enumerate(reversed(digits)):
        digit = (byte - 0x30) * (2 if place % 2 else 1)
        total += digit - 9 if digit > 9 else digit
    return total % 10 == 0
