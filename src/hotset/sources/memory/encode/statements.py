"""The grammar of standing statements: which sentences of a person hold beyond the task at hand.

A sentence speaks of someone or something (`who`), says with some force that it holds (`force`), and
may give a value or a scope. What speaks for one occasion counts against it. The points are added;
a sentence with fewer than `THRESHOLD` is not kept. Questions, hypotheses, quotations, code, what
holds for the moment only, and sarcasm are never kept. Precision goes before recall.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hotset.text.sentences import sentences

THRESHOLD = 1.5
_FEWEST_WORDS, _MOST_WORDS = 3, 60
_LONGEST = 560  # characters

_OPENERS = (
    r"ok(?:ay)?|alright|also|and|but|so|now|actually|no|yes|yeah|right|exactly|agreed|please|"
    r"btw|by "
    r"the way|oh|fyi|well|great|thanks|thank you|i think|i guess|i thou?gh?t|i believe|basically|"
    r"hm+|a+h+|u+m+|uh|omfg|dude|jesus|iirc|iiuc|afaik|imo|tbh|anyway|again|then|just so you know|"
    r"for the record|for example|that means"
)
_LABELS = (
    r"remember|one more thing|important|note|rule|update|correction|reminder|convention|decision|"
    r"speaking of which|unrelated(?: heads-up)?|p\.?s\.?"
)
LEAD = rf"(?:(?:{_OPENERS})(?:[,:;.!\u2013—-]+\s*|\s+)|(?:{_LABELS})(?:[,:;.!\u2013—-]+\s*))*"
"""Words before a statement that say nothing of it."""

_TEAM = (
    r"\b(?:we|our|us|everyone|everybody|nobody|no one|the (?:\w+ )?team|"
    r"th(?:is|e) (?:repo(?:sitory)?|project|codebase|company|org(?:ani[sz]ation)?))\b"
)
_PRONOUN = r"(?:it|its|it's|this|that|that's|thats|they|these|those|he|she|them|there|something)"
_OWN = r"(?:repo(?:sitory)?|project|codebase|app|team|company|org|package|quarter|year|service)\b"
_PRACTICE = (
    r"(?:use|run|deploy|store|keep|write|ship|cut|host|test|name|call|review|merge|support|accept"
    r"|build|release|publish|log|track|measure|format|lint|pin|follow|target|rely|work|speak|meet"
    r"|plan|quote|charge|sell|send|sign|allow|require|expect|treat|cache|round|count|index|tag|"
    r"version|document|mock|squash|rebase|push|commit|import|export|serve|need|adopt|align|own|"
    r"standardi[sz]e|have dropped|are (?:on|using|based))"
)
_TASK = (
    r"(?:fix|add|update|look|highlight|spawn|implement|check|improve|adjust|port|finish|continue|"
    r"investigate|debug|make|create|handle|discuss|see|try|get|go|come|think|be|figure|wait|start|"
    r"mention|refactor|clean|remove|delete|tackle|redo|revert|retry|solve|have a|prepare|talk)"
)
_STATE = (
    r"(?:going (?!to )|failing|broken|wrong|missing|ready|done(?! by| in| on| with)|ok(?:ay)?|good|"
    r"great|fine|nice|bad|weird|odd|"
    r"slow|fast|unclear|confusing|blank|empty|red|green|running|working|stuck|down|up|back|gone|"
    r"finished|merged|true|false|too|very|really|still|not (?:working|used|there|shown)|being|"
    r"getting|about|similar|a (?:bit|little|lot|mess|problem|bug)|an? (?:issue|error)|"
    r"why|how|what|where|because|interesting|hard|difficult|unlikely|likely|looking|worse|better)"
)
_ACTS = (
    r"(?:live|go|run|belong|stay|start|end|close|open|count|get|own|sign|target|accept|require|"
    r"work|see|hand|cover|mean|win|override|expect|contain|change|speak|listen|happen)"
)
_DOES = rf"(?:{_ACTS}s|(?<=s ){_ACTS}|(?<=people ){_ACTS})"
"""A verb of a thing: "the server runs", "tests run", but not "the work on tests"."""
_DAY = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?|january|february|march|"
    r"april|may \d|june|july|august|september|october|november|december|nightly|daily|weekly|"
    r"monthly|noon|midnight"
)
_NUMBER = (
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty|"
    r"hundred|once)\b"
)
_VALUE = re.compile(
    rf"(?i:\b(?:{_DAY})\b)|(?i:{_NUMBER})|`[^`]+`|[\"\u201c][^\"\u201d]+[\"\u201d]|https?://\S"
    r"|@?[\w-]+/[\w./<>-]+|\b[\w-]+\.[a-z]{2,4}\b|\w_\w|\w<\w|--\w|(?<=[a-z,] )[A-Z][\w+#-]+"
    r"|(?i:source of truth|called \w|named \w)"
)
"""A day, a number, a path, a name: what a value is made of."""


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that speak for or against a statement that lasts, and their points."""

    name: str
    points: float
    pattern: re.Pattern[str]


