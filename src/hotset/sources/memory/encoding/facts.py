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
from hotset.text.clip import clip_prose
from hotset.text.sentences import SENTENCE_END, sentences, without_fences
from hotset.text.terms import topic_words

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

_SETTLEMENT = r"(?:rule|policy|decision|recap|convention|contract|semantics|behaviou?r|spec\w*)"
_SETTLES = re.compile(
    r"(?:(?:ok(?:ay)?|right|great|perfect|understood|agreed|got it|clear|done)[\s,.!:;\u2013\u2014-]+)?"
    rf"(?:(?P<settled>settled|decided|(?:final|agreed) (?:[\w-]+ )?{_SETTLEMENT}|final(?=:)|decision|recap"
    rf"|(?:amended|amending|new|updated|revised) (?:the )?(?:[\w-]+ )?{_SETTLEMENT})\b[^:.!?]{{0,90}}"
    r"|(?:understood|got it)):\s*(?P<what>\S.{11,})",
    re.IGNORECASE,
)
"""What a model calls settled, or repeats."""
_OWN_DOING = re.compile(
    r"\bI(?:['\u2019](?:ll|m|ve|d)| (?:will|am|have|would|can|did|also|now))\b|\b(?:passed|verified|pushed)\b"
)
"""With which a model reports, where nobody agreed to anything."""
_DECIDING = frozenset({"rule", "stands", "decided", "uses", "amended"})
"""Forms of what shall be; the others say what is liked, and how things and people are."""
_AGREES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|right|correct|exactly|agreed|ok(?:ay)?|sure|perfect|great|sounds good"
    r"|looks good|lgtm|good|do it|go ahead|go for it|that's (?:it|right|the rule|correct|what)"
    r"|fine|works for me|let's do (?:it|that)|please do|approved|confirmed)\b",
    re.IGNORECASE,
)
_IT_WORKED = re.compile(
    r"\b(?:thanks?|thx|(?:it|that|this|all|everything|now)(?: \w+){0,2} (?:works?|worked|passes|passed)"
    r"|(?:works?|working|worked|fixed|solved)(?! for me))\b",
    re.IGNORECASE,
)
"""With which somebody confirms an outcome, and no text."""
_REFUSES = re.compile(r"\b(?:but|no|not|don't|wait|actually|instead|however|except|wrong)\b", re.IGNORECASE)
_AGREED_HEAD = 60  # characters in which an agreement is taken back
_TAKES_BACK = re.compile(r"\W*(?:no|nope|not|wrong|wait|actually|but|hold on|hmm|that'?s not|don'?t)\b", re.IGNORECASE)
_REPEATED = 0.55  # confidence in what a model repeated and nobody took back
_LEAST_SETTLED, _LEAST_REPEATED = (
    1,
    3,
)  # telling words and numbers of what the user said right before; with fewer it is the model's own
_NUMBER = re.compile(r"\b\d+\b")


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


def facts_in(words: str, place: int, others: Outside, trust: Trust = Trust.PERSON) -> Iterator[Found]:
    """The facts in what a user said, at this place of the line; `trust`: whose words these are."""
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
            trust=trust,
            form=form.name,
            amends=_AMENDED.search(sentence) is not None,
        )


def agreed_in(reply: str, before: str, after: str, place: int, others: Outside) -> Iterator[Found]:
    """Decisions that a model put into words: the user agreed right before, or does in the next words, or had just said it."""
    is_agreed = _agrees(after) or _agrees(before)
    if not is_agreed and (_TAKES_BACK.match(after) or before.rstrip().endswith("?")):
        return
    for paragraph in without_fences(reply).split("\n"):
        line = " ".join(paragraph.replace("**", "").split())
        found = _settled(line)
        if found is None or len(line) > 4 * _LONGEST or is_suspect(line) or is_dangerous(line):
            continue
        what = found.group("what")
        if others.says(what[:120], place, LEAST_SENTENCE) or not (is_agreed or _repeats(found, before)):
            continue
        text = line[found.start() :]
        yield Found(
            clip_prose(text, 2 * _LONGEST),
            subject_of(what),
            _AGREED if is_agreed else _REPEATED,
            Trust.AGENT,
            "agreed",
            _AMENDED.search(text) is not None,
        )


def is_decision(text: str) -> bool:
    """Does a fact say what shall be, and not only how things are? Told from its words, so that it holds for whoever wrote it."""
    return _SETTLES.match(text) is not None or any(
        form.pattern.match(text) is not None for form in FORMS if form.name in _DECIDING
    )


def _settled(line: str) -> re.Match[str] | None:
    """Where a line, or a sentence in it, begins to say what was settled."""
    starts = (0, *(found.end() for found in SENTENCE_END.finditer(line)))
    return next((found for start in starts if (found := _SETTLES.match(line, start))), None)


def _repeats(found: re.Match[str], said: str) -> bool:
    """Is it, at least in part, what the user had just said? Of what is called settled a word is enough: it sums up more."""
    mine, theirs = ({*topic_words(text), *_NUMBER.findall(text)} for text in (found.group("what"), said))
    least = _LEAST_SETTLED if found.group("settled") else _LEAST_REPEATED
    return len(mine & theirs) >= least and _OWN_DOING.search(found.group("what")) is None


def _fact(sentence: str) -> tuple[Form, str] | None:
    """The form that says that a sentence is meant to last, and what it says; None where nothing does."""
    if not _is_stated(sentence):
        return None
    for form in FORMS:
        if found := form.pattern.match(sentence):
            groups = found.groupdict()
            what = groups.get("what") or groups.get("what2") or ""
            aimed = groups.get("object") or groups.get("thing") or (what if form.name == "remember" else "")
            return None if _is_passing(form, sentence, what, aimed) or next(topic_words(what), None) is None else (form, what)
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
        line
        for line in without_fences(words[:_LOOKED_AT]).splitlines()
        if not line.lstrip().startswith((">", "|", "#", "$", "➜"))
    )
    if len(words) <= _PASTED:
        return text
    marks = len(re.findall(r"^\s*(?:#{1,4} |[-*] |\d+\. )", words[:_LOOKED_AT], re.MULTILINE))
    return text.split("\n\n", 1)[0][:_PASTED] if marks >= _HEADINGS else text[:_PASTED]


def _worded(sentence: str) -> str:
    bare = re.sub(rf"^{LEAD}", "", sentence, count=1, flags=re.IGNORECASE).strip() or sentence
    return clip_prose(bare[:1].upper() + bare[1:], _LONGEST)


def _agrees(text: str) -> bool:
    found = _AGREES.match(text)
    return (
        found is not None and not _REFUSES.search(text[found.end() : _AGREED_HEAD]) and not _IT_WORKED.search(text[:_AGREED_HEAD])
    )
