"""Facts that a person stated or agreed to: the forms of such sentences, and their subjects, by
which facts replace each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Trust
from hotset.sources.memory.encode.speakers import (
    LEAST_SENTENCE,
    OutsideWords,
    is_dangerous,
    is_suspect,
)
from hotset.sources.memory.encode.statements import (
    LEAD,
    MOMENT,
    THRESHOLD,
    clauses,
    is_stated,
    judge_statement,
)
from hotset.text.clip import clip_prose
from hotset.text.sentences import SENTENCE_END, without_fences
from hotset.text.terms import topic_words
from hotset.text.words import word_set

_SUBJECT_WORDS = 3
_NAME_WORDS = 4
_NAMES = r"[\w'/.-]+(?: [\w'/.-]+)"
_GIVEN_UP = (
    r"(?:instead of|rather than|no longer (?:use|support|need)(?:s|ed)?:?|stopped using|(?:do "
    r"not|don't) (?:use|support|need)"
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
"""Where a sentence names its subject, the surest first. What is given up names what held before."""
_ARTICLES = frozenset(
    {"the", "a", "an", "our", "my", "your", "its", "of", "to", "and", "or", "any", "all"}
)
_NO_SUBJECTS = word_set("""
        always never remember prefer decided agreed settled stick switch call name keep support
        target drop adopt mind note forget usually typically hate dislike standardize standardise
        should must rule live work study allergic favorite favourite ahead with choose future
        forward general now longer currently instead moved switched
        """)


def subject_of(clause: str) -> str:
    """The subject of a fact: if the words allow it, the same for a fact and its amendment."""
    plain = re.sub(r"[`\"\u201c\u201d*]", "", clause)
    for pattern in _SUBJECTS:
        if found := pattern.search(plain):
            words = [
                word for word in found.group("subject").lower().split() if word not in _ARTICLES
            ]
            words = [bare for word in words if (bare := word.strip(".,;:"))]
            if words:
                return " ".join(words[-_NAME_WORDS:])
    words = [word for word in dict.fromkeys(topic_words(plain)) if word not in _NO_SUBJECTS]
    return " ".join(words[:_SUBJECT_WORDS])


_STATE = (
    r"(?:a (?:bit|little|lot|mess|problem|bug|good|great|bad|nice|better)|an? "
    r"(?:issue|error)|failing"
    r"|broken|wrong|missing|not|too|very|really|so|still|now|ready|done|ok|okay"
    r"|good|great|fine|nice|bad|weird|odd|slow|unclear|confusing|that|to|being|getting|going|hard"
    r"|difficult|just|pretty|quite|also|only|what|where|how|why|there|here|it"
    r"|because|about|more|less|much|actually|definitely|all|up|down|interesting|important|"
    r"similar|different|as)\b"
)


@dataclass(frozen=True, slots=True)
class FactForm:
    """A form of sentence that is meant to last."""

    name: str
    pattern: re.Pattern[str]
    confidence: float
    """A rank among the forms, by how seldom they meant something else in the sessions read for
    it."""


def _form(name: str, confidence: float, pattern: str) -> FactForm:
    return FactForm(name, re.compile(rf"{LEAD}(?:{pattern})", re.IGNORECASE), confidence)


FORMS = (
    _form(
        "remember",
        0.95,
        r"(?:remember|(?:keep|bear) in mind|make a note|take note|don'?t forget"
        r"|for future reference)(?:\s*[,:\u2013-]\s*|\s+that\s+|\s+(?=to\b))"
        r"(?!when|how|what|why|where|the time|to (?:be|have)\b)(?P<what>.+)",
    ),
    _form(
        "decided",
        0.85,
        r"(?P<what>(?:we|i|the team|management|legal|security|product|ops|they)(?:'ve| have|'d"
        r"| had)?(?: already| all| both| finally)? "
        r"(?:decided|agreed|settled|opted|standardi[sz]ed|committed)"
        r"(?: (?:to|on|that|for|against|upon)) (?!it\b|that\b|this\b).{4,})",
    ),
    _form(
        "decided",
        0.75,
        r"(?P<what>(?:let'?s|we(?:'ll| will|'re going to| are going to)) (?:go (?:ahead )?with"
        r"|standardi[sz]e on|stick (?:with|to)|switch to|settle on) (?P<object>.{3,}))",
    ),
    _form(
        "decided",
        0.7,
        r"(?P<what>let'?s (?:use|keep|call|name|target|support|drop|adopt) (?P<object>.{3,}))",
    ),
    _form("amended", 0.8, r"(?P<what>amendment(?: to| after| on)?\b.{8,})"),
    _form(
        "amended",
        0.65,
        r"(?P<what>(?:we|they)(?:'ve| have)? (?:just |recently )?(?:renamed|replaced|changed"
        r"|moved) (?P<object>(?!our mind|my mind|it |this |that ).{3,} (?:to|with|from|into) "
        r".{2,}))",
    ),
    _form("prefers", 0.85, r"(?P<what>my favou?rite (?:[\w'-]+ ){1,4}(?:is|are) .{2,})"),
    _form(
        "person",
        0.8,
        r"(?P<what>my "
        r"(?:(?:wife|husband|partner|son|daughter|brother|sister|mother|mom|father|dad|dog|cat"
        r"|boss|manager|cousin|niece|nephew|roommate|fianc[eé]e?|girlfriend|boyfriend|pet)"
        r"(?:'s name)?"
        r"|(?:full |first |last |middle )?name|birthday|anniversary|home ?town|job "
        r"title|pronouns|(?:email"
        r"|phone|mailing|home) (?:address|number)|user ?name|user id|time ?zone|budget|blood type"
        r"|shoe size) (?:is|are) (?!" + _STATE + r").{2,})",
    ),
    _form(
        "person",
        0.75,
        r"(?P<what>i(?:'m| am) (?:allergic to|intolerant|vegetarian|vegan|lactose|gluten|diabetic"
        r"|colou?r-?blind|based in|located in|living in|originally "
        r"from|from|married|left-handed)\b.{2,}"
        r"|i (?:live|reside|work|study|teach|grew up|was born|volunteer) "
        r"(?:in|at|as|for|near|on) .{2,}"
        r"|i have (?:a|an|two|three|four|five|\d+) (?:\w+ "
        r"){0,2}(?:kids?|children|dogs?|cats?|sons?|daughters?"
        r"|sisters?|brothers?|siblings?|allerg(?:y|ies)|degree|mortgage)\b.*)",
    ),
    _form(
        "habit",
        0.6,
        r"(?P<what>i (?:always|usually|typically|never) "
        r"(?!been|wanted|want|thought|think|knew|know|had|heard"
        r"|seen|realized|realised|feel|felt|tried|got|found|find|wonder|really|get|mind|"
        r"understood|imagined"
        r"|just|end|seem|remember|forget|struggle|have trouble)"
        r"[a-z]+ .{6,})",
    ),
    _form(
        "lived",
        0.6,
        r"(?P<what>i(?:'ve| have)? (?:(?:just|recently|finally|also|actually|already|even) "
        r")*(?:got (?:my|a|an"
        r"|the|back)|bought|purchased|adopted|moved (?:to|into|in|from)|graduated|joined"
        r"|(?:started|began) (?:\w+ing|my|a|an|at|as)|upgraded "
        r"(?:my|to)|subscribed|enrolled|got (?:married"
        r"|engaged|promoted|hired)|finished (?:reading|watching|my|a|the)|signed "
        r"up|attended|visited"
        r"|ordered|received (?:my|a|an)|inherited|completed (?:my|a|an|the)|ran "
        r"(?:a|my)|won|volunteered"
        r"|redeemed|sold|hosted|participated|switched (?:to|from)) .{8,}"
        r"|i(?:'ve| have) been "
        r"(?!wondering|thinking|meaning|noticing|looking|considering|planning|hoping"
        r"|trying|wanting|struggling|feeling|told|having)(?:\w+ing) .{4,}\b(?:for|since)\b .{3,}"
        r"|my (?:[\w'-]+ ){1,3}(?:got|turned|lives?|works?|prefers?) .{6,})",
    ),
)
SPECIFIC = re.compile(
    r"\d|\b(?:january|february|march|april|june|july|august|september|october|november|"
    r"december|(?:mon"
    r"|tues|wednes|thurs|fri|satur|sun)day|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|twice|month|months|year|years|week|weeks)\b|(?<=[a-z,] "
    r")(?-i:(?!I')[A-Z][\w'-]{2,})|\"[^\"]{3,}\"",
    re.IGNORECASE,
)
"""A number, a date, a name: without one, an event in a person's life is small talk."""
POINTS_BACK = re.compile(
    r"\b(?:bought|ordered|got|received|sold|visited|finished|attended|to|using|with|of) (?:it|them"
    r"|the same)\b|\bgood understanding\b|\b(?:this|that|these|those|them|one) "
    r"(?:for|since|in|on|at|out"
    r"|up|last|as|to)\b|\b(?:previous|other|same|new|old) one\b|\bof (?:his|hers|theirs|it|them)\b",
    re.IGNORECASE,
)
MACHINE = re.compile(
    r"`|\b(?:commit|branch|repo|error|test|build|deploy|server|file|script|api|bug|code|pr|"
    r"config|command"
    r"|log)s?\b|/\w+/|\w_\w|\w\(\)",
    re.IGNORECASE,
)


