"""Notes on a stretch of work by rules alone: sentences and lines of its own, chosen and shortened,
never reworded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.page import Kind
from hotset.nouns.window import Piece
from hotset.text.clip import clip
from hotset.text.sentences import report_sentences
from hotset.window.arguments import spoken
from hotset.window.names import names
from hotset.window.preview.asking import asked as asked_for
from hotset.window.preview.content import ContentOrigin
from hotset.window.preview.trouble import is_trouble
from hotset.window.summary import Stretch, asked_in

_ROOM = 1200  # characters: some 300 tokens
_SENTENCE, _SHORTEST = 240, 24
_ASKED, _PROMPTS = 160, 2
_LEAST_WORTH = (
    1.2  # flat from 1 to 1.5 on the recorded session; below that, small talk fills the room
)
_CHANGED = 260
_COMMAND, _OUTCOME, _RUNS = 70, 110, 4
_EDGE = 20  # lines at either end of an output, where it says how it went
_READ = 200_000  # bytes of one page that are looked at

_TELLING = re.compile(
    r"\b(?:because|caus(?:e|es|ed)|reason|turns? "
    r"out|found|problem|bug|issue|confirm(?:s|ed)?|explains?|means|decid\w+|instead"
    r"|better|fix(?:es|ed)?|fails?|failed|wrong|missing|only|never|must|cannot|does not|did "
    r"not|no longer|works?|passe?[sd]?"
    r"|verified|left|remain\w*|open|todo|not yet|still)\b",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"(?:now|next|first|then|let me|let['\u2019]s|I(?:['\u2019]ll| will| am going to| need "
    r"to)|I(?:['\u2019]m| am) \w+ing"
    r"|I (?:look|check|read|start|run|write))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\b\d+\b")

_WRITES = re.compile(r"edit|write|replace|patch|create|insert|append|update", re.IGNORECASE)
_PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (\S+)")
_REDIRECTED = re.compile(r"(?<![-=0-9&>])>{1,2}\s*([\w./~-]*\w\.\w{1,8})\b")
_COUNTED = re.compile(
    r"\b\d+ "
    r"(?:passed|failed|passing|failing|errors?|problems?|skipped|tests?)\b|^Tests?:|^test "
    r"result:|^Ran \d+"
    r"|^All checks passed|^(?:ok|FAIL)\s",
)
_ENDED_BADLY = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: status| code)?|return ?code)\b\W{0,3}[1-9]\d{0,2}\b",
    re.IGNORECASE,
)
_FIRST_WORDS = re.compile(r"\W{0,3}(?:error|fatal|traceback|failed|exception)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Said:
    """A sentence of the agent's, at its place."""

    at: int
    text: str
    worth: float


@dataclass(frozen=True, slots=True)
class _Went:
    """How a call went."""

    told: str
    badly: bool


def notes(stretch: Stretch) -> str:
    """What was asked, said, changed and run, in the stretch's own words; empty where there is
    nothing to tell."""
    calls = {piece.call: piece for piece in _pieces(stretch) if piece.kind.family is Kind.TOOL_CALL}
    facts = [*_changed(stretch, calls), *_runs(stretch, calls)]
    asked = _asked(stretch)
    left = _ROOM - sum(len(line) + 1 for line in (*asked, *facts))
    return "\n".join([*asked, *_chosen(_sentences(stretch), left), *facts])


def _asked(stretch: Stretch) -> list[str]:
    prompts = [said for line in stretch.lines if (said := asked_in(line.pieces))]
    return [f"Asked: {clip(_flat(said), _ASKED)}" for said in prompts[-_PROMPTS:]]


def _chosen(said: Sequence[_Said], room: int) -> Iterator[str]:
    """The sentences that tell most, in the order in which they were said."""
    kept: list[_Said] = []
    for each in sorted(said, key=lambda each: (-each.worth, each.at)):
        size = len(each.text) + 3
        if each.worth <= _LEAST_WORTH or size > room:
            continue
        room -= size
        kept.append(each)
    return (f"- {each.text}" for each in sorted(kept, key=lambda each: each.at))


def _sentences(stretch: Stretch) -> list[_Said]:
    spoken_ = [
        piece for piece in _pieces(stretch) if piece.kind is Kind.RESPONSE and piece.content.strip()
    ]
    found: dict[str, _Said] = {}
    for place, piece in enumerate(spoken_):
        late = (place + 1) / len(spoken_)  # what was learned later corrects what was thought before
        for text in _split(_text(piece)):
            found.setdefault(text, _Said(len(found), text, _worth(text) + late))
    return list(found.values())