def _cue(name: str, points: float, pattern: str) -> Cue:
    return Cue(name, points, re.compile(pattern, re.IGNORECASE))


WHO = (
    _cue("team", 1.0, _TEAM),
    _cue("person", 1.0, r"\b(?:owns|maintains|leads|signs? off|approves|(?:is|"
                        r"are) (?:responsible|in "
         r"charge)|is (?:the|our) (?:[\w-]+ )*(?:lead|owner|contact|manager|maintainer|"
         r"captain))\b"),
    _cue("thing", 0.5, rf"(?!(?:{_PRONOUN}|you|i|i'm|i've|if|when)\b)(?:[\w'`@./<>-]+[ ,]+){{1,9}}?"
         rf"(?:is|are|am|must|should|shall|needs?|can|may|will|has to|have to|has nothing|goes|"
         rf"returns?|uses?|applies|apply|always|never|no longer|only|"
         rf"(?:moved|switched|migrated|changed) (?:over )?to|{_DOES})\b"),
)  # fmt: skip
"""Of whom or what it speaks; the highest counts."""

FORCE = (
    _cue("always", 1.0, r"\A(?:the|our) default\b|\b(?:always|never|ever|without exception|"
         r"by default|by convention|"
         r"as a rule|our (?:policy|convention|rule) is|usually|in general|mandatory|forbidden|"
         r"off limits|required|(?:not )?allowed)\b"),
    _cue("all", 1.0, r"(?<!after )(?<!before )\b(?:all|any|each|every|everything|anything|"
                     r"nobody|no one|only|at most|"
         r"at least)\b(?! (?:of|the|that|this|your|good|right|set|done|i|you|we|else|works)\b)"),
    _cue("must", 1.0, r"\b(?:must|should|shall|ought|has to|have to|needs?(?: to)?|may (?:not|"
                      r"only)|"
         r"can'?t|cannot|mustn'?t|shouldn'?t|better (?:not )?to|can be)\b"),
    _cue("prohibits", 1.5, r"\A(?:don'?t|do not|avoid|never|always|prefer|no (?!(?:problem|idea|"
         r"worries|way|luck|changes?|one|thanks|matter|wonder|longer|news|questions?)\b)[a-z]+)\b"
         r"(?!,)"),
    _cue("opens", 0.5, r"\A(?:avoid|never|always|prefer|no longer|no (?!longer)[a-z]+|whenever|"
                       r"from "
         r"now on|going forward|before (?:each|every|any)|in (?:this|our) \w+)\b"),
    _cue("lies", 0.5, r"\A(?:[\w'`@./<>-]+[ ,]+){1,6}?(?:lives?|belongs?|goes|go|sits?) (?:in|"
                      r"into|at|"
         r"on|next|under|to|below|beside|with)\b"),
    _cue("practice", 1.0, rf"\b(?:we|everyone|nobody|everybody|the team)(?:'ve| have)? (?:\w+ly |"
         rf"now |only |always |never |already |just |all |also |still )*(?:don'?t |do not |no "
         rf"longer )?{_PRACTICE}\b|\b(?:our|the) team \w+s\b|\bwe're (?:now )?(?:on|using)\b"),
    _cue("has", 1.0, r"\bwe have (?:an? |our |one )?[\w -]+ \(?(?:at |in |on |under )?(?:https?:|"
         r"[\w.-]*/\w)|\bhas nothing to do with\b|\bthe (?:pattern|rule|convention|policy|idea) "
         r"(?:is|was) to\b"),
    _cue("case", 1.0, r"\A(?:if|when(?:ever)?) (?:you|there|we|anyone|a|the)\b.*?\b(?:refer to|ask|"
         r"use|check|consult|call|read|run|look at|tell)\b"),
    _cue("want", 1.0, r"\bwe (?:\w+ )?(?:want|prefer|like)\b(?! to\b)"),
    _cue("plan", 1.0, r"\bwe(?:'ll| will|'re going to| are going to) (?:only |always )?(?:adopt|"
                      r"use|"
         r"switch|move|drop|replace|support|keep|get rid|stick|standardi[sz]e)\b"),
    _cue("prefer", 1.5, r"\bi(?:'d| would)? (?:\w+ ){0,2}?(?:prefer|want|like|hate|dislike|can'?t "
         r"stand|rather (?:have|use|see))\b(?! (?:to|you|this|that|it|the)\b)"),
    _cue("contrast", 1.0, r"(?:,| but| and) (?:not|never|no) (?:just )?[\w\"`]|\binstead of\b|"
                          r"\brather"
         r" than\b|\bnot [\w ]{2,40} but\b|\bover \w+$|\b(?:but )?instead [\"\w]"),
    _cue("change", 1.0, r"\bno longer\b|\bno need for\b|\b(?:don'?t|do not)(?: think we)? need\b|"
         r"\b(?:we|are|is|was|were|have|has|'ve|just) (?:\w+ )?(?:deprecat|retir|archiv|sunset|"
         r"dropp|replac|renam|switch|migrat|mov)(?:ed|ing)\b|\b(?:let'?s|lets) rename\b|"
         r"\A(?:[\w'-]+ ){1,4}?(?:moved|switched|migrated|changed) (?:over )?to\b"),
    _cue("habit", 0.5, r"\A(?!the |these |those |my |this )(?:[\w-]+ ){0,3}[\w-]+s are "
         r"(?:no longer |never |always |only )?[\w-]+(?:ed|en|t) (?:by|in|on|with|after|before|"
         r"from|to|at|as|per)\b"),
    _cue("takes", 1.0, r"\Ause (?!the |this |that |an? |it |some )[\w./`-]+(?: [\w./`-]+){0,2} for "
         r"(?!the |this |that |it |now)\w|\Ause (?!the |this |that |an? |it |some )[\w./`-]+ "
         r"instead of (?!the |this |that |an? |it )\w"),
    _cue("is so", 0.5, rf"\A(?:[\w'`@./<>-]+[ ,]+){{1,8}}?(?:is|are|goes|{_DOES})\b"),
)  # fmt: skip
"""That it holds: each counts once."""