_LONGEST = 280
_LOOKED_AT = 6000  # characters of a prompt
# characters of a prompt; a longer one with headings or lists is a pasted document
_PASTED = 1500
_HEADINGS = 3
_LEAST_SURE, _SURER, _SUREST = 0.7, 0.1, 0.9  # confidence at the threshold, a point more, at most
_AGREED = 0.6  # a statement of the model that the user agreed to

_AMENDED = re.compile(
    r"\b(?:instead|no longer|not any "
    r"?more|anymore|amend(?:ment|ed|ing|s)?|chang(?:e|ed|ing)|supersed\w+"
    r"|replac(?:e|ed|es|ing)|switch(?:ed|ing)?|moved?"
    r"|migrat\w+|rather than|overrul\w+|revers(?:e|ed|ing)|from now on|going forward|used "
    r"to|deprecated|dropped)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"(?:it|that|this|these|those|them|they|one|ones|both|either|neither|same|such|so|there"
    r"|then|here|him|her|you|your|to be|the (?:first|second|third|last|former"
    r"|latter|same|other|one|idea|approach|option|above|plan|way|look|sound)\w*|option|all "
    r"of|some of"
    r"|what you|my own|to (?:know|hear|see|learn|try|be))\b|\W*$",
    re.IGNORECASE,
)
"""Objects whose meaning is in another sentence."""
_POINTS_INSIDE = re.compile(
    (
        r"\b(?:that|this|these|those) "
        r"(?:one|ones|way|option|time|flight|approach|idea|plan|case|point|stuff|thing|\w+ \w+)\b"
    ),
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"(?:an?|the)\b", re.IGNORECASE)
"""Choosing "the first flight" is a decision for once; choosing Postgres lasts."""
_SURE = 0.85  # forms from there on last even if they mention today
_SETTLEMENT = r"(?:rule|policy|decision|recap|convention|contract|semantics|behaviou?r|spec\w*)"
_SETTLES = re.compile(
    r"(?:(?:ok(?:ay)?|right|great|perfect|understood|agreed|got "
    r"it|clear|done)[\s,.!:;\u2013\u2014-]+)?"
    rf"(?:(?P<settled>settled|decided|(?:final|agreed) (?:[\w-]+ "
    rf")?{_SETTLEMENT}|final(?=:)|decision|recap"
    rf"|(?:amended|amending|new|updated|revised) (?:the )?(?:[\w-]+ "
    rf")?{_SETTLEMENT})\b[^:.!?]{{0,90}}"
    r"|(?:understood|got it)):\s*(?P<what>\S.{11,})",
    re.IGNORECASE,
)
"""What a model calls settled, or repeats."""
_OWN_DOING = re.compile(
    r"\bI(?:['\u2019](?:ll|m|ve|d)| "
    r"(?:will|am|have|would|can|did|also|now))\b|\b(?:passed|verified|pushed)\b"
)
"""Words with which a model reports on its own work."""
_DECIDING = frozenset({"decided", "amended"})
"""Forms of decisions; the others state preferences, and how things and people are."""
_AGREES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|right|correct|exactly|agreed|ok(?:ay)?|sure|perfect|great|sounds good"
    r"|looks good|lgtm|good|do it|go ahead|go for it|that's (?:it|right|the rule|correct|what)"
    r"|fine|works for me|let's do (?:it|that)|please do|approved|confirmed)\b",
    re.IGNORECASE,
)
_IT_WORKED = re.compile(
    r"\b(?:thanks?|thx|(?:it|that|this|all|everything|now)(?: \w+){0,2} "
    r"(?:works?|worked|passes|passed)"
    r"|(?:works?|working|worked|fixed|solved)(?! for me))\b",
    re.IGNORECASE,
)
"""Words that confirm an outcome, not a text."""
_REFUSES = re.compile(
    r"\b(?:but|no|not|don't|wait|actually|instead|however|except|wrong)\b", re.IGNORECASE
)
_AGREED_HEAD = 60  # characters in which an agreement may be taken back
_TAKES_BACK = re.compile(
    r"\W*(?:no|nope|not|wrong|wait|actually|but|hold on|hmm|that'?s not|don'?t)\b", re.IGNORECASE
)
_REPEATED = 0.55  # confidence in what a model repeated without objection
# telling words and numbers shared with the user's last words; with fewer it is the model's own
_LEAST_SETTLED, _LEAST_REPEATED = 1, 3
_NUMBER = re.compile(r"\b\d+\b")


