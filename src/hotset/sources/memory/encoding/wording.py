"""An episode in words: its goal as the user said it, a title, a text of a few sentences; taken from what was said. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Ending
from hotset.sources.memory.encoding.acting import Act, Doing
from hotset.sources.memory.encoding.outcomes import Came
from hotset.sources.memory.encoding.taint import LEAST_SENTENCE, Outside, is_dangerous, is_order
from hotset.sources.memory.encoding.troubles import Mishap
from hotset.text.clip import clip_prose, first_words
from hotset.text.sentences import sentences, without_fences
from hotset.text.terms import topic_words
from hotset.text.words import once

LONGEST_GOAL = 200
_TITLE_WORDS = 10
_LONGEST_TITLE = 90
_LONGEST_TEXT = 560  # characters: about 150 tokens, of which paths take many
_LONGEST_REPLY = 160
_LONGEST_COMMAND = 80  # characters; longer ones are scripts
_CHORE = re.compile(r"(?:rm|echo|printf|mkdir|touch|mv|cp|chmod|git (?:add|config|stash|checkout))\b")
_FILES_TOLD, _COMMANDS_TOLD, _TROUBLES_TOLD = 4, 2, 2
_POLITE = re.compile(
    r"(?:(?:hi|hello|hey|ok(?:ay)?|alright|great|thanks?|thank you|please|so|now|well|yes|also|and|bonjour)(?: there)?[,.!]*\s+)*"
    r"(?:(?:can|could|would|will) you (?:please |help me )?|(?:i(?:'d| would) like|i want|i need"
    r"|i'm looking|i'm trying|i am trying)(?: you)? to |please |help me (?:to )?|let's |lets )?",
    re.IGNORECASE,
)
_LEADS_IN = re.compile(r".{0,80}:\s*$")
_HEADING = re.compile(
    r"^\s*#{1,4}\s+(?:plan|fix|task|feature|bug(?: ?fix)?|assessment|goal)?\s*[:\u2013—-]?\s*(\S.{2,160})$",
    re.IGNORECASE | re.MULTILINE,
)
_MARKUP = re.compile(r"\*\*|`|^\s*(?:[-•*]|#{1,6})\s+", re.MULTILINE)
_LABEL = re.compile(
    r"#{0,6}\s*(?:context|description|summary|overview|background|plan|goal|problem|details?)\s*:?\s*", re.IGNORECASE
)
_COMMAND_NAME = re.compile(r"^/[\w:-]+\s+(?=\S)")
_HEDGES = re.compile(
    r"^(?:now |ok(?:ay)?,? |great[,!.]? |perfect[,!.]? )?(?:let me|i'll|i will|i'm going to|first,"
    r"|looking at|here(?:'s| is)|sure|please|thank you|you're welcome|i'm sorry|oh wait|i am ready)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[\w./-]+\.\w{1,5}\b|\||\S+ [\u2013—-] |[A-Z]\w+: |\W")
"""A point of a list, a row of a table: what came before it says what it is about."""
_FEWEST_WORDS = 4
_DECIDES = re.compile(
    r"\b(?:decided|decision|settled|agreed|we'll (?:go|use|keep)|let's (?:go with|use|keep|stick)|chose"
    r"|opted|going with|stick with|amend)",
    re.IGNORECASE,
)
_ENDED = {
    Ending.SUCCESS: "It worked",
    Ending.PARTIAL: "It was left unfinished",
    Ending.FAILURE: "It failed",
    Ending.UNKNOWN: "How it came out is not known",
}


@dataclass(frozen=True, slots=True)
class Work:
    """What an episode tells about."""

    goal: str
    acts: Sequence[Act]
    mishaps: Sequence[Mishap]
    came: Came
    reply: str
    """What the model said last, as far as it is its own."""
    decisions: Sequence[str]


def goal_of(prompt: str) -> str:
    """The user's words, cut at a sentence; where they only lead in, with what they lead to."""
    lines = [line.strip() for line in without_fences(prompt).splitlines() if line.strip() and not _LABEL.fullmatch(line.strip())]
    told = " ".join(_sentence(line) for line in lines[:12]) or prompt
    return clip_prose(told, LONGEST_GOAL)


def title_of(prompt: str) -> str:
    """About ten words."""
    text = without_fences(prompt).strip()
    lines = [bare for line in text.splitlines() if (bare := line.strip()) and not _LABEL.fullmatch(bare)]
    leads_in = bool(lines) and _LEADS_IN.fullmatch(lines[0]) is not None
    if leads_in and (heading := _HEADING.search("\n".join(lines[1:3]))):
        told = heading.group(1)
    elif leads_in and len(lines) > 1:
        told = lines[1]
    else:
        said = [each for each in sentences(_COMMAND_NAME.sub("", text)) if not _LABEL.fullmatch(each)][:4]
        told = next((each for each in said if len(set(topic_words(each))) > 1), " ".join(said)) or prompt.strip()
    bare = _POLITE.sub("", _plain(told), count=1).strip() or _plain(told)
    short = first_words(bare, _TITLE_WORDS)[:_LONGEST_TITLE].strip(" ,;:-")
    short = short[:-1] if short.endswith(".") and not short.endswith("..") else short
    return short[:1].upper() + short[1:]


