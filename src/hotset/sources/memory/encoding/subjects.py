"""What a fact is about: facts on one subject may replace each other. Pure."""

from __future__ import annotations

import re

from hotset.text.terms import topic_words
from hotset.text.words import word_set

_SUBJECT_WORDS = 3
_NAME_WORDS = 4
_NAMES = r"[\w'/.-]+(?: [\w'/.-]+)"
_GIVEN_UP = (
    r"(?:instead of|rather than|no longer (?:use|support|need)(?:s|ed)?:?|stopped using|(?:do not|don't) (?:use|support|need)"
    r"|deprecated|dropped|replac(?:e|ed|ing))"
)
_AGREEMENT = r"(?:rules?|policy|decision|convention|agreement|limit|plan|spec\w*|default\w*)"
_TAKEN = r"(?:use|uses|using|prefer|go with|stick with|switch to|keep|adopt|call|name)"
_SUBJECTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?:the|our|my) (?P<subject>(?:[\w'/.-]+ ){1,5}?)(?:is|are|lives?|should|must|will)\b",
        rf"\bamendment (?:to|on) (?:the |our )?(?P<subject>(?:[\w'/.-]+ ){{0,3}}?{_AGREEMENT})\b",
        rf"\b{_GIVEN_UP} (?P<subject>{_NAMES}{{0,2}})",
        rf"\b(?:switched|moved|migrated|changed|renamed) from (?P<subject>{_NAMES}{{0,2}}?) to\b",
        rf"\b{_TAKEN}\b.{{2,60}}? for (?P<subject>{_NAMES}{{0,3}})",
    )
)
"""Where a sentence says what it is about, the surest first. What is given up names what held before."""
_ARTICLES = frozenset({"the", "a", "an", "our", "my", "your", "its", "of", "to", "and", "or", "any", "all"})
_NO_SUBJECTS = word_set("""
        always never remember prefer decided agreed settled stick switch call name keep support target drop adopt mind note
        forget usually typically hate dislike standardize standardise should must rule live work study allergic favorite
        favourite ahead with choose future forward general
        """)


def subject_of(clause: str) -> str:
    """What something else may be said about later: the same for a fact and for what amends it, where the words allow it."""
    plain = re.sub(r"[`\"\u201c\u201d*]", "", clause)
    for pattern in _SUBJECTS:
        if found := pattern.search(plain):
            words = [word for word in found.group("subject").lower().split() if word not in _ARTICLES]
            words = [bare for word in words if (bare := word.strip(".,;:"))]
            if words:
                return " ".join(words[-_NAME_WORDS:])
    words = [word for word in dict.fromkeys(topic_words(plain)) if word not in _NO_SUBJECTS]
    return " ".join(words[:_SUBJECT_WORDS])