@dataclass(frozen=True, slots=True)
class FactMatch:
    """A fact found in a text."""

    text: str
    subject: str
    confidence: float
    trust: Trust
    form: str
    amends: bool
    """It says that something else held before."""


def facts_in(
    words: str, place: int, others: OutsideWords, trust: Trust = Trust.PERSON
) -> Iterator[FactMatch]:
    """The facts in a prompt at this place of the session; `trust`: the trust in its author."""
    said = clauses(_own(words))
    for number, sentence in enumerate(said):
        found = _find_form(sentence) or _find_statement(sentence, said[number - 1 : number])
        if (
            found is None
            or is_dangerous(sentence)
            or is_suspect(sentence)
            or others.says(sentence, place, LEAST_SENTENCE)
        ):
            continue
        text = found.text
        if found.form == "heading" and number + 1 < len(said):
            text = f"{sentence} {said[number + 1]}"
        yield FactMatch(
            text=_fact_text(text),
            subject=found.subject,
            confidence=found.confidence,
            trust=trust,
            form="amended" if found.form == "heading" else found.form,
            amends=_AMENDED.search(sentence) is not None,
        )


def agreed_in(
    reply: str, before: str, after: str, place: int, others: OutsideWords
) -> Iterator[FactMatch]:
    """Decisions worded by a model that the user agreed to before or after, or had just stated."""
    is_agreed = _agrees(after) or _agrees(before)
    if not is_agreed and (_TAKES_BACK.match(after) or before.rstrip().endswith("?")):
        return
    for paragraph in without_fences(reply).split("\n"):
        line = " ".join(paragraph.replace("**", "").split())
        found = _find_settlement(line)
        if found is None or len(line) > 4 * _LONGEST or is_suspect(line) or is_dangerous(line):
            continue
        what = found.group("what")
        if others.says(what[:120], place, LEAST_SENTENCE) or not (
            is_agreed or _repeats(found, before)
        ):
            continue
        text = line[found.start() :]
        yield FactMatch(
            clip_prose(text, 2 * _LONGEST),
            subject_of(what),
            _AGREED if is_agreed else _REPEATED,
            Trust.AGENT,
            "agreed",
            _AMENDED.search(text) is not None,
        )


