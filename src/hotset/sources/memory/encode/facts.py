"""Facts that a person stated or agreed to: the forms of such sentences, and their subjects, by
which facts replace each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.nouns.memory import Trust
from hotset.sources.memory.encode.speakers import (
    LEAST_SENTENCE,
    OutsideWords,
    is_dangerous,
    is_suspect,
)
from hotset.text.clip import clip_prose
from hotset.text.sentences import SENTENCE_END, sentences, without_fences
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
        forward general
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


LEAD = (
    r"(?:(?:ok(?:ay)?|alright|also|and|but|so|now|actually|no|yes|yeah|right|exactly|agreed|"
    r"please|btw"
    r"|by the way|oh|fyi|well|great|thanks|i think|i guess"
    r"|important|update|correction|speaking of which|unrelated(?: heads-up)?|just so you know"
    r"|for the record|one more thing|again)[,:;.!\u2013—-]*\s+)*"
)
_DEFINED = (
    r"(?:port|url|endpoint|base "
    r"url|database|db|repo(?:sitory)?|branch|default\w*|convention|deadline"
    r"|owner|policy|limit|budget|rule|format|time ?zone|name|version"
    r"|source of truth|entry point|package manager|test (?:command|runner|suite)|build "
    r"(?:command|tool)"
    r"|staging \w+|prod\w* \w+|tech stack|stack|framework|language"
    r"|schema|threshold|timeout|quota|prefix|suffix|style ?guide|license|goal|decision|plan "
    r"of record"
    r"|canonical \w+|order of precedence|standard|minimum|maximum|cap)"
)
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
        "rule",
        0.9,
        r"(?:from now on|going forward|from here on(?: out)?|as a (?:general )?rule|in (?:the "
        r")?future"
        r"|in all future \w+),?\s+(?P<what>(?!i (?:might|may|hope|plan|would)).+)"
        r"|(?P<what2>(?!i\b|i'|hopefully)(?:.{0,160}\b(?:use|using|do|don't|never|always|we|"
        r"must|should|keep"
        r"|make|put|call|write|run)\b.{0,160}))\b(?:from now on|going forward)\W*$",
    ),
    _form(
        "rule",
        0.85,
        r"(?P<what>(?:(?:we|you|agents?|everyone|everybody|nobody) (?:should |must |will |can "
        r"|have to "
        r"|need to )?)?(?:always|never) "
        r"(?!been|wanted|thought|knew|know|mind|heard|seen|had|have (?:to|i)|felt|really|the "
        r"less|theless"
        r"|going|liked|loved|tried|used|mind)[a-z]{2,}\b.{6,})"
        r"|(?:make sure|be sure) (?:to |that you |you )?(?P<what2>(?:always|never) .+)",
    ),
    _form(
        "rule",
        0.75,
        r"(?!(?:i|it|this|that|they|he|she|you|there|which|who|what)\b)(?P<what>(?:(?:the|a|"
        r"an|our|my|any|all"
        r"|each|every) )?(?:[\w`'/.-]+ ){1,5}?"
        r"(?:(?:must|should) (?:always|never) [a-z]{3,}|(?:(?:can|may) )?(?:always|never) "
        r"(?:counts?|wins?"
        r"|appl(?:y|ies)|gets?|is|be|are|means?|covers?|match(?:es)?|goes?|go|takes?|has|have|"
        r"returns?|uses?"
        r"|use|comes?|overrides?|runs?|touch(?:es)?|contains?))\b.*)",
    ),
    _form(
        "convention",
        0.8,
        r"(?P<what>.{0,120}\b(?:(?:is|are|remains?) the (?:single )?source of truth|by convention"
        r"|our convention is|our policy is|(?:the|our|its|whose) (?:rule|policy"
        r"|convention) is(?: that)?\s(?!not\b|to be\b)).{3,})",
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
    _form(
        "uses",
        0.75,
        r"(?P<what>(?:we|our "
        r"(?:team|app|project|company|backend|frontend|stack|ci|service)|this (?:repo"
        r"|project|codebase)) (?:now |currently |only |mostly |primarily |already )*"
        r"(?:uses?|runs? (?:on|in|with)|deploys? (?:to|with|on|via)|targets?|relies? on|rely "
        r"on|hosts? (?:on"
        r"|in)|standardi[sz]ed on|switched (?:from .{2,40} )?to|moved (?:from .{2,40} )?to"
        r"|migrated (?:from .{2,40} )?to|(?:are|'re) (?:using|on|moving to|migrating to)|is "
        r"(?:built (?:with"
        r"|on)|written in)) (?P<object>(?!to\b|the same\b).{3,}))",
    ),
    _form(
        "uses",
        0.8,
        r"(?P<what>no longer need(?:ed)?:? (?P<thing>.{3,})|(?:i no longer|(?:we|our [\w "
        r"]{2,30}|this (?:repo"
        r"|project)) (?:no longer|don't|do not|never|stopped|have (?:dropped|deprecated|removed)"
        r"|(?:just )?(?:dropped|deprecated))) "
        r"(?:use|using|need|support|supporting|allow|ship|maintain|accept|rely on)\b "
        r"?(?P<object>.{3,}))",
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
        "prefers",
        0.75,
        r"(?P<what>i (?:(?:really|strongly|generally|usually|much|always|definitely|personally"
        r"|typically) )*(?:prefer|hate|dislike|can'?t stand) (?P<object>.{4,}))",
    ),
    _form(
        "is",
        0.75,
        rf"(?P<what>(?:the|our|my) (?:[\w'/`.-]+ ){{0,3}}?{_DEFINED}(?: (?:for|of|in"
        rf"|on) [\w'/`.-]+(?: [\w'/`.-]+){{0,3}})? (?:is|are|lives? (?:in|at)|should "
        rf"(?:always )?be|must be"
        rf"|will be) (?!{_STATE})(?P<object>.{{2,}}))",
    ),
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


_FEWEST_WORDS, _MOST_WORDS = 3, 48
_LONGEST = 280
_LOOKED_AT = 6000  # characters of a prompt
# characters of a prompt; a longer one with headings or lists is a pasted document
_PASTED = 1500
_HEADINGS = 3
_AGREED = 0.6  # a statement of the model that the user agreed to

_AMENDED = re.compile(
    r"\b(?:instead|no longer|not any "
    r"?more|anymore|amend(?:ment|ed|ing|s)?|chang(?:e|ed|ing)|supersed\w+"
    r"|replac(?:e|ed|es|ing)|switch(?:ed|ing)?|moved?"
    r"|migrat\w+|rather than|overrul\w+|revers(?:e|ed|ing)|from now on|going forward|used "
    r"to|deprecated|dropped)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    rf"{LEAD}(?:can|could|would|will|do|does|did|is|are|was|were|what|how|why|when|where|who|"
    rf"which|should"
    rf"|shall|may|might|any|have you|has|if|do you"
    r"|i was wondering|i'm wondering|i wonder|i'm not sure|not sure|tell "
    r"me|explain|maybe|perhaps|imagine|suppose|assum\w+)\b",
    re.IGNORECASE,
)
_ASKS_INSIDE = re.compile(
    (
        r"\b(?:can|could|would|will|do|are|is|have|should) (?:you|we|i|there|it)\b.*$|\bdo "
        r"you\b|\bcould you\b|\?"
    ),
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
_LOG = re.compile(
    r"[{}<>|=\\]{2,}|=>|::|\bat \S+:\d+|^\s*(?:\d{2}:\d{2}|\[|\$ |➜|error:|warning:|\w+Error\b)"
    r"|\S+\.\w{1,4}:\d+|https?://\S{60,}",
    re.IGNORECASE,
)
_PAST = re.compile(
    (
        r"\b(?:yesterday|this morning|last night|earlier today|just now|right "
        r"now|today|tonight|for now|at the moment|this time)\b"
    ),
    re.IGNORECASE,
)

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
_DECIDING = frozenset({"rule", "convention", "decided", "uses", "amended"})
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
    statements = sentences(_own(words))
    for number, sentence in enumerate(statements):
        match = _fact(sentence)
        if (
            match is None
            or is_dangerous(sentence)
            or is_suspect(sentence)
            or others.says(sentence, place, LEAST_SENTENCE)
        ):
            continue
        form, what = match
        # "remember that ...": only the rest is kept
        text = what if form.name == "remember" and not what.lower().startswith("to ") else sentence
        if (
            form.name == "amended"
            and form.confidence > 0.7
            and number + 1 < len(statements)
            and len(sentence.split()) < 12
        ):  # a heading
            text = f"{sentence} {statements[number + 1]}"
        yield FactMatch(
            text=_fact_text(text),
            subject=""
            if form.name == "lived"
            else subject_of(what),  # what happened is not replaced by what happens next
            confidence=form.confidence,
            trust=trust,
            form=form.name,
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
    return _SETTLES.match(text) is not None or any(
        form.pattern.match(text) is not None for form in FORMS if form.name in _DECIDING
    )


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


def _fact(sentence: str) -> tuple[FactForm, str] | None:
    """The form of a lasting sentence, and its content; None if it has none."""
    if not _is_stated(sentence):
        return None
    for form in FORMS:
        if found := form.pattern.match(sentence):
            groups = found.groupdict()
            what = groups.get("what") or groups.get("what2") or ""
            aimed = (
                groups.get("object")
                or groups.get("thing")
                or (what if form.name == "remember" else "")
            )
            return (
                None
                if _is_passing(form, sentence, what, aimed) or next(topic_words(what), None) is None
                else (form, what)
            )
    return None


def _is_stated(sentence: str) -> bool:
    """True for a statement: no question, log or list."""
    return (
        _FEWEST_WORDS <= len(sentence.split()) <= _MOST_WORDS
        and len(sentence) <= 2 * _LONGEST
        and not sentence.rstrip("\"')").endswith(("?", ":"))
        and not _LOG.search(sentence)
        and not _QUESTION.match(sentence)
        and not _ASKS_INSIDE.search(sentence)
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
    return form.confidence < _SURE and _PAST.search(sentence) is not None


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
