"""Characters that hide something or look like others: finds them, and makes them visible. Pure.

A person approves what they can see; a model reads what is there. Scripts that need joiners and
marks, emoji and flags may use them; everything else that is invisible, or reorders what is shown,
is reported.
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
"""England, Scotland and Wales: the only flags spelt with tags."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters, marks and signs that show nothing, beside the categories that never do."""
_SPACES = frozenset("\u1680\u205f") | {chr(code) for code in range(0x2000, 0x200B)}
"""Spaces that no keyboard types. No-break, narrow and ideographic spaces occur in honest texts and
hide nothing."""
_NEVER_SHOWN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
_DIRECTIONS = frozenset("\u200e\u200f\u061c")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_MARKED = re.compile("[0-9#*\u203c\u2049\u2139\u24c2\u3030\u303d\u3297\u3299]")
"""Characters besides symbols that an emoji's variation selector may follow."""
_BLANK_RUN = re2.compile(r"[ \t\x{a0}\x{3000}]{200}\s*\S|(?:\r?\n[ \t]*){30}\s*\S")
"""So much white space that the text after it is outside of what a dialog shows."""
_PILE = 6  # marks on one letter: Tibetan and Thai need fewer, obscured text has more

_WORD = re.compile(r"[^\W\d_]+")
_DRESSED = re.compile("[\U0001d400-\U0001d7ff]{2,}|[\u24b6-\u24e9\U0001f130-\U0001f189]{3,}")
"""Words in mathematical or circled letters: people can read them, but no search finds them."""
_WIDE = re.compile("[\uff21-\uff3a\uff41-\uff5a]{2,}")

_ALIKE = {
    **dict(
        zip("асԁеһіјӏорԛѕуѵԝхАВЕЅІЈКМНОРСТУХҮ", "acdehijlopqsyvwxabesijkmhopctyxy", strict=True)  # noqa: RUF001
    ),
    **dict(zip("αγικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ayikvoptuxwabezhikmnoptyx", strict=True)),
    **dict(zip("ոսօցհᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ", "nuoghabcdeghjklmprstvwz", strict=True)),  # noqa: RUF001
}
"""Cyrillic, Greek, Armenian and Cherokee letters that look like a Latin one."""
_ALIKE_IN_NAMES = str.maketrans("ıɩi1|ɑɡ05$", "lllllagoss")  # noqa: RUF001
"""Hard to distinguish in a name at a glance; harmless in a text."""

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
    """Descriptions of the invisible characters in a text: empty for nearly every text."""
    if _PLAIN.match(text):
        return _emptiness(text)
    unseen = [text[at] for at in _unseen(text)]
    found = tuple(
        f"invisible character U+{ord(each):04X} {_name(each)}" for each in dict.fromkeys(unseen)
    )
    return (*_shorten_list(found, len(unseen)), *_piles(text), *_emptiness(text))


def lookalikes(text: str) -> tuple[str, ...]:
    """Descriptions of words written in letters that look like others."""
    if text.isascii():
        return ()
    found = [
        f"{word[:40]!r} mixes letters of several scripts that look alike"
        for word in _WORD.findall(text)
        if _is_mixed(word)
    ]
    found += [
        f"{word.group()[:40]!r} is written in letters that are made for formulas"
        for word in _DRESSED.finditer(text)
    ]
    if not _IDEOGRAPHS.search(text):  # between ideographs wide letters are the usual ones
        found += [
            f"{word.group()[:40]!r} is written in wide letters" for word in _WIDE.finditer(text)
        ]
    found += [
        f"{word[:40]!r} is written in letters that look like Latin ones"
        for word in _disguised_words(text)
    ]
    return _shorten_list(tuple(dict.fromkeys(found)), len(found))


def visible(text: str) -> str:
    """The text for a person: characters that are invisible, or change order or colour, by code
    point."""
    if _PLAIN.match(text):
        return text.replace("\r", "⟨U+000D⟩") if "\r" in text else text
    unseen = set(_unseen(text))
    return "".join(
        f"⟨U+{ord(each):04X}⟩"
        if at in unseen or each == "\r" or unicodedata.category(each) in ("Cf", "Cs")
        else each
        for at, each in enumerate(text)
    )