def is_decision(text: str) -> bool:
    """True if a fact is a decision rather than a description. Judged by its words, for any
    author."""
    if _SETTLES.match(text) is not None or any(
        form.pattern.match(text) is not None for form in FORMS if form.name in _DECIDING
    ):
        return True
    stated = judge_statement(text)
    return stated is not None and stated.is_rule


def _find_settlement(line: str) -> re.Match[str] | None:
    """The start of what a line, or a sentence in it, calls settled."""
    starts = (0, *(found.end() for found in SENTENCE_END.finditer(line)))
    return next((found for start in starts if (found := _SETTLES.match(line, start))), None)


def _repeats(found: re.Match[str], prompt: str) -> bool:
    """True if it shares words with the user's last prompt. For a settlement one word is enough: it
    sums up more."""
    mine, theirs = (
        {*topic_words(text), *_NUMBER.findall(text)} for text in (found.group("what"), prompt)
    )
    least = _LEAST_SETTLED if found.group("settled") else _LEAST_REPEATED
    return len(mine & theirs) >= least and _OWN_DOING.search(found.group("what")) is None


@dataclass(frozen=True, slots=True)
class _Found:
    form: str
    text: str
    subject: str
    confidence: float


def _find_form(sentence: str) -> _Found | None:
    """A sentence in one of the explicit forms."""
    if not is_stated(sentence):
        return None
    for form in FORMS:
        if (found := form.pattern.match(sentence)) is None:
            continue
        groups = found.groupdict()
        what = groups["what"]
        aimed = groups.get("object") or (what if form.name == "remember" else "")
        if _is_passing(form, sentence, what, aimed) or next(topic_words(what), None) is None:
            return None
        heads = form.name == "amended" and form.confidence > 0.7 and len(sentence.split()) < 12
        # "remember that ...": only the rest is kept
        rest = form.name == "remember" and not what.lower().startswith("to ")
        return _Found(
            "heading" if heads else form.name,
            what if rest else sentence,
            # what happened is not replaced by what happens next
            "" if form.name == "lived" else subject_of(what),
            form.confidence,
        )
    return None


