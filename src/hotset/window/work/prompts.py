"""The user's own words in a prompt, and whether they go on with the same work."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hotset.text.client_notes import asked_in
from hotset.text.words import word_set

_OWN = word_set("""
    user_query user_message user_request user_input query request question task issue pr_description
    problem_statement prompt message human feedback
    """)
"""Tags that contain the user's request."""
_DOCUMENT = re.compile(r"<(?:issue|pr_description|problem_statement)>")
_WRAPPERS = frozenset(
    {
        "skill",
        "instructions",
        "context",
        "reminder",
        "notification",
        "attachments",
        "attachment",
        "hook",
    }
)
_TAG = re.compile(
    r"(?:^|(?<=>))[ \t]*<([A-Za-z][\w-]*(?: [\w-]+)?)(?:\s[^<>\n]{0,200})?>", re.MULTILINE
)
_MOST_TAGS = 200  # in one prompt; what follows is pasted markup
_COMMAND = re.compile(r"<command-name>\s*(/[\w:-]+)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.{0,4000}?)</command-args>", re.DOTALL)
_INTERRUPTED = re.compile(
    r"\[Request interrupted by user[^\]\n]{0,40}\]|<turn_aborted>", re.IGNORECASE
)
_MARKS = re.compile(
    r"\[Request interrupted by user[^\]\n]{0,40}\]|\[[Ii]mage(?: #?\d+)?\]"
    r"|\[Pasted text #\d+[^\]\n]{0,40}\]|#{3}(?:STOP|TRANSFER)#{3}"
    r"|Read the output file to retrieve the result: \S+"
)
_SUMMARY = re.compile(
    r"\s*(?:This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem"
    r"|The following is a summary of (?:the|our|this) (?:conversation|session)"
    r"|<(?:conversation|context)[-_]?summary>)",
    re.IGNORECASE,
)
"""How a client's summary of forgotten context begins."""
_INJECTED = re.compile(
    r"\s*(?:# (?:AGENTS|CLAUDE|GEMINI)\.md instructions|Caveat: The messages below were "
    r"generated|Base directory for this skill:"
    r"|\[hotset |\[CTX-REF|\[AUTO-RETRIEVED|\[[\w -]{2,24}\] If this output is truncated|The "
    r"user (?:opened|selected) the )"
)
_BARE_COMMAND = re.compile(r"\s*/[\w:-]{1,40}\s*")
_NEW_TALK = frozenset({"/clear", "/new", "/reset"})


@dataclass(frozen=True, slots=True)
class PromptWords:
    """A parsed prompt."""

    text: str = ""
    """The person's own words; may be empty."""
    interrupted: bool = False
    """The person stopped the model."""
    summary: bool = False
    """A client's summary of forgotten context: the session began earlier."""
    fresh: bool = False
    """The person started over."""
    handed: bool = False
    """The request is in a document that another author may have written."""


def prompt_words(text: str) -> PromptWords:
    """The person's part of a prompt."""
    interrupted = _INTERRUPTED.search(text[:400]) is not None
    if _SUMMARY.match(text):
        return PromptWords(summary=True, interrupted=interrupted)
    command = _COMMAND.search(text[:2000])
    if command:
        arguments = _ARGUMENTS.search(text)
        words = arguments.group(1).strip() if arguments else ""
        fresh = command.group(1) in _NEW_TALK
        return PromptWords(
            f"{command.group(1)} {words}" if words else "", interrupted=interrupted, fresh=fresh
        )
    if _INJECTED.match(text) or _BARE_COMMAND.fullmatch(text):
        return PromptWords(interrupted=interrupted)
    handed = _DOCUMENT.search(text[:2000]) is not None
    own = _MARKS.sub(" ", _unwrap(asked_in(text))).strip()
    own = "\n\n".join(
        part
        for part in re.split(r"\n{2,}", own)
        if not part.lstrip().startswith(("[hotset ", "[CTX-REF"))
    )
    return PromptWords(unquote(own.strip()), interrupted=interrupted, handed=handed)


def without_marks(text: str) -> str:
    """Without placeholders of images and pastes."""
    return _MARKS.sub("", text)


def unquote(text: str) -> str:
    """Without the quotation marks that some clients add to command-line prompts."""
    inside = text[1:-1]
    return inside if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in inside else text