SCOPE = _cue(
    "scope", 1.0,
    r"\A(?:in (?:the )?future|if (?:you (?:need|want|have)|there(?:'s| is| are) any|any\w*))\b|"
    r"\b(?:from now on|going forward|from here on|(?:in|on|for|across) (?:this|"
    r"our|the whole|every|all|each) (?:repo\w*|project|codebase|team|file|module)\w*|whenever|"
    r"every time|everywhere|(?:before|after) (?:you|each|every|any)|when (?:you|there|we)\b|by "
    r"default|in general)\b",
)  # fmt: skip

AGAINST = (
    _cue("task", -2.0, rf"(?<!if )(?<!when )\b(?:we|you|i)(?:'ll)? (?:\w+ly |also |now |still |"
         rf"just |then |can )*(?:(?:need|have|want) to|should|must|could|can)"
         rf"(?: also| now| just)? {_TASK}\b"),
    _cue("watches", -2.0, r"(?<!think )\bi(?:'m| am|'ve| have| can| could| see| saw| feel|"
         r" know| get| got| need| was)\b|\byou(?:'re| are)\b(?! (?:in|on|working))"),
    _cue("lacks", -2.0, r"\bwe (?:also |now |still |just )*need (?:an?|some|more|another|"
         r"additional|new)\b|\bwe should (?:now|also|then)\b|\bwe(?:'re| are) (?:still|now|"
         r"just)\b|\A(?!every|each|all|any)(?:[\w'-]+ ){1,4}?needs? (?:some|more|another|"
         r"additional|new|explicit|better|further)\b"),
    _cue("state", -2.0, rf"\b(?:is|are|looks?|seems?|feels?) (?:now |just |also |all |already )?"
         rf"{_STATE}\b|\b(?:is|are) (?:\w+ ){{1,3}}(?:failing|broken|missing|stuck)\b|"
         r"\bf\w+ed(?: up| again)\b"),
    _cue("one change", -2.0, r"\b(?:this|that) (?:pr|pull request|branch|commit|ticket|issue|"
         r"change|fix|task)\b|\bthe (?:pr|fix)\b(?! (?:title|name|template|description)s?\b)"),
    _cue("points", -1.0, rf"\b(?:this|that|these|those) (?!{_OWN})(?!way\b)\w+|\bthe (?:button|"
                         rf"page|"
         r"header|footer|modal|tab|sidebar|icon|first|second|third|last|next|latter|former|other|"
         r"above|current|same one|screen|banner|dropdown)\b"),
    _cue("compares", -1.0, r"\b(?:a bit|a little|bigger|smaller|brighter|darker|clearer|faster|"
         r"slower|more (?:visible|concise|clear)|less)\b"),
    _cue("narrates", -1.0, r"\b(?:was|were|had|been|happened|tried|noticed|did)\b"),
    _cue("hedges", -1.0, r"\b(?:seems?|looks? like|apparently|perhaps|maybe|might|probably|"
         r"somehow|possibly|could)\b"),
)  # fmt: skip
"""That it speaks of one occasion."""

