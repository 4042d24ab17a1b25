"""Whether a query asks for something to be read or to be changed, and which of both a tool does.

`commit history` asks for what was done, `commit my changes` to do it: words and meaning alone take
`git_commit` for both.
"""

from __future__ import annotations

import re
from enum import IntEnum

from hotset.text.words import split_humps, word_set


class Intent(IntEnum):
    READ = 1
    UNKNOWN = 0
    WRITE = -1

    def opposes(self, other: Intent) -> bool:
        return self * other < 0


_WORD = re.compile(r"[a-z]+")
_MOST_WORDS = 12  # of a plain query; a longer one asks for several things, or tells a story

_READS = word_set("""
    browse check compare count describe display download examine explain explore fetch filter find
    get inspect list look lookup monitor preview query read retrieve return search see select show
    summarize track view watch
""")
_WRITES = word_set("""
    add append apply approve archive assign attach block book build buy cancel change checkout clear
    clone close commit configure copy create deactivate delete deploy disable draft edit email
    enable erase fork generate import insert install invite log make mark merge modify move
    open order overwrite pay pin post publish push put record register remove rename reopen replace
    reply report reserve reset restore save schedule send set share stage stop store
    submit subscribe switch tell transfer trigger uninstall update upload write
""")
_NOUNS_TOO = word_set("book commit draft email log merge order post record report schedule store")
_READ_NOUNS = word_set("""
    content contents detail details history info information latest list listing log logs overview
    recent recently report schema state statistics stats status summary
""")
"""What is read, also behind a word that can be a verb."""
_ASKS = word_set("what which who whose where when how why is are was were does did has have any")
_HELP = re.compile(r"^how (?!many|much)|\b(?:can|could|do|should) (?:i|you|we)\b|^is it")
"""`How can I crop this image` asks for it to be cropped."""
_POLITE = word_set("""
    a all an and any can could for give go help i just let like ll me my need now please shall the
    then to us want we will would you
""")


def query_intent(query: str) -> Intent:
    """What a plain query asks for; unknown for a long one."""
    words = _WORD.findall(query.lower())
    if not words or len(words) > _MOST_WORDS:
        return Intent.UNKNOWN
    while len(words) > 1 and words[0] in _POLITE:
        words = words[1:]
    first, rest = words[0], words[1:]
    if first in _ASKS:
        return Intent.UNKNOWN if _HELP.search(" ".join(words)) else Intent.READ
    if first in _READS or words[:2] in (["tell", "me"], ["tell", "us"]):
        return Intent.READ
    if first in _NOUNS_TOO and rest and rest[0] in _READ_NOUNS:
        return Intent.READ  # `commit history`
    if first in _WRITES:
        return Intent.WRITE
    return Intent.READ if first in _READ_NOUNS or words[-1] in _READ_NOUNS else Intent.UNKNOWN


def tool_intent(title: str) -> Intent:
    """What a tool does, by the words of its name: what it reads if it names that, else its first
    verb."""
    words = _WORD.findall(split_humps(title).lower())
    if words and words[-1] in _READ_NOUNS and not _WRITES.intersection(words[:-1]):
        return Intent.READ
    for word in words:
        if word in _READS:
            return Intent.READ
        if word in _WRITES:
            return Intent.WRITE
    return Intent.UNKNOWN