def title_of_work(acts: Sequence[Act]) -> str:
    """A title without a word of what was asked: where that may be somebody else's."""
    names = once((path.rsplit("/", 1)[-1] for path in changed_files(acts)), _FILES_TOLD)
    return f"Work on {', '.join(names)}" if names else "A task that was handed over"


def text_of(work: Work) -> str:
    """What was asked, done and achieved, in a few sentences."""
    parts = [f"Asked: {_ended(work.goal)}", _did(work.acts), *_went_wrong(work.mishaps)]
    if work.decisions:
        parts.append(f"Decided: {clip_prose(work.decisions[0], 120)}")
    ending = f"{_ENDED[work.came.ending]} ({work.came.why})."
    room = _LONGEST_TEXT - sum(len(part) + 1 for part in parts if part) - len(ending)
    if work.reply and room > 40:  # less says nothing
        parts.append(f"The agent: {_ended(clip_prose(work.reply, min(room - 13, _LONGEST_REPLY)))}")
    told = " ".join(part for part in parts if part)
    return f"{clip_prose(told, _LONGEST_TEXT - len(ending) - 1)} {ending}"


def own_reply(text: str, before: int, others: Outside) -> str:
    """The sentence with which a reply says most, if it is the model's own: none that others wrote before, and no order."""
    for sentence in sentences(without_fences(text)):
        bare = _plain(sentence)
        if len(bare.split()) < _FEWEST_WORDS or _HEDGES.match(bare) or bare.endswith((":", "?")) or _LISTED.match(bare):
            continue
        if not is_order(bare) and not others.says(bare, before, LEAST_SENTENCE):
            return bare
    return ""


def is_decision(sentence: str) -> bool:
    return _DECIDES.search(sentence) is not None


def phase_of(acts: Sequence[Act]) -> str:
    """What was being done at the end."""
    for act in reversed(acts):
        if act.doing is Doing.CHECK:
            return "testing"
        if act.doing is Doing.EDIT:
            return "changing"
    return "exploring" if any(act.doing is Doing.READ for act in acts) else ""


def changed_files(acts: Sequence[Act]) -> tuple[str, ...]:
    """What was written or edited, and is still there."""
    removed = {word for act in acts if act.command.startswith("rm ") for word in act.command.split()[1:]}
    paths = (path for act in acts if act.doing is Doing.EDIT and not act.verdict.failed for path in act.files)
    return once(path for path in paths if path not in removed and path.rsplit("/", 1)[-1] not in removed)


def _did(acts: Sequence[Act]) -> str:
    edited = changed_files(acts)
    ran = [act for act in acts if act.command and not act.verdict.failed and len(act.command) <= _LONGEST_COMMAND]
    checks = once(act.command for act in reversed(ran) if act.doing is Doing.CHECK)
    others = once(act.command for act in reversed(ran) if act.doing is Doing.RUN and not _CHORE.match(act.command))
    commands = [f"`{command}`" for command in (*checks[:1], *others, *checks[1:]) if not is_dangerous(command)]
    called = once(act.tool for act in acts if act.doing is Doing.OTHER)
    told = []
    if edited:
        told.append(f"changed {', '.join(_short_path(path) for path in edited[:_FILES_TOLD])}{_more(len(edited), _FILES_TOLD)}")
    if commands:
        told.append(f"ran {', '.join(commands[:_COMMANDS_TOLD])}")
    if called:
        told.append(f"called {', '.join(called[:_FILES_TOLD])}{_more(len(called), _FILES_TOLD)}")
    if not told:
        looked = sum(act.doing is Doing.READ for act in acts)
        return f"Looked at {looked} things." if looked else ""
    return f"{_capital('; '.join(told))}."


def _went_wrong(mishaps: Sequence[Mishap]) -> list[str]:
    told = []
    # An edit that missed its place is tried again at once; nobody wants to read of it.
    for mishap in [each for each in mishaps if each.failed.doing is not Doing.EDIT][:_TROUBLES_TOLD]:
        how = f"resolved: {', '.join(mishap.resolved[:2])}" if mishap.by is not None and mishap.resolved else ""
        if mishap.by is None:
            how = "not resolved"
        where = clip_prose(first_words(mishap.failed.target, 8), _LONGEST_COMMAND)
        told.append(f"Trouble: {mishap.failed.verdict.kind} at `{where}`{f' ({how})' if how else ''}.")
    return told


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", _MARKUP.sub("", text)).strip()


def _sentence(line: str) -> str:
    """A line of its own; a heading ends like a sentence."""
    return _ended(_plain(line)) if line.startswith("#") else _plain(line)


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


def _short_path(path: str) -> str:
    return "/".join(path.strip("/").split("/")[-2:])


def _more(many: int, shown: int) -> str:
    return f" and {many - shown} more" if many > shown else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
