"""What a person says in a prompt, apart from what a client or a tool put around it. Pure, linear."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hotset.text.words import word_set
from hotset.window.prefetch import asked_in

_OWN = word_set("""
    user_query user_message user_request user_input query request question task issue pr_description problem_statement prompt
    message human feedback
    """)
"""Tags whose inside is what somebody asks."""
_DOCUMENT = re.compile(r"<(?:issue|pr_description|problem_statement)>")
_WRAPPERS = frozenset({"skill", "instructions", "context", "reminder", "notification", "attachments", "attachment", "hook"})
_TAG = re.compile(r"^[ \t]*<([A-Za-z][\w-]*(?: [\w-]+)?)(?:\s[^<>\n]{0,200})?>", re.MULTILINE)
_MOST_TAGS = 200  # in one prompt; what stands behind that many is pasted markup
_COMMAND = re.compile(r"<command-name>\s*(/[\w:-]+)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.{0,4000}?)</command-args>", re.DOTALL)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]|<turn_aborted>", re.IGNORECASE)
_MARKS = re.compile(
    r"\[Request interrupted by user[^\]\n]{0,40}\]|\[[Ii]mage(?: #?\d+)?\]"
    r"|\[Pasted text #\d+[^\]\n]{0,40}\]|#{3}(?:STOP|TRANSFER)#{3}"
)
_SUMMARY = re.compile(
    r"\s*(?:This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem"
    r"|The following is a summary of (?:the|our|this) (?:conversation|session)"
    r"|<(?:conversation|context)[-_]?summary>)",
    re.IGNORECASE,
)
"""How a client begins when it tells the model what it forgot."""
_INJECTED = re.compile(
    r"\s*(?:# (?:AGENTS|CLAUDE|GEMINI)\.md instructions|Caveat: The messages below were generated|Base directory for this skill:"
    r"|\[hotset |\[CTX-REF|\[AUTO-RETRIEVED|\[[\w -]{2,24}\] If this output is truncated|The user (?:opened|selected) the )"
)
_BARE_COMMAND = re.compile(r"\s*/[\w:-]{1,40}\s*")
_NEW_TALK = frozenset({"/clear", "/new", "/reset"})


@dataclass(frozen=True, slots=True)
class Spoken:
    """A prompt, taken apart."""

    text: str = ""
    """The person's own words; empty where there are none."""
    interrupted: bool = False
    """The person stopped the model."""
    summary: bool = False
    """A client tells the model what it forgot: the line began before."""
    fresh: bool = False
    """The person began anew."""
    handed: bool = False
    """What is asked stands in a document that somebody else may have written."""


def spoken(text: str) -> Spoken:
    """What of a prompt's text is the person's."""
    interrupted = _INTERRUPTED.search(text[:400]) is not None
    if _SUMMARY.match(text):
        return Spoken(summary=True, interrupted=interrupted)
    command = _COMMAND.search(text[:2000])
    if command:
        said = _ARGUMENTS.search(text)
        words = said.group(1).strip() if said else ""
        fresh = command.group(1) in _NEW_TALK
        return Spoken(f"{command.group(1)} {words}" if words else "", interrupted=interrupted, fresh=fresh)
    if _INJECTED.match(text) or _BARE_COMMAND.fullmatch(text):
        return Spoken(interrupted=interrupted)
    handed = _DOCUMENT.search(text[:2000]) is not None
    own = _MARKS.sub(" ", _unwrapped(asked_in(text))).strip()
    own = "\n\n".join(part for part in re.split(r"\n{2,}", own) if not part.lstrip().startswith(("[hotset ", "[CTX-REF")))
    return Spoken(unquoted(own.strip()), interrupted=interrupted, handed=handed)


def without_marks(text: str) -> str:
    """Without what a client puts in an image's or a paste's place."""
    return _MARKS.sub("", text)


def unquoted(text: str) -> str:
    """Some clients put what came by the command line between quotation marks."""
    inside = text[1:-1]
    return inside if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in inside else text


def _unwrapped(text: str) -> str:
    """Without blocks in tags that clients write; those in which a question stands lose only their tags."""
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
    """Where the block ends: a block may speak of its own tag. Below 0 where it does not end."""
    opening, closing = f"<{name}>", f"</{name}>"
    end = text.find(closing, begin)
    for _ in range(_MOST_TAGS):
        if end < 0 or text.count(opening, begin, end) <= text.count(closing, begin, end):
            break
        end = text.find(closing, end + 1)
    return end


def _is_wrapper(name: str) -> bool:
    """`environment_context`, `system-reminder`, `permissions instructions`: no element of HTML has such a name."""
    return name in _WRAPPERS or (name == name.lower() and any(mark in name for mark in "_- "))
