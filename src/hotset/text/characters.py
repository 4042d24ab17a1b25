"""Characters that hide something, or that look like others: where a text has them, and the text
with them made visible. Pure.

A person approves what they can see; a model reads what is there. Scripts that need joiners and
marks, emoji and flags may use them; everything else that is invisible, or changes the order of what
is shown, is reported.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import re2

MARK = "\N{REPLACEMENT CHARACTER}"

_PLAIN = re.compile(r"[\x20-\x7e\n\r\t]*\Z")
_LINE = "\n\r\t"
_FLAGS = re.compile(
    "\U0001f3f4(?:\U000e0067\U000e0062)(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""England, Scotland and Wales: the only flags that are spelt with tags."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters, marks and signs that show nothing, beside the categories that never do."""
_SPACES = frozenset("\u1680\u205f") | {chr(code) for code in range(0x2000, 0x200B)}
"""Spaces that no keyboard types. The no-break, narrow and ideographic ones occur in honest texts
and hide nothing."""
_NEVER_SHOWN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
_DIRECTIONS = frozenset("\u200e\u200f\u061c")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_MARKED = re.compile("[0-9#*\u203c\u2049\u2139\u24c2\u3030\u303d\u3297\u3299]")
"""What an emoji's variation selector may follow although it is no symbol."""
_BLANK_RUN = re2.compile(r"[ \t\x{a0}\x{3000}]{200}\s*\S|(?:\r?\n[ \t]*){30}\s*\S")
"""So much emptiness that what comes behind it is outside of what a dialog shows."""
_PILE = (
    6  # marks on one letter: Tibetan and Thai need fewer, and text that is scrawled over has more
)

_WORD = re.compile(r"[^\W\d_]+")
_DRESSED = re.compile("[\U0001d400-\U0001d7ff]{2,}|[\u24b6-\u24e9\U0001f130-\U0001f189]{3,}")
"""Words in mathematical or circled letters: a person reads them, and no search finds them."""
_WIDE = re.compile("[\uff21-\uff3a\uff41-\uff5a]{2,}")

_ALIKE = {
    **dict(
        zip("асԁеһіјӏорԛѕуѵԝхАВЕЅІЈКМНОРСТУХҮ", "acdehijlopqsyvwxabesijkmhopctyxy", strict=True)  # noqa: RUF001
    ),
    **dict(zip("αγικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ayikvoptuxwabezhikmnoptyx", strict=True)),
    **dict(zip("ոսօցհᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ", "nuoghabcdeghjklmprstvwz", strict=True)),  # noqa: RUF001
}
"""Letters of Cyrillic, Greek, Armenian and Cherokee that are drawn like a Latin one."""
_ALIKE_IN_NAMES = str.maketrans("ıɩi1|ɑɡ05$", "lllllagoss")  # noqa: RUF001
"""Hard to distinguish in a name at a glance; in a text they are all honest."""

_SQUEEZED_OUT = b" \t\r\n\x0b\x0c\x00`'\"*\\>"
_TO_SMALL = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_UNSEEN_BYTES = re.compile(
    rb"\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xc2\xad|\xcd\x8f|\xf3\xa0[\x80-\x87][\x80-\xbf]"
    rb"|\xef\xb8[\x80-\x8f]|\xe1\xa0\x8e|\xe3\x85\xa4"
)
_ESCAPE = re.compile(rb"\\u([0-9a-fA-F]{4})")
_DISGUISE = re.compile(
    "[\u0370-\u058f\u13a0-\u13ff\u2460-\u24ff\uff00-\uffef\U0001d400-\U0001d7ff\U000e0000-\U000e007f]"
)


def hidden(text: str) -> tuple[str, ...]:
    """The invisible characters of a text, by kind: empty for nearly every text."""
    if _PLAIN.match(text):
        return _emptiness(text)
    unseen = [text[at] for at in _unseen(text)]
    told = tuple(
        f"invisible character U+{ord(each):04X} {_name(each)}" for each in dict.fromkeys(unseen)
    )
    return (*_shortened(told, len(unseen)), *_piles(text), *_emptiness(text))


def lookalikes(text: str) -> tuple[str, ...]:
    """Words that are not in the letters they seem to be in."""
    if text.isascii():
        return ()
    told = [
        f"{word[:40]!r} mixes letters of several scripts that look alike"
        for word in _WORD.findall(text)
        if _is_mixed(word)
    ]
    told += [
        f"{word.group()[:40]!r} is written in letters that are made for formulas"
        for word in _DRESSED.finditer(text)
    ]
    if not _IDEOGRAPHS.search(text):  # between ideographs wide letters are the usual ones
        told += [
            f"{word.group()[:40]!r} is written in wide letters" for word in _WIDE.finditer(text)
        ]
    told += [
        f"{word[:40]!r} is written in letters that look like Latin ones"
        for word in _disguised(text)
    ]
    return _shortened(tuple(dict.fromkeys(told)), len(told))


def visible(text: str) -> str:
    """For a person, on any terminal: what cannot be seen, or would turn the order or colour of the
    rest, is named instead."""
    if _PLAIN.match(text):
        return text.replace("\r", "⟨U+000D⟩") if "\r" in text else text
    unseen = set(_unseen(text))
    return "".join(
        f"⟨U+{ord(each):04X}⟩"
        if at in unseen or each == "\r" or unicodedata.category(each) in ("Cf", "Cs")
        else each
        for at, each in enumerate(text)
    )


def marked(text: str) -> tuple[str, int]:
    """For a model: a mark in place of each character that cannot be seen, all others where they
    are; and how many there were."""
    if _PLAIN.match(text):
        return text, 0
    unseen = set(_unseen(text))
    return "".join(MARK if at in unseen else each for at, each in enumerate(text)), len(unseen)


