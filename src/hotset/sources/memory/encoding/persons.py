"""Proof that a prompt is a person's own words: plain prose, after no action of the agent, with nothing that a tool returned.

Agents without native tool calls put the output of commands, files and searches into user messages, each in a wrapper of its own.
There is no list of all wrappers, so the proof goes the other way: whatever does not read as a few typed sentences is `outside`.
Pure, linear.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hotset.sources.memory.encoding.speaking import unquoted, without_marks
from hotset.sources.memory.encoding.taint import LEAST_SENTENCE, Outside
from hotset.text.sentences import sentences
from hotset.text.words import UNSPACED, word_set

LONGEST = 1000
"""Characters that a person types; what is longer was pasted, at least in part."""

_STARTS = re.compile(r"[^\W\d_]|[\"'\u2018\u201c\u00bf\u00a1`]\w|\d+ [a-z]")
"""How a typed line begins. Prompts, quotations, headings, bullets, numbers of lines, tags and changes begin otherwise."""
_MARKUP = re.compile(
    r"<[/!?|A-Za-z]|[{}\t|\\\x00-\x08\x0b-\x1f\x7f-\x9f]|```|~~~|([-=#*~_+^:])\1\1"
    r"|\[/?[A-Z][\w -]*\]|\d:\d\d:\d\d|\b\d{4}-\d\d-\d\d[T ]\d|^\S+(?: \S+)? ?[$#%>\u276f\u279c\u00bb] |^\w+=|^ {4}",
    re.MULTILINE,
)
"""Tags, fences, JSON, tables, separators, times of a log, prompts of a terminal, code."""
_LABEL = re.compile(r"(?:[^\s:.,!?]+ ){0,3}[^\s:.,!?]+ ?(?::(?=\s|$)|: ?(?=[A-Z]))")
"""A few words and a colon at the start of a line: `Output:`, `Exit code: 0`, `Subject: ...`."""
_OWN_LABEL = re.compile(
    r"(?:(?:please|also|and|ok(?:ay)?|hi|hey|hello|yes|no)[ ,]+)*"
    r"(?:remember|reminder|(?:one|a|another|my|our|the|new) (?:more )?(?:rule|thing|reminder|convention|note|request)|rule"
    r"|important|fyi|btw|by the way|update|correction|again|decision|convention|note|unrelated(?: heads-up)?"
    r"|just so you know|for the record"
    r"|amendment|p\.?s\.?) ?:",
    re.IGNORECASE,
)
_SPOKEN = word_set("""
    i i'm i'd i'll i've im ive me my mine we we're we'll we've us our ours you you're your yours he she they it it's its
    this that that's these those let's lets is are was were be been am do does don't dont did didn't have has had can
    can't could would will won't should shall must may might need needs want wants like likes prefer prefers always
    never please thanks thank thx ok okay yes yeah no not hi hello hey sorry btw also instead what how why when where
    who which nice good great cool perfect work works add implement create build write fix refactor rename remove delete
    update upgrade migrate move make change replace use run keep put try investigate review analyze analyse debug
    explain document deploy release publish convert integrate design read find look check improve optimize optimise
    clean generate extract split merge compare recommend suggest show tell give get set continue go stop remember commit
    push ask avoid help call think know see say said ich du wir ihr ist sind hat haben kannst soll muss bitte danke
    nicht kein immer nie mach mache nutze verwende je tu nous vous est sont c'est pas toujours jamais merci peux utilise
    utilisez yo usa usamos son siempre nunca gracias favor hay
    """)
"""Words without which a line is a heading, a name or a number, and nobody's sentence."""
_WORD = re.compile(r"[^\W\d_][\w']*")
_WITHOUT_SPACES = re.compile(f"[{UNSPACED}]")
_QUOTED = re.compile(r"[\"'\u2018\u201c\u00ab`].*[\"'\u2019\u201d\u00bb`][.,]?")
_QUOTES = "opencode"
"""The client that puts what came by its command line between quotation marks."""
_ENDS = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"')\u2019\u201d`]*$")
_FEW = 4  # words of a line in a letter: who is addressed, how it ends, who wrote it
_SIGNED = re.compile(r"[^\W\d_][\w ]{0,30},")
_BARE = 120  # characters of a part that can be a wrapper's own line
_TAIL = 4000  # characters at the end of a reply in which an action stands
_LAST_LINES = 6
_BLOCK = re.compile(r"\s*<([\w-]+)(?:\s[^<>]*)?>.*</\1>\s*", re.DOTALL)
_OPENED = re.compile(r"<(/?)([A-Za-z][\w-]*)(?:\s[^<>]*)?(?<!/)>")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_CHANGES = re.compile(r"^>>>>>>> REPLACE|^ {0,3}(?:```|~~~)(?:diff|patch)\b|^\*\*\* End Patch", re.MULTILINE)
_ACTS = re.compile(
    r"^[ \t>*_#-]*(?:next |tool |final )?(?:actions?|action input|tools?|tool (?:call|input|name)|inputs?|arguments?|commands?"
    r"|cmd|code|functions?|function call|calls?|execute|run|shell|bash|search|query|invoke)[*_ ]*:",
    re.IGNORECASE | re.MULTILINE,
)
_ACTS_AT_END = re.compile(
    r"(?:[}\]]|<[^<>]{1,200}>|\[/?[\w ]{1,40}\]|<\|[^|]{1,40}\|>)\s*\Z"
    r"|^[ \t]*(?:[$!/%]|>>>) ?\w[^\n]*\s*\Z|^[ \t]*[\w.]+[\[(][^\n]*[\])]\s*\Z"
    r"|^[A-Z_]{3,}(?:[ :][^\n]*[^.!?:\s])?\s*\Z",
    re.MULTILINE,
)
_SHINGLE = 6  # words; a shared run of eleven holds one whatever its place
_LEAST_SHINGLE = 24  # characters of one, squeezed


