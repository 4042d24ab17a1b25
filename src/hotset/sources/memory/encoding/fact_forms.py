"""The forms of sentences that are meant to last. Data: the surest first, each with how seldom it is meant otherwise."""

from __future__ import annotations

import re
from dataclasses import dataclass

LEAD = (
    r"(?:(?:ok(?:ay)?|alright|also|and|but|so|now|actually|no|yes|yeah|right|exactly|agreed|please|btw"
    r"|by the way|oh|fyi|well|great|thanks|i think|i guess"
    r"|important|update|correction|speaking of which|unrelated(?: heads-up)?|just so you know"
    r"|for the record|one more thing|again)[,:;.!\u2013—-]*\s+)*"
)
_DEFINED = (
    r"(?:port|url|endpoint|base url|database|db|repo(?:sitory)?|branch|default\w*|convention|deadline"
    r"|owner|policy|limit|budget|rule|format|time ?zone|name|version"
    r"|source of truth|entry point|package manager|test (?:command|runner|suite)|build (?:command|tool)"
    r"|staging \w+|prod\w* \w+|tech stack|stack|framework|language"
    r"|schema|threshold|timeout|quota|prefix|suffix|style ?guide|license|goal|decision|plan of record"
    r"|canonical \w+|order of precedence|standard|minimum|maximum|cap)"
)
_STATE = (
    r"(?:a (?:bit|little|lot|mess|problem|bug|good|great|bad|nice|better)|an? (?:issue|error)|failing"
    r"|broken|wrong|missing|not|too|very|really|so|still|now|ready|done|ok|okay"
    r"|good|great|fine|nice|bad|weird|odd|slow|unclear|confusing|that|to|being|getting|going|hard"
    r"|difficult|just|pretty|quite|also|only|what|where|how|why|there|here|it"
    r"|because|about|more|less|much|actually|definitely|all|up|down|interesting|important|similar|different|as)\b"
)


@dataclass(frozen=True, slots=True)
class Form:
    """How a sentence says that it is meant to last."""

    name: str
    pattern: re.Pattern[str]
    confidence: float
    """A rank among the forms, in the order of how seldom they are meant otherwise in the sessions that were read for it."""


