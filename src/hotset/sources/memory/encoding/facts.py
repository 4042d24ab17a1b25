"""What holds from now on, in the user's own words: rules, decisions, preferences, how things are. Pure.

Few and sure rather than many: a sentence becomes a fact only where its form says that it is meant to last. What is asked, what
is pasted, what points at something outside the sentence ("let's use that one") and what others wrote before is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.nouns.memory import Trust
from hotset.sources.memory.encoding.fact_forms import FORMS, LEAD, MACHINE, POINTS_BACK, SPECIFIC, Form
from hotset.sources.memory.encoding.subjects import subject_of
from hotset.sources.memory.encoding.taint import LEAST_SENTENCE, Outside, is_dangerous, is_suspect
from hotset.sources.memory.encoding.words import cut, prose, sentences, telling

_FEWEST_WORDS, _MOST_WORDS = 3, 48
_LONGEST = 280
_LOOKED_AT = 6000  # characters of a prompt
_PASTED = 1500  # characters of a prompt from which on, if it has headings or lists, somebody pasted a document
_HEADINGS = 3
_AGREED = 0.6  # what a model said and the user agreed to

_AMENDED = re.compile(
    r"\b(?:instead|no longer|not any ?more|anymore|amend(?:ment|ed|ing|s)?|chang(?:e|ed|ing)|supersed\w+"
    r"|replac(?:e|ed|es|ing)|switch(?:ed|ing)?|moved?"
    r"|migrat\w+|rather than|overrul\w+|revers(?:e|ed|ing)|from now on|going forward|used to|deprecated|dropped)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    rf"{LEAD}(?:can|could|would|will|do|does|did|is|are|was|were|what|how|why|when|where|who|which|should"
    rf"|shall|may|might|any|have you|has|if|do you"
    r"|i was wondering|i'm wondering|i wonder|i'm not sure|not sure|tell me|explain|maybe|perhaps|imagine|suppose|assum\w+)\b",
    re.IGNORECASE,
)
_ASKS_INSIDE = re.compile(
    r"\b(?:can|could|would|will|do|are|is|have|should) (?:you|we|i|there|it)\b.*$|\bdo you\b|\bcould you\b|\?", re.IGNORECASE
)
_POINTS = re.compile(
    r"(?:it|that|this|these|those|them|they|one|ones|both|either|neither|same|such|so|there"
    r"|then|here|him|her|you|your|to be|the (?:first|second|third|last|former"
    r"|latter|same|other|one|idea|approach|option|above|plan|way|look|sound)\w*|option|all of|some of"
    r"|what you|my own|to (?:know|hear|see|learn|try|be))\b|\W*$",
    re.IGNORECASE,
)
"""What somebody says whose meaning stands in another sentence."""
_POINTS_INSIDE = re.compile(
    r"\b(?:that|this|these|those) (?:one|ones|way|option|time|flight|approach|idea|plan|case|point|stuff|thing|\w+ \w+)\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"(?:an?|the)\b", re.IGNORECASE)
"""Whoever takes "the first flight" decides for once; whoever takes Postgres, for longer."""
_SURE = 0.85  # forms from there on mean what they say, though it be about today
_LOG = re.compile(
    r"[{}<>|=\\]{2,}|=>|::|\bat \S+:\d+|^\s*(?:\d{2}:\d{2}|\[|\$ |➜|error:|warning:|\w+Error\b)"
    r"|\S+\.\w{1,4}:\d+|https?://\S{60,}",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:yesterday|this morning|last night|earlier today|just now|right now|today|tonight|for now|at the moment|this time)\b",
    re.IGNORECASE,
)

_SETTLES = re.compile(
    r"(?:(?:ok(?:ay)?|right|great|perfect|understood|agreed|got it)[,.!:]\s+)?(?:settled|decided"
    r"|final (?:rule|decision)|decision|amended rule|amending the rule|agreed rule"
    r"|recap(?: of [^:]{1,60})?)\b[^:]{0,60}:\s*(?P<what>.{12,})",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|right|correct|exactly|agreed|ok(?:ay)?|sure|perfect|great|sounds good"
    r"|looks good|lgtm|good|do it|go ahead|go for it|that's (?:it|right|the rule|correct|what)"
    r"|that works|fine|works for me|let's do (?:it|that)|please do|approved|confirmed|thanks|thank you)\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(r"\b(?:but|no|not|don't|wait|actually|instead|however|except|wrong)\b", re.IGNORECASE)
_AGREED_HEAD = 60  # characters in which an agreement is taken back


@dataclass(frozen=True, slots=True)
class Found:
    """A fact, before it is a memory."""

    text: str
    subject: str
    confidence: float
    trust: Trust
    form: str
    amends: bool
    """It says that something else held before."""


def facts_in(words: str, place: int, others: Outside) -> Iterator[Found]:
    """The facts in what a user said, at this place of the line."""
    told = sentences(_own(words))
    for number, sentence in enumerate(told):
        found = _fact(sentence)
        if found is None or is_dangerous(sentence) or is_suspect(sentence) or others.says(sentence, place, LEAST_SENTENCE):
            continue
        form, what = found
        text = what if form.name == "remember" and not what.lower().startswith("to ") else sentence  # it is remembered now
        if (
            form.name == "amended" and form.confidence > 0.7 and number + 1 < len(told) and len(sentence.split()) < 12
        ):  # a heading
            text = f"{sentence} {told[number + 1]}"
        yield Found(
            text=_worded(text),
            subject="" if form.name == "lived" else subject_of(what),  # what happened is not replaced by what happens next
            confidence=form.confidence,
            trust=Trust.PERSON,
            form=form.name,
            amends=_AMENDED.search(sentence) is not None,
        )


def agreed_in(reply: str, before: str, after: str, place: int, others: Outside) -> Iterator[Found]:
    """Decisions that a model put into words: the user agreed right before, or does in the next words."""
    if not (_agrees(after) or _agrees(before)):
        return
    for paragraph in prose(reply).split("\n"):
        line = " ".join(paragraph.replace("**", "").split())
        found = _SETTLES.match(line)
        if found and len(line) <= 4 * _LONGEST and not is_suspect(line) and not is_dangerous(line):
            if others.says(found.group("what")[:120], place, LEAST_SENTENCE):
                continue
            yield Found(
                cut(line, 2 * _LONGEST),
                subject_of(found.group("what")),
                _AGREED,
                Trust.AGENT,
                "agreed",
                _AMENDED.search(line) is not None,
            )


def _fact(sentence: str) -> tuple[Form, str] | None:
    """The form that says that a sentence is meant to last, and what it says; None where nothing does."""
    if not _is_stated(sentence):
        return None
    for form in FORMS:
        if found := form.pattern.match(sentence):
            groups = found.groupdict()
            what = groups.get("what") or groups.get("what2") or ""
            aimed = groups.get("object") or groups.get("thing") or (what if form.name == "remember" else "")
            return None if _is_passing(form, sentence, what, aimed) or next(telling(what), None) is None else (form, what)
    return None


def _is_stated(sentence: str) -> bool:
    """Somebody says it: it is no question, no log and no list."""
    return (
        _FEWEST_WORDS <= len(sentence.split()) <= _MOST_WORDS
        and len(sentence) <= 2 * _LONGEST
        and not sentence.rstrip("\"')").endswith(("?", ":"))
        and not _LOG.search(sentence)
        and not _QUESTION.match(sentence)
        and not _ASKS_INSIDE.search(sentence)
    )


def _is_passing(form: Form, sentence: str, what: str, aimed: str) -> bool:
    """It points at something that stands elsewhere, or holds for the moment, or is small talk."""
    if aimed and (_POINTS.match(aimed) or _POINTS_INSIDE.search(aimed) or (form.name == "decided" and _ARTICLE.match(aimed))):
        return True
    if form.name == "lived":
        return not SPECIFIC.search(what[2:]) or POINTS_BACK.search(sentence) is not None or MACHINE.search(sentence) is not None
    return form.confidence < _SURE and _PAST.search(sentence) is not None


def _own(words: str) -> str:
    """What was not pasted: of a document, only what stands before it."""
    text = "\n".join(
        line for line in prose(words[:_LOOKED_AT]).splitlines() if not line.lstrip().startswith((">", "|", "#", "$", "➜"))
    )
    if len(words) <= _PASTED:
        return text
    marks = len(re.findall(r"^\s*(?:#{1,4} |[-*] |\d+\. )", words[:_LOOKED_AT], re.MULTILINE))
    return text.split("\n\n", 1)[0][:_PASTED] if marks >= _HEADINGS else text[:_PASTED]


def _worded(sentence: str) -> str:
    bare = re.sub(rf"^{LEAD}", "", sentence, count=1, flags=re.IGNORECASE).strip() or sentence
    return cut(bare[:1].upper() + bare[1:], _LONGEST)


def _agrees(text: str) -> bool:
    found = _AGREES.match(text)
    return found is not None and not _REFUSES.search(text[found.end() : _AGREED_HEAD])