_OF_ONE_TASK = re.compile(
    r"(?<!if )(?<!when )(?<!before )\b(?:we|you|i|let'?s)(?:'ll)? "
    r"(?:\w+ly |also |now |still |just |then |first )*(?:(?:need|have|want|ought) to|"
    r"should|must|could|can)(?: also| now| just| only| then| \w+ly)* "
    rf"(?!(?:{_PRACTICE}|not|never|always|only|rename|avoid|prefer|stick|find)\b)[a-z]+",
    re.IGNORECASE,
)
"""What somebody is about to do: "we should look into it". Rules name what is done each time."""
_EACH_TIME = re.compile(
    r"\b(?:always|never|ever|(?:every|each) time|whenever|from now on|going forward|only)\b|"
    r"\Aif there",
    re.IGNORECASE,
)
_STANDING_ORDER = re.compile(
    r"(?:use|keep|write|name|store|put|run|ask|call|install|test|format|sign|log|stick|treat|pin|"
    r"follow|refer|mention|leave|stay|answer|reply|address|speak|round|prefix|wrap|check)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:commit|push|merge|show|tell|rename|move|revert|summari[sz]e|translate|list|print|open|"
    r"close|read|generate|explain|review|deploy|build|set|change|replace|let'?s|lets|spawn|"
    rf"log|sort|align|ensure|give|find|search|send|copy|"
    rf"(?:write|use|put|run|keep) (?:an?|some|this|that|it|me)|use the|{_TASK})"
    r"\b(?! review| is| are)",
    re.IGNORECASE,
)
"""What is done once."""
_PLURAL = re.compile(r"(?<!the )(?<!these )(?<!those )\b(?!this|is|was|us|its|always)[a-z]{3,}s\b")
_QUESTION = re.compile(
    rf"{LEAD}(?:can|could|would|will|do|does|did|is|are|was|were|what|what's|how|why|when (?:do|"
    rf"did|"
    rf"will|is|are)|where|who|which|should|shall|may|might|have (?:you|we)|has|any (?:idea|reason)|"
    r"i was wondering|i'm wondering|i wonder|i'm not sure|not sure|tell me|explain)\b|.*(?:\?|\b(?:"
    r"can|could|would|will|do|are|is|have|should|wouldn't|isn't|shouldn't|doesn't) "
    r"(?:you|we|i|there|it|any|they)\b|\b(?:wouldn't|isn't|doesn't) that\b|"
    r"\bwhat (?:is|are|does|do|did|happens)\b|"
    r"\b(?:how|why|where|which) (?:is|are|do|does|did|should|can|could|would|not)\b|"
    r"[ ,](?:right|no|correct|yes)\W*\Z)",
    re.IGNORECASE | re.DOTALL,
)
_ASKS = re.compile(
    rf"{LEAD}(?:what|what's|how|why|when|where|who|which|is|are|was|were|do|does|did|has|have) ",
    re.IGNORECASE,
)
_ABOUT_THE_PAST = re.compile(
    r"\b(?:what|how|when|where|why|which|who)\b.{0,40}\b(?:did|have|had|were|was) (?:we|you|i)\b|"
    r"\b(?:did|have) (?:we|you|i) (?:ever|already)\b|\bdo you (?:remember|recall|know)\b|"
    r"\b(?:left off|last time|where were we)\b",
    re.IGNORECASE,
)
_HYPOTHESIS = re.compile(
    rf"{LEAD}(?:maybe|perhaps|imagine|suppose|supposing|assum\w+|hopefully|what if|in theory|"
    rf"ideally|whether|if so|in case|(?:it )?(?:seems?|looks?) like|i suppose|i suspect"
    r"|if (?!.*\b(?:must|should|always|never|refer|ask|use)\b)|if .*\bwould\b)\b",
    re.IGNORECASE,
)
_WOULD = re.compile(
    r"\b(?:would|could|might)\b (?!(?:only |much |rather |really )?(?:prefer|want|like|rather)\b)",
    re.IGNORECASE,
)
MOMENT = re.compile(
    r"\b(?:for now|for the moment|at the moment|just this once|this once|this time|today|tonight|"
    r"tomorrow|yesterday|right now|temporarily|for the time being|this morning|last night|"
    r"earlier|just now|until i)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:said|says|claims?|wrote|told me|according to|states? that|reads? as)\b", re.IGNORECASE
)
_SARCASM = re.compile(
    r"\byeah,? right\b|\boh,? (?:great|wonderful|sure|joy)\b|\bwow\b|"
    r"\blove(?: \w+)? (?:it )?(?:when|"
    r"how|that|a)\b|\bjust love\b|(?<!\w)/s\b|\bas if\b|\bof course .*\bagain\b|\bsure,? because\b|"
    r"\blol\b|\bhaha",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[{}|=\\]{2,}|=>|::|\bat (?!\d\d?:\d\d\b)\S+:\d+|^\s*(?:\d{2}:\d{2}:|\[|\$ |➜|"
    r"error:|warning:|\w+Error\b|for \w+ in \w+:)|\S+\.[A-Za-z]\w{0,3}:\d+|ERR!|;\s*$|"
    r"^\s*(?:const|let|var|def|return|import)\s\S+ ?[=(:]|"
    r"\w = \w|\w\(\w*\)[;:]?$",
)
_NOT_OURS = re.compile(
    r"(?:i(?:'m|'ll|'ve|'d)?|im|ive) (?!(?:\w+ ){0,3}(?:prefer|want|like|hate|dislike|can'?t|"
    r"rather|don'?t think we)\b)|(?:you|your)\b|there(?:'?s| is| are| was| seem)\b|"
    r"(?:just |only |now )*needs?\b",
    re.IGNORECASE,
)
_I_WANT = re.compile(
    r"i (?:just )?(?:want|like|need)(?: to| you| the| this| that| it)\b", re.IGNORECASE
)
_POINTS_AWAY = re.compile(
    r"\b(?:be|use|do|like|as|want) (?:that|this|these|those)(?=\W*(?:\Z|[,.;]))|"
    r"\bas (?:it )?is\W*\Z|, so (?:can|should|must|will)\b|\b(?:our|my|its|their) own\W*\Z",
    re.IGNORECASE,
)
"""What it says is somewhere else: "should be that", "avoid our own"."""
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d\n]{0,300}[\"\u201d]")
_DANGLING = re.compile(
    rf"(?P<before>(?>{LEAD})(?:(?:always|never|don'?t|do not|please|only)\s+)*(?:(?!not\b|only\b|"
    rf"when|if\b)[a-z]+ )??)"
    rf"(?P<pronoun>{_PRONOUN})\b(?! {_OWN})",
    re.IGNORECASE,
)
_USED_IT = re.compile(rf"\bwe (?:\w+ )?{_PRACTICE} (?:it|this|that|them)\b", re.IGNORECASE)
_PHRASE = r"(?:(?:the|our|my|this|all|every) )?(?:[\w'`@./-]+ ){0,3}?[\w'`@/-]+"
_ANTECEDENTS = tuple(
    re.compile(rf"{LEAD}{pattern}", re.IGNORECASE)
    for pattern in (
        (
            rf"(?P<thing>(?:the|our|my|all|every) {_PHRASE}) (?:is|are|lives?|runs?|has|have|must|"
            r"should|needs?|goes|go|sits?|comes?|uses?|handles?|does)\b"
        ),
        (
            rf"(?:we|you|i|please|let'?s)?(?: \w+ly| always| now)* ?{_PRACTICE} "
            rf"(?P<thing>{_PHRASE})(?: (?:for|in|on|to|with|from|at|as|and)\b|\W*$)"
        ),
        r"(?P<thing>[A-Z][\w'-]+(?: [A-Z]?[\w'-]+)?) (?:is|are|lives?|runs?|handles?)\b",
    )
)
_LOST_APOSTROPHE = re.compile(
    r"\b(don|doesn|didn|isn|aren|won|can|shouldn|mustn|wouldn|couldn|haven|hasn)(t)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",? (?:maybe|perhaps|(?:can|could) you|please)\b[^,]*\Z", re.IGNORECASE)
"""The end of a sentence that asks for something because of it."""
_SUBORDINATE = re.compile(rf"{LEAD}(?:since|because|as|if|when|while|although)\b", re.IGNORECASE)
_REMOVED = re.compile(
    r"(?:(?:can|could) (?:you|we) )?(?:remove|delete|drop|kill|close)\w* (?P<thing>[\w./@`-]+"
    r"(?: [\w./@`-]+){0,4}?),? (?:(?:since|as|because) )?"
    r"(?:(?:it|that|they|which)(?:'?s|'?re| is| are) )?"
    r"(?P<state>no longer \w+|deprecated|obsolete|replaced by \S+\w)",
    re.IGNORECASE,
)
_BECAUSE = re.compile(
    r"(?<=\w )(?P<what>we (?:now |currently )?(?:no longer|only|don'?t|never|always)\b.+)",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\bMs\.)"
    r"(?<=[.!?])\s+(?=\S)|;\s+|\s\.(?=\s|$)"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that holds beyond its task."""

    text: str
    """Its words; a pronoun that pointed to the sentence before is replaced by what it meant."""
    score: float
    cues: tuple[str, ...]

    @property
    def is_rule(self) -> bool:
        """True for a rule or a decision, false for how things are."""
        return any(cue not in _DESCRIBES for cue in self.cues)


_DESCRIBES = frozenset(
    {"thing", "person", "is so", "lies", "value", "prefer", "plural", "habit", "has"}
)


def clauses(text: str) -> list[str]:
    """The sentences of typed text, also where the next one begins with a small letter."""
    return [part for each in sentences(text) for cut in _SPLIT.split(each) if (part := cut.strip())]


def is_question(prompt: str) -> bool:
    """True if all that a prompt says is a question, with or without a mark."""
    return all(
        each.rstrip("\"')").endswith("?") or _ASKS.match(each) is not None
        for each in clauses(prompt)
    )


def asks_for_the_past(prompt: str) -> bool:
    """True for a question about earlier work, which only the memory of that work answers."""
    return _ABOUT_THE_PAST.search(prompt) is not None


def is_stated(clause: str) -> bool:
    """True for a statement: no question, no supposition, no code, not too long."""
    plain = _plain(clause)
    return (
        _FEWEST_WORDS <= len(clause.split()) <= _MOST_WORDS
        and len(clause) <= _LONGEST
        and not clause.rstrip("\"')").endswith(("?", ":"))
        and not _QUESTION.match(plain)
        and not _HYPOTHESIS.match(plain)
        and not _CODE.search(plain)
    )


def judge_statement(clause: str, before: str = "") -> Statement | None:
    """What a sentence says to last; None if it does not. `before`: the sentence before it."""
    clause = _reason(clause) or _without_aside(clause)
    plain = _plain(clause)
    bare = re.sub(rf"\A{LEAD}", "", plain, count=1, flags=re.IGNORECASE)
    if (
        not is_stated(clause)
        or _NOT_OURS.match(bare)
        or _I_WANT.match(bare)
        or _POINTS_AWAY.search(bare)
        or (_OF_ONE_TASK.search(bare) and not _EACH_TIME.search(bare))
        or any(gate.search(plain) for gate in (MOMENT, _REPORTED, _SARCASM, _WOULD))
    ):
        return None
    resolved = _resolve(clause, before)
    if resolved is None:
        return None
    if resolved != clause:
        return judge_statement(resolved)
    score, cues = _weigh(bare, clause)
    return Statement(clause, score, cues) if score >= THRESHOLD else None


def _reason(clause: str) -> str:
    """The statement for which an order is given: "remove X, it's no longer used"; else empty."""
    bare = re.sub(rf"\A{LEAD}", "", clause, count=1, flags=re.IGNORECASE)
    if (gone := _REMOVED.match(bare)) is not None:
        return f"{gone['thing']} is {gone['state']}"
    told = _ORDER.match(bare) and _BECAUSE.search(bare)
    return told["what"] if told else ""


def _without_aside(clause: str) -> str:
    head = _ASIDE.sub("", clause)
    whole = len(head.split()) > _FEWEST_WORDS and _SUBORDINATE.match(head) is None
    return head if whole else clause


def _plain(clause: str) -> str:
    """Without the words that it quotes."""
    plain = _QUOTED.sub('"quoted"', clause).replace("\u2019", "'")
    return _LOST_APOSTROPHE.sub(r"\1'\2", plain)


def _weigh(bare: str, clause: str) -> tuple[float, tuple[str, ...]]:
    found = [cue for cue in FORCE if cue.pattern.search(bare)]
    who = next((cue for cue in WHO if cue.pattern.match(bare) or (
        cue.name == "team" and cue.pattern.search(bare)
    ) or (cue.name == "person" and cue.pattern.search(bare))), None)  # fmt: skip
    points = sum(cue.points for cue in found) + (who.points if who else 0.0)
    names = [*([who.name] if who else []), *(cue.name for cue in found)]
    is_standing = _STANDING_ORDER.match(bare) is not None
    if (found or is_standing) and SCOPE.pattern.search(bare):
        points, names = points + SCOPE.points, [*names, SCOPE.name]
    if (found or is_standing) and _VALUE.search(clause[1:]):
        points, names = points + 1.0, [*names, "value"]
    orders = is_standing or any(cue.name in ("prohibits", "opens") for cue in found)
    if orders and who is None and _PLURAL.search(bare):
        points, names = points + 0.5, [*names, "plural"]
    if not names or names == ["value"]:
        return 0.0, ()
    points += sum(cue.points for cue in AGAINST if cue.pattern.search(bare))
    if _ORDER.match(bare) and not (is_standing and _VALUE.search(clause[1:])):
        points -= 0.0 if _is_general(names) else 2.0
    return points, tuple(names)


def _is_general(names: list[str]) -> bool:
    """True if an order names an occasion that comes again, or what is never done."""
    return "scope" in names or "prohibits" in names or "contrast" in names


def _resolve(clause: str, before: str) -> str | None:
    """The sentence with its first pronoun replaced by what the sentence before names; None if that
    names nothing."""
    found = _DANGLING.match(clause)
    if found is None:
        return None if _USED_IT.search(clause) else clause
    thing = antecedent(before)
    if not thing or found["pronoun"].lower() in ("there", "he", "she", "something"):
        return None
    if found["pronoun"].lower() in ("it's", "that's", "thats"):
        thing = f"{thing} is"
    elif found["pronoun"].lower() == "its":
        thing = f"{thing}'s"
    text = f"{found['before']}{thing}{clause[found.end() :]}"
    return text if _DANGLING.match(text) is None else None


def antecedent(sentence: str) -> str:
    """What a pronoun in the next sentence means: the subject of this one, or what is used in it."""
    for pattern in _ANTECEDENTS:
        if (found := pattern.match(sentence)) is not None:
            thing = found["thing"].strip()
            if not re.fullmatch(rf"(?:{_PRONOUN}|you|we|i)", thing, re.IGNORECASE):
                return thing
    return ""