def skeleton(name: str) -> str:
    """Two names with one skeleton look alike."""
    plain = (
        name
        if name.isascii()
        else _latin("".join(each for each in name if not _shows_nothing(each)))
    )
    return plain.casefold().translate(_ALIKE_IN_NAMES).replace("rn", "m").replace("vv", "w")


def folded(text: str) -> str:
    """A text as plain lower-case letters and single spaces: what was hidden or disguised in it can
    be searched for."""
    if not _PLAIN.match(text):
        text = _latin(
            _untagged(text)
            + "".join(each for each in text if each.isspace() or not _shows_nothing(each))
        )
    return " ".join(text.split()).lower()


def squeezed(content: bytes) -> bytes:
    """In small letters, without spaces, quotes and what cannot be seen: what is the same to a
    reader is the same here."""
    if b"\\" in content:
        content = _unescaped(content)
    if not content.isascii():
        content = _undisguised(content)
    return content.translate(_TO_SMALL, _SQUEEZED_OUT)


def _latin(text: str) -> str:
    return "".join(_ALIKE.get(each, each) for each in unicodedata.normalize("NFKC", text))


def _unescaped(content: bytes) -> bytes:
    """As JSON would be read: most tools answer in it."""
    for escape in (b"\\n", b"\\r", b"\\t"):
        content = content.replace(escape, b"")
    if b"\\u" in content:
        content = _ESCAPE.sub(
            lambda found: chr(int(found.group(1), 16)).encode("utf-8", "replace"), content
        )
    return content


def _undisguised(content: bytes) -> bytes:
    """Letters that look like others are those others, and what shows nothing is gone."""
    text = content.decode("utf-8", "replace")
    if _DISGUISE.search(text):
        text = unicodedata.normalize("NFKC", text)
        text = "\n".join(folded(line) if not line.isascii() else line for line in text.split("\n"))
    return _UNSEEN_BYTES.sub(b"", text.encode("utf-8", "replace"))


def _untagged(text: str) -> str:
    """What is spelt in tag characters, which mirror ASCII, in front of the text."""
    spelt = "".join(chr(ord(each) - 0xE0000) for each in text if 0xE0020 <= ord(each) <= 0xE007E)
    return f"{spelt} " if spelt else ""


def _unseen(text: str) -> Iterator[int]:
    """The places of what shows nothing and has no business there."""
    flags = {at for flag in _FLAGS.finditer(text) for at in range(*flag.span())}
    turns = _RIGHT_TO_LEFT.search(text) is not None
    for at, each in enumerate(text):
        if each <= "~" and (each >= " " or each in _LINE):
            continue
        if at not in flags and _shows_nothing(each) and not _belongs(text, at, turns=turns):
            yield at


def _shows_nothing(each: str) -> bool:
    return (
        each in _UNSEEN
        or each in _SPACES
        or "\ufe00" <= each <= "\ufe0f"
        or "\U000e0000" <= each <= "\U000e0fff"
        or unicodedata.category(each) in _NEVER_SHOWN
    )


def _belongs(text: str, at: int, *, turns: bool) -> bool:
    """The script or the emoji around it needs it."""
    each, before = text[at], text[at - 1] if at else ""
    if each in _DIRECTIONS:
        return turns
    if not before:
        return False
    if each in _JOINERS:
        after = text[at + 1 : at + 2]
        return _needs_joiners(before) or (
            bool(after) and _is_pictorial(before) and _is_pictorial(after)
        )
    if each in "\ufe0e\ufe0f":
        return (_is_pictorial(before) and before not in "\ufe0e\ufe0f") or bool(
            _MARKED.match(before)
        )
    if "\ufe00" <= each <= "\ufe02" or "\U000e0100" <= each <= "\U000e01ef":
        return bool(_IDEOGRAPHS.match(before))
    return False


def _needs_joiners(letter: str) -> bool:
    """Arabic, Indic and their neighbours: joiners change how words are written there."""
    return "\u0600" <= letter <= "\u10ff" and unicodedata.category(letter)[0] in "LM"


def _is_pictorial(each: str) -> bool:
    return unicodedata.category(each) in ("So", "Sm", "Sk", "Cn") or each in "\ufe0f\u20e3"


def _is_mixed(word: str) -> bool:
    return any(each in _ALIKE for each in word) and any(each.isascii() for each in word)


def _disguised(text: str) -> Iterator[str]:
    """Words of nothing but look-alikes, in a text that is otherwise Latin: in a Russian or Greek
    one they are words."""
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    if any(each not in _ALIKE and _is_of_their_scripts(each) for word in words for each in word):
        return
    yield from (word for word in words if len(word) > 1 and all(each in _ALIKE for each in word))


def _is_of_their_scripts(letter: str) -> bool:
    return "\u0370" <= letter <= "\u058f" or "\u13a0" <= letter <= "\u13ff"


def _piles(text: str) -> tuple[str, ...]:
    run = 0
    for each in text:
        run = run + 1 if unicodedata.category(each) in ("Mn", "Me") else 0
        if run >= _PILE:
            return ("letters that are buried under marks",)
    return ()


def _emptiness(text: str) -> tuple[str, ...]:
    return ("text behind a long run of empty space",) if _BLANK_RUN.search(text) else ()


def _shortened(told: tuple[str, ...], times: int) -> tuple[str, ...]:
    most = 3
    return told if len(told) <= most else (*told[:most], f"and {times - most} more of that kind")


def _name(each: str) -> str:
    return unicodedata.name(each, "") or (
        "TAG CHARACTER" if "\U000e0000" <= each <= "\U000e0fff" else "CONTROL"
    )
