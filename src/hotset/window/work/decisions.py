"""What the user and the model said for themselves and did not take back: decisions, preferences.
Pure.

A quotation, hearsay and a condition are nobody's word. A later sentence that gives the same thing
another value, or gives it up, stands in place of the earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hotset.text.sentences import report_sentences
from hotset.window.work.changes import may_take_back, replaces, takes_back

_MOST = 48  # of them are compared with what is said later, the latest
_LONGEST = 240
"""Characters of a sentence that states one thing."""

_SAID = (
    r"(?:decid|decision|settled|agreed|chose|opted|go(?:ing)? with|stick with|amend|we'll|let's"
    r"|prefer|i (?:like|love|hate|dislike|want)|always|never|from now on)"
)
_UNDECIDED = re.compile(
    r"\b(?:not|never|n[o']t|nothing|no(?!,)|cannot|yet to|un|if|whether|until|once|before|unless"
    r"|could|might|should|would|suppose\w*|imagine|pretend\w*|example)\b[^.;]{0,40}"
    r"\b(?:decid|decision|settled|agreed|chose|opted|go(?:ing)? with|stick with|amend)"
    r"|undecided|n't (?:decid|settl|agree)"
    r"|\b(?:if|whether|unless|suppose\w*) (?:i|you|we) (?:prefer|like|want)\b",
    re.IGNORECASE,
)
"""Sentences with a word of decision that decide nothing, or may not."""

_HEARSAY = re.compile(
    r"\b(?:(?:i|we) (?:also |just )?(?:read|heard|saw|was told|were told)"
    r"|(?:the|this|that|a|an|it|he|she|they|your|our|their|\w+\.\w+)\s(?:[\w.]+ ){0,2}?"
    r"(?:says?|said|claims?|claimed|states?|stated|wrote|mentions?|mentioned|reads)"
    rf"|according to|allegedly|apparently|supposedly)\b[^.;]{{0,80}}\b{_SAID}",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"\b(?:read|heard|saw|says?|said|wrote|written|states?|quot\w+|readme|docs?|document\w*|file"
    r"|page|log|e?mail|message|comment|issue|ticket|here is|here's|pasted?|following)\b"
    r"[^:]{0,60}:$",
    re.IGNORECASE,
)
"""What a sentence of somebody else stands behind."""

_QUOTED = re.compile(
    r"\"[^\"]{2,400}\"|\u201c[^\u201d]{2,400}\u201d|\u00ab[^\u00bb]{2,400}\u00bb"
    r"|(?<!\w)'(?:[^']|(?<=\w)'(?=\w)){2,400}'(?!\w)"
)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_RETRACTS = re.compile(
    r"(?:(?:no|ok(?:ay)?|actually|wait|sorry|please|and|but|oh)[,.! ]+)*"
    r"(?:(?:please )?(?:ignore|forget|disregard|scratch|drop|discard) "
    r"(?:that|this|it|about (?:it|that)|the (?:above|last)\b[^.]{0,20})|never ?mind)\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:instead|rather|longer|now|switch|mov|migrat|chang|renam|dropp|deprecat|retir|remov"
    r"|replac|stopped|got rid|gave up|prefer|from now on|as of|going forward)",
    re.IGNORECASE,
)
"""Every sentence that takes something back has one of these."""

_UNSURE = re.compile(
    r"\b(?:if|whether|could|might|maybe|perhaps|suppose\w*|unless|until|not|never|cannot|would"
    r"|should)\b|n't\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SpokenText:
    """What somebody said at one place of a conversation."""

    at: int
    text: str
    is_user: bool


def standing_sentences(
    utterances: Iterable[SpokenText],
    mentions: Callable[[str], bool],
    is_wanted: Callable[[str], bool],
    is_repeated: Callable[[SpokenText], bool],
) -> list[SpokenText]:
    """The wanted sentences that still stand, in order. `mentions` is true of a text that may have
    one, `is_repeated` of a sentence that somebody else's text has."""
    found: list[SpokenText] = []
    before = -1
    for each in utterances:
        may_change = bool(found) and (_CHANGES.search(each.text) or _RETRACTS.search(each.text))
        last = ""
        if may_change or mentions(each.text):
            for text in report_sentences(_without_quotations(each.text, mentions)):
                sentence = SpokenText(each.at, text, each.is_user)
                if _RETRACTS.match(text):
                    near = (each.at,) if last else (each.at, before)
                    found = [one for one in found if one.at not in near]
                elif not text.endswith("?") and len(text) <= _LONGEST:
                    found = _after(found, sentence, last, is_wanted, is_repeated)
                last = text
        before = each.at
    return found


def _after(
    found: list[SpokenText],
    each: SpokenText,
    last: str,
    is_wanted: Callable[[str], bool],
    is_repeated: Callable[[SpokenText], bool],
) -> list[SpokenText]:
    """What stands after one more sentence; `last` is the one before it."""
    text, recent = each.text, found[-_MOST:]
    if _INTRODUCES.search(last) or _HEARSAY.search(text):
        return found
    if is_wanted(text) and not _UNDECIDED.search(text):
        gone = [one for one in recent if replaces(one.text, text)]
    elif recent and may_take_back(text) and not _UNSURE.search(text):
        gone = [one for one in recent if takes_back(one.text, text)]
        if not gone:
            return found
    else:
        return found
    if not each.is_user and is_repeated(each):
        return found
    return [*(one for one in found if one not in gone), each]


def _without_quotations(text: str, mentions: Callable[[str], bool]) -> str:
    """Without lines that quote, and without quoted words that would be taken for the speaker's."""
    own = _QUOTED_LINE.sub("", text) if ">" in text else text
    if not any(sign in own for sign in "\"'\u201c\u00ab"):
        return own
    return _QUOTED.sub(lambda found: "" if mentions(found[0]) else found[0], own)