def is_person(text: str, beside: Sequence[str] = (), reply: str = "", agent: str = "") -> bool:
    """Is this part of a user message a person's own words? `beside`: the other parts; `reply`: what the model said before."""
    own = unquoted(text.strip()) if _QUOTES in agent.lower() else text
    return is_plain(own) and not any(map(_wraps, beside)) and not ends_in_action(reply)


def is_plain(text: str) -> bool:
    """A few sentences, as they are typed."""
    if len(text) > 2 * LONGEST:
        return False
    said = without_marks(text).replace("\r\n", "\n").strip("\n").rstrip()
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if not lines or len(said) > LONGEST or _MARKUP.search(said) or not all(map(_is_typed, lines)):
        return False
    if any(line.endswith((":", "\uff1a")) for line in lines[:-1]) or _is_letter(lines):
        return False
    told = sentences(said)
    return len(told) == 1 or all(_says(each) or (_ENDS.search(each) and len(each.split()) > _FEW) for each in told)


def ends_in_action(reply: str) -> bool:
    """Does a reply end in something for its client to run: a fenced command, JSON, a tag, `Action:`, a call?"""
    end = reply.rstrip()[-_TAIL:]
    if not end:
        return False
    last = "\n".join(end.splitlines()[-_LAST_LINES:])
    fenced = end.endswith(("```", "~~~")) or len(_FENCE.findall(reply)) % 2 == 1
    return (fenced and not _CHANGES.search(end)) or _ACTS.search(last) is not None or _ACTS_AT_END.search(last) is not None


def repeats(text: str, place: int, others: Outside) -> bool:
    """Does a line, a sentence or a run of words of it stand in what others wrote before this place?"""
    return any(others.says(each, place, LEAST_SENTENCE) for each in (*text.splitlines(), *sentences(text))) or any(
        others.says(each, place, _LEAST_SHINGLE) for each in _shingles(text)
    )


def _shingles(text: str) -> Iterator[str]:
    words = text.split()
    yield from (" ".join(words[at : at + _SHINGLE]) for at in range(0, len(words) - _SHINGLE + 1, _SHINGLE))


def _is_typed(line: str) -> bool:
    return (
        _STARTS.match(line) is not None
        and _QUOTED.fullmatch(line) is None
        and (_LABEL.match(line) is None or _OWN_LABEL.match(line) is not None)
    )


def _says(text: str) -> bool:
    words = _WORD.findall(text.lower().replace("\u2019", "'"))
    return any(word in _SPOKEN for word in words) or _WITHOUT_SPACES.search(text) is not None


def _is_letter(lines: Sequence[str]) -> bool:
    """A greeting or a closing on a line of its own, and a name behind it: `Best,` and `Bob`."""
    return any(
        _SIGNED.fullmatch(line) is not None and len(line.split()) <= _FEW and not _says(behind)
        for line, behind in pairwise(lines)
        if len(behind.split()) <= _FEW
    )


def _wraps(part: str) -> bool:
    """Does this part announce, open or close what stands in the parts beside it?"""
    text = without_marks(part).strip()
    if not text or _BLOCK.fullmatch(text):  # a note of the client
        return False
    open_tags: Counter[str] = Counter()
    for found in _OPENED.finditer(text):
        open_tags[found[2]] += -1 if found[1] else 1
    return (
        any(open_tags.values())
        or len(_FENCE.findall(text)) % 2 == 1
        or text.endswith((":", "\uff1a"))
        or (len(text) <= _BARE and not is_plain(text))
    )