def mark_invisible(text: str) -> tuple[str, int]:
    """The text for a model, with a mark in place of each invisible character, and their number."""
    if _PLAIN.match(text):
        return text, 0
    unseen = set(_unseen(text))
    return "".join(MARK if at in unseen else each for at, each in enumerate(text)), len(unseen)


def skeleton(name: str) -> str:
    """A normal form of a name: two names with the same one look alike."""
    plain = (
        name
        if name.isascii()
        else _latin("".join(each for each in name if not _shows_nothing(each)))
    )
    return plain.casefold().translate(_ALIKE_IN_NAMES).replace("rn", "m").replace("vv", "w")


def fold_text(text: str) -> str:
    """The text in plain lower-case letters and single spaces, with hidden and disguised text
    searchable."""
    if not _PLAIN.match(text):
        text = _latin(
            _tag_text(text)
            + "".join(each for each in text if each.isspace() or not _shows_nothing(each))
        )
    return " ".join(text.split()).lower()


def squeeze(content: bytes) -> bytes:
    """The text in lower case without spaces, quotes and invisible characters: equal for texts that
    look the same."""
    if b"\\" in content:
        content = _unescape(content)
    if not content.isascii():
        content = _undisguise(content)
    return content.translate(_TO_SMALL, _SQUEEZED_OUT)


def _latin(text: str) -> str:
    return "".join(_ALIKE.get(each, each) for each in unicodedata.normalize("NFKC", text))


def _unescape(content: bytes) -> bytes:
    """The content with JSON escapes decoded: most tools answer in JSON."""
    for escape in (b"\\n", b"\\r", b"\\t"):
        content = content.replace(escape, b"")
    if b"\\u" in content:
        content = _ESCAPE.sub(
            lambda found: chr(int(found.group(1), 16)).encode("utf-8", "replace"), content
        )
    return content


def _undisguise(content: bytes) -> bytes:
    """The content with look-alike letters replaced and invisible characters removed."""
    text = content.decode("utf-8", "replace")
    if _DISGUISE.search(text):
        text = unicodedata.normalize("NFKC", text)
        text = "\n".join(
            fold_text(line) if not line.isascii() else line for line in text.split("\n")
        )
    return _UNSEEN_BYTES.sub(b"", text.encode("utf-8", "replace"))


def _tag_text(text: str) -> str:
    """The text spelt in tag characters, which mirror ASCII, with a space behind it."""
    spelt = "".join(chr(ord(each) - 0xE0000) for each in text if 0xE0020 <= ord(each) <= 0xE007E)
    return f"{spelt} " if spelt else ""


def _unseen(text: str) -> Iterator[int]:
    """Indexes of invisible characters that the text does not need."""
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
    """True if the script or the emoji around it needs it."""
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
    """True for Arabic, Indic and related scripts, in which joiners change the writing."""
    return "\u0600" <= letter <= "\u10ff" and unicodedata.category(letter)[0] in "LM"


def _is_pictorial(each: str) -> bool:
    return unicodedata.category(each) in ("So", "Sm", "Sk", "Cn") or each in "\ufe0f\u20e3"


def _is_mixed(word: str) -> bool:
    return any(each in _ALIKE for each in word) and any(each.isascii() for each in word)


def _disguised_words(text: str) -> Iterator[str]:
    """Words of look-alikes only, in a text that is otherwise Latin: in Russian or Greek they are
    words."""
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


def _shorten_list(items: tuple[str, ...], times: int) -> tuple[str, ...]:
    most = 3
    return items if len(items) <= most else (*items[:most], f"and {times - most} more of that kind")


def _name(each: str) -> str:
    return unicodedata.name(each, "") or (
        "TAG CHARACTER" if "\U000e0000" <= each <= "\U000e0fff" else "CONTROL"
    )