def _form(name: str, confidence: float, pattern: str) -> Form:
    return Form(name, re.compile(rf"{LEAD}(?:{pattern})", re.IGNORECASE), confidence)


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
        r"(?:from now on|going forward|from here on(?: out)?|as a (?:general )?rule|in (?:the )?future"
        r"|in all future \w+),?\s+(?P<what>(?!i (?:might|may|hope|plan|would)).+)"
        r"|(?P<what2>(?!i\b|i'|hopefully)(?:.{0,160}\b(?:use|using|do|don't|never|always|we|must|should|keep"
        r"|make|put|call|write|run)\b.{0,160}))\b(?:from now on|going forward)\W*$",
    ),
    _form(
        "rule",
        0.85,
        r"(?P<what>(?:(?:we|you|agents?|everyone|everybody|nobody) (?:should |must |will |can |have to "
        r"|need to )?)?(?:always|never) "
        r"(?!been|wanted|thought|knew|know|mind|heard|seen|had|have (?:to|i)|felt|really|the less|theless"
        r"|going|liked|loved|tried|used|mind)[a-z]{2,}\b.{6,})"
        r"|(?:make sure|be sure) (?:to |that you |you )?(?P<what2>(?:always|never) .+)",
    ),
    _form(
        "rule",
        0.75,
        r"(?!(?:i|it|this|that|they|he|she|you|there|which|who|what)\b)(?P<what>(?:(?:the|a|an|our|my|any|all"
        r"|each|every) )?(?:[\w`'/.-]+ ){1,5}?"
        r"(?:(?:must|should) (?:always|never) [a-z]{3,}|(?:(?:can|may) )?(?:always|never) (?:counts?|wins?"
        r"|appl(?:y|ies)|gets?|is|be|are|means?|covers?|match(?:es)?|goes?|go|takes?|has|have|returns?|uses?"
        r"|use|comes?|overrides?|runs?|touch(?:es)?|contains?))\b.*)",
    ),
    _form(
        "stands",
        0.8,
        r"(?P<what>.{0,120}\b(?:(?:is|are|remains?) the (?:single )?source of truth|by convention"
        r"|our convention is|our policy is|(?:the|our|its|whose) (?:rule|policy"
        r"|convention) is(?: that)?\s(?!not\b|to be\b)).{3,})",
    ),
    _form(
        "decided",
        0.85,
        r"(?P<what>(?:we|i|the team|management|legal|security|product|ops|they)(?:'ve| have|'d"
        r"| had)?(?: already| all| both| finally)? (?:decided|agreed|settled|opted|standardi[sz]ed|committed)"
        r"(?: (?:to|on|that|for|against|upon)) (?!it\b|that\b|this\b).{4,})",
    ),
    _form(
        "decided",
        0.75,
        r"(?P<what>(?:let'?s|we(?:'ll| will|'re going to| are going to)) (?:go (?:ahead )?with"
        r"|standardi[sz]e on|stick (?:with|to)|switch to|settle on) (?P<object>.{3,}))",
    ),
    _form("decided", 0.7, r"(?P<what>let'?s (?:use|keep|call|name|target|support|drop|adopt) (?P<object>.{3,}))"),
    _form(
        "uses",
        0.75,
        r"(?P<what>(?:we|our (?:team|app|project|company|backend|frontend|stack|ci|service)|this (?:repo"
        r"|project|codebase)) (?:now |currently |only |mostly |primarily |already )*"
        r"(?:uses?|runs? (?:on|in|with)|deploys? (?:to|with|on|via)|targets?|relies? on|rely on|hosts? (?:on"
        r"|in)|standardi[sz]ed on|switched (?:from .{2,40} )?to|moved (?:from .{2,40} )?to"
        r"|migrated (?:from .{2,40} )?to|(?:are|'re) (?:using|on|moving to|migrating to)|is (?:built (?:with"
        r"|on)|written in)) (?P<object>(?!to\b|the same\b).{3,}))",
    ),
    _form(
        "uses",
        0.8,
        r"(?P<what>no longer need(?:ed)?:? (?P<thing>.{3,})|(?:i no longer|(?:we|our [\w ]{2,30}|this (?:repo"
        r"|project)) (?:no longer|don't|do not|never|stopped|have (?:dropped|deprecated|removed)"
        r"|(?:just )?(?:dropped|deprecated))) "
        r"(?:use|using|need|support|supporting|allow|ship|maintain|accept|rely on)\b ?(?P<object>.{3,}))",
    ),
    _form("amended", 0.8, r"(?P<what>amendment(?: to| after| on)?\b.{8,})"),
    _form(
        "amended",
        0.65,
        r"(?P<what>(?:we|they)(?:'ve| have)? (?:just |recently )?(?:renamed|replaced|changed"
        r"|moved) (?P<object>(?!our mind|my mind|it |this |that ).{3,} (?:to|with|from|into) .{2,}))",
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
        rf"|on) [\w'/`.-]+(?: [\w'/`.-]+){{0,3}})? (?:is|are|lives? (?:in|at)|should (?:always )?be|must be"
        rf"|will be) (?!{_STATE})(?P<object>.{{2,}}))",
    ),
    _form(
        "person",
        0.8,
        r"(?P<what>my (?:(?:wife|husband|partner|son|daughter|brother|sister|mother|mom|father|dad|dog|cat"
        r"|boss|manager|cousin|niece|nephew|roommate|fianc[eé]e?|girlfriend|boyfriend|pet)(?:'s name)?"
        r"|(?:full |first |last |middle )?name|birthday|anniversary|home ?town|job title|pronouns|(?:email"
        r"|phone|mailing|home) (?:address|number)|user ?name|user id|time ?zone|budget|blood type"
        r"|shoe size) (?:is|are) (?!" + _STATE + r").{2,})",
    ),
    _form(
        "person",
        0.75,
        r"(?P<what>i(?:'m| am) (?:allergic to|intolerant|vegetarian|vegan|lactose|gluten|diabetic"
        r"|colou?r-?blind|based in|located in|living in|originally from|from|married|left-handed)\b.{2,}"
        r"|i (?:live|reside|work|study|teach|grew up|was born|volunteer) (?:in|at|as|for|near|on) .{2,}"
        r"|i have (?:a|an|two|three|four|five|\d+) (?:\w+ ){0,2}(?:kids?|children|dogs?|cats?|sons?|daughters?"
        r"|sisters?|brothers?|siblings?|allerg(?:y|ies)|degree|mortgage)\b.*)",
    ),
    _form(
        "habit",
        0.6,
        r"(?P<what>i (?:always|usually|typically|never) (?!been|wanted|want|thought|think|knew|know|had|heard"
        r"|seen|realized|realised|feel|felt|tried|got|found|find|wonder|really|get|mind|understood|imagined"
        r"|just|end|seem|remember|forget|struggle|have trouble)"
        r"[a-z]+ .{6,})",
    ),
    _form(
        "lived",
        0.6,
        r"(?P<what>i(?:'ve| have)? (?:(?:just|recently|finally|also|actually|already|even) )*(?:got (?:my|a|an"
        r"|the|back)|bought|purchased|adopted|moved (?:to|into|in|from)|graduated|joined"
        r"|(?:started|began) (?:\w+ing|my|a|an|at|as)|upgraded (?:my|to)|subscribed|enrolled|got (?:married"
        r"|engaged|promoted|hired)|finished (?:reading|watching|my|a|the)|signed up|attended|visited"
        r"|ordered|received (?:my|a|an)|inherited|completed (?:my|a|an|the)|ran (?:a|my)|won|volunteered"
        r"|redeemed|sold|hosted|participated|switched (?:to|from)) .{8,}"
        r"|i(?:'ve| have) been (?!wondering|thinking|meaning|noticing|looking|considering|planning|hoping"
        r"|trying|wanting|struggling|feeling|told|having)(?:\w+ing) .{4,}\b(?:for|since)\b .{3,}"
        r"|my (?:[\w'-]+ ){1,3}(?:got|turned|lives?|works?|prefers?) .{6,})",
    ),
)
SPECIFIC = re.compile(
    r"\d|\b(?:january|february|march|april|june|july|august|september|october|november|december|(?:mon"
    r"|tues|wednes|thurs|fri|satur|sun)day|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|twice|month|months|year|years|week|weeks)\b|(?<=[a-z,] )(?-i:(?!I')[A-Z][\w'-]{2,})|\"[^\"]{3,}\"",
    re.IGNORECASE,
)
"""A number, a date, a name: without one, what somebody lived is small talk."""
POINTS_BACK = re.compile(
    r"\b(?:bought|ordered|got|received|sold|visited|finished|attended|to|using|with|of) (?:it|them"
    r"|the same)\b|\bgood understanding\b|\b(?:this|that|these|those|them|one) (?:for|since|in|on|at|out"
    r"|up|last|as|to)\b|\b(?:previous|other|same|new|old) one\b|\bof (?:his|hers|theirs|it|them)\b",
    re.IGNORECASE,
)
MACHINE = re.compile(
    r"`|\b(?:commit|branch|repo|error|test|build|deploy|server|file|script|api|bug|code|pr|config|command"
    r"|log)s?\b|/\w+/|\w_\w|\w\(\)",
    re.IGNORECASE,
)