def _unwrap(text: str) -> str:
    """Without blocks that clients add in tags; blocks with a request lose only their tags."""
    if "<" not in text:
        return text
    kept: list[str] = []
    at = 0
    for _ in range(_MOST_TAGS):
        found = _TAG.search(text, at)
        if found is None:
            break
        name = found.group(1)
        close = _close(text, name, found.end())
        if name in _OWN:
            inside = text[found.end() : close if close >= 0 else len(text)]
            kept += [text[at : found.start()], inside]
        elif close >= 0 and _is_wrapper(name):
            kept.append(text[at : found.start()])
        else:
            kept.append(text[at : found.end()])
            at = found.end()
            continue
        at = close + len(name) + 3 if close >= 0 else len(text)
    return "".join((*kept, text[at:]))


def _close(text: str, name: str, begin: int) -> int:
    """The end of the block, which may mention its own tag; negative if it does not end."""
    opening, closing = f"<{name}>", f"</{name}>"
    end = text.find(closing, begin)
    for _ in range(_MOST_TAGS):
        if end < 0 or text.count(opening, begin, end) <= text.count(closing, begin, end):
            break
        end = text.find(closing, end + 1)
    return end


def _is_wrapper(name: str) -> bool:
    """`environment_context`, `system-reminder`, `permissions instructions`: no HTML element has
    such a name."""
    return name in _WRAPPERS or (name == name.lower() and any(mark in name for mark in "_- "))


_SHORT = 7  # words of a prompt that depends on the one before it
_CARRIES_ON = re.compile(
    r"(?:(?:ok(?:ay)?|alright|great|nice|cool|perfect|good|fine|thanks?|thank "
    r"you|thx|awesome|wow|sure|yes"
    r"|yep|yeah|yup|no|nope|nah"
    r"|right|correct|exactly|agreed|hmm+|hm|oh|ah|so|well|and|but|also|or|then|still|wait|"
    r"actually|sorry"
    r"|again|instead|not|now|same"
    r"|maybe|it|it's|its|that|that's|thats|this|these|those|they|them|he|she|why|what "
    r"about|how about|which|where is|when|who"
    r"|you|your|i mean|i meant|i see|i think|i thought|i'd|i would|i still|i understand|i "
    r"appreciate"
    r"|i was hoping|i really|besides|however|unfortunately|i don't|i dont|i "
    r"didn't|seems|looks|sounds"
    r"|doesn't|does it|did|did you|are you|can we|is it"
    r"|isn't|is that|is this|was|shouldn't|should it|if|because|since|nevermind|never "
    r"mind|continue|go on"
    r"|go ahead|proceed|do it|do that|do so"
    r"|keep going|retry|try again|undo|revert|commit|push|merge|lgtm|done|stop|let's do|lets do"
    r"|for example|e\.g|option|both|neither|either"
    r"|first|second|the first|the second|the last|another|one more|mention|make it|make "
    r"this|make these"
    r"|please (?:continue|proceed|fix it|do)"
    r"|merci|bitte|danke|oui|ja|nein|oui|ok)\b)",
    re.IGNORECASE,
)
"""Words with which a prompt continues the same goal."""
_ORDER = re.compile(
    r"(?:(?:ok(?:ay)?|alright|now|next|then|please|also|great|thanks?|so|and|hey|hi|hello|"
    r"cool|perfect)[,.! ]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?|please |i(?:'d| would) like (?:you )?to "
    r"|i want (?:you )?to |i need (?:you )?to |let's |lets |we (?:need|have) to |help me )?"
    r"(?:add|implement|create|build|write|fix|refactor|rename|remove|delete|update|upgrade|"
    r"migrate|move"
    r"|make|change|replace|set up|setup"
    r"|investigate|research|review|analy[sz]e|debug|explain|document|test|deploy|release|"
    r"publish|port"
    r"|convert|integrate|design|read|find"
    r"|check|look|improve|optimi[sz]e|clean|generate|redesign|extract|split|merge|book|cancel|"
    r"plan|compare|recommend|suggest)\b",
    re.IGNORECASE,
)
_ASKS_BACK = re.compile(r"\?[\s\"')*_]*$")
_AWAITS = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|let me know "
    r"(?:if|which|what|how)|please (?:confirm"
    r"|provide|choose|let me)|could you (?:please )?(?:provide|confirm|tell))\b",
    re.IGNORECASE,
)
_LAST = 400  # characters at the end of a reply in which it asks for something


def goes_on(text: str) -> bool:
    """True if a prompt continues the same goal: by a word that says so, or by being too short for
    another."""
    bare = text.strip().lstrip("\"'(*-")
    return len(bare.split()) < _SHORT or _CARRIES_ON.match(bare) is not None


def is_order(text: str) -> bool:
    """True if a prompt begins by asking for some work."""
    return _ORDER.match(text) is not None


def asks_back(reply: str) -> bool:
    """True if a reply ends by asking the user for something."""
    end = reply[-_LAST:].strip()
    return _ASKS_BACK.search(end) is not None or _AWAITS.search(end) is not None