def _find_statement(sentence: str, before: Sequence[str]) -> _Found | None:
    """A sentence that holds by the grammar of statements."""
    stated = judge_statement(sentence, *before)
    if stated is None or next(topic_words(stated.text), None) is None:
        return None
    bare = re.sub(rf"\A{LEAD}", "", stated.text, flags=re.IGNORECASE)
    return _Found(
        "rule" if stated.is_rule else "is",
        stated.text,
        subject_of(bare),
        min(_SUREST, _LEAST_SURE + _SURER * (stated.score - THRESHOLD)),
    )


def _is_passing(form: FactForm, sentence: str, what: str, aimed: str) -> bool:
    """True if it refers to another sentence, holds for the moment only, or is small talk."""
    if aimed and (
        _POINTS.match(aimed)
        or _POINTS_INSIDE.search(aimed)
        or (form.name == "decided" and _ARTICLE.match(aimed))
    ):
        return True
    if form.name == "lived":
        return (
            not SPECIFIC.search(what[2:])
            or POINTS_BACK.search(sentence) is not None
            or MACHINE.search(sentence) is not None
        )
    return form.confidence < _SURE and MOMENT.search(sentence) is not None


def _own(words: str) -> str:
    """The text that was not pasted: of a document, only what precedes it."""
    text = "\n".join(
        line
        for line in without_fences(words[:_LOOKED_AT]).splitlines()
        if not line.lstrip().startswith((">", "|", "#", "$", "➜"))
    )
    if len(words) <= _PASTED:
        return text
    marks = len(re.findall(r"^\s*(?:#{1,4} |[-*] |\d+\. )", words[:_LOOKED_AT], re.MULTILINE))
    return text.split("\n\n", 1)[0][:_PASTED] if marks >= _HEADINGS else text[:_PASTED]


def _fact_text(sentence: str) -> str:
    bare = re.sub(rf"^{LEAD}", "", sentence, count=1, flags=re.IGNORECASE).strip() or sentence
    return clip_prose(bare[:1].upper() + bare[1:], _LONGEST)


def _agrees(text: str) -> bool:
    found = _AGREES.match(text)
    return (
        found is not None
        and not _REFUSES.search(text[found.end() : _AGREED_HEAD])
        and not _IT_WORKED.search(text[:_AGREED_HEAD])
    )