def _split(text: str) -> Iterator[str]:
    for sentence in report_sentences(text):
        if len(sentence) >= _SHORTEST and not sentence.endswith((":", "?")):
            yield clip(sentence, _SENTENCE)


def _worth(sentence: str) -> float:
    """Causes, findings and outcomes with the names and numbers they are about; not what is going to
    be looked at."""
    coined = len(set(names(sentence)))
    telling = len({word.lower() for word in _TELLING.findall(sentence)})
    worth = (
        1.5 * min(2, telling)
        + min(3, coined)
        + 0.5 * bool(_NUMBER.search(sentence))
        - len(sentence) / _SENTENCE
    )
    return worth - 2.5 if _TALK.match(sentence) else worth


def _changed(stretch: Stretch, calls: dict[str, Piece]) -> list[str]:
    paths: dict[str, None] = {}
    for line in stretch.lines:
        for piece in line.pieces if line.answers else ():
            call = calls.get(piece.call)
            if call is not None and piece.kind is not Kind.FILE and not _went(piece).badly:
                paths.update(dict.fromkeys(_written(call)))
    told = _fitting(paths, _CHANGED)
    return [f"Changed: {told}"] if told else []


def _written(call: Piece) -> Iterator[str]:
    if call.kind is Kind.PLAN:
        return
    wanted = asked_for(ContentOrigin(call.kind, call.tool, call.content))
    text = spoken(call.content)
    yield from _PATCHED.findall(text)
    if wanted.command:
        yield from _REDIRECTED.findall(wanted.command)
    elif _WRITES.search(call.tool):
        yield from wanted.paths


def _runs(stretch: Stretch, calls: dict[str, Piece]) -> list[str]:
    """Calls that say how they went: what went wrong first, and how each came out."""
    runs: dict[str, list[_Went]] = {}
    for line in stretch.lines:
        for piece in line.pieces if line.answers else ():
            call, went = calls.get(piece.call), _went(piece)
            if call is not None and went.told:
                runs.setdefault(_command(call), []).append(went)
    worst = sorted(runs.items(), key=lambda run: not any(went.badly for went in run[1]))[:_RUNS]
    chosen = [command for command, _ in worst]
    return [
        f"Ran {command}: {_course(outcomes)}"
        for command, outcomes in runs.items()
        if command in chosen
    ]


def _command(call: Piece) -> str:
    wanted = asked_for(ContentOrigin(call.kind, call.tool, call.content))
    told = _flat(wanted.command) or f"{call.tool} {_flat(spoken(call.content))}".strip()
    return clip(told, _COMMAND)


def _course(outcomes: Sequence[_Went]) -> str:
    last = outcomes[-1]
    first = next((went for went in outcomes if went.badly), last)
    if first == last:
        return last.told
    return f"{first.told}; at last: {last.told}"


def _went(piece: Piece) -> _Went:
    """How a result says that its call went; a file that was read says nothing about that, whatever
    it holds."""
    if (
        piece.kind in (Kind.FILE, Kind.WEB_FETCH, Kind.PAPER, Kind.IMAGE)
        or piece.kind.family is not Kind.TOOL_RESULT
    ):
        return _Went("", badly=False)
    lines = [line for line in _text(piece).splitlines() if line.strip()]
    edges = [*lines[:_EDGE], *lines[_EDGE:][-_EDGE:]]
    badly = bool(edges) and (
        bool(_FIRST_WORDS.match(edges[0]))
        or any(_ENDED_BADLY.search(line[:_SENTENCE]) for line in edges)
    )
    counted = next((line for line in reversed(edges) if _COUNTED.search(line.strip(" =-"))), "")
    trouble = (
        next((line for line in reversed(lines[-4 * _EDGE :]) if is_trouble(line)), edges[-1])
        if badly
        else ""
    )
    return _Went(clip(_flat(counted or trouble).strip(" =-"), _OUTCOME), badly)


def _pieces(stretch: Stretch) -> Iterator[Piece]:
    for line in stretch.lines:
        yield from line.pieces


def _fitting(words: dict[str, None], room: int) -> str:
    told = ""
    for word in words:
        longer = f"{told}, {word}" if told else word
        if len(longer) > room:
            break
        told = longer
    return told


def _text(piece: Piece) -> str:
    return piece.content[:_READ].decode("utf-8", "replace")


def _flat(text: str) -> str:
    return " ".join(text.split())
