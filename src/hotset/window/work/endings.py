"""How a stretch of work ended: its outcome, the files it changed, the items of its plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotset.nouns.memory import Ending
from hotset.text.sentences import without_fences
from hotset.window.work.calls import Act, ActKind, decode_arguments
from hotset.window.work.mishaps import Mishap
from hotset.window.work.prompts import goes_on


@dataclass(frozen=True, slots=True)
class UserPrompt:
    """The user's words, and their place."""

    place: int
    text: str
    handed: bool = False
    """In a document that another author may have written."""
    person: bool = True
    """Proven to be the user's own words."""


_CONTENT = re.compile(
    r"\b(?:thanks|thank you|thx|merci|danke|perfect|great|awesome|excellent|nice|lgtm|looks good"
    r"|sounds good|well done|good job|love it"
    r"|(?:it |that |this |now )*works(?: now| great| fine| well)?|working now|that's "
    r"(?:it|all|great"
    r"|perfect)|that is all|all good|fixed it)\b",
    re.IGNORECASE,
)
_UNHAPPY = re.compile(
    r"\b(?:still (?:broken|fail\w*|not|does ?n.t|wrong|the same|see|get\w*|crash\w*|an? )"
    r"|does ?n[o']?t work|doesn.t|didn.t work|not work\w*"
    r"|is (?:wrong|broken)|broke\b|broken|fail(?:s|ed|ing)?|bugged|you "
    r"(?:broke|forgot|missed|messed"
    r"|fucked|removed|deleted)|undo|revert|worse|crash\w*"
    r"|try again|not (?:what i|right|correct|fixed)|incorrect|wtf|error)\b",
    re.IGNORECASE,
)
_SEALS = re.compile(
    r"(?:please |ok(?:ay)?,? |great,? |now |and |can you )*(?:commit|push|merge|ship|deploy|release"
    r"|open a pr|create a pr|publish)\b",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"(?:(?:ok(?:ay)?|great|good|nice|perfect|thanks?|fine|cool|all)[,.!: ]+)*"
    r"(?:done\b(?! (?:yet|with it)\?)|next\b|moving on|let's move on|on to the next|now for )",
    re.IGNORECASE,
)
_GAVE_UP = re.compile(
    r"\b(?:i (?:was|am|'m) (?:not able|unable)|i (?:couldn't|could not|can't|cannot)|unfortunately"
    r"|not possible|remains? (?:broken|failing|unresolved))\b",
    re.IGNORECASE,
)
_CLAIMS = re.compile(
    r"\b(?:(?:is|are|all|now|been) "
    r"(?:done|complete[d]?|implemented|fixed|updated|committed|pushed|merged"
    r"|in place)|all (?:\w+ ){0,3}(?:tests )?pass(?:es|ing|ed)?"
    r"|successfully|committed|(?:^|\n"
    r")(?:\*\*)?(?:pulled|merged|pushed|created|opened|closed|updated|fixed"
    r"|added|removed|done|completed?|implemented|deleted|switched|renamed|published|deployed|saved"
    r"|reverted|resolved|committed|moved|refactored|cleaned)\b|i(?:'ve| have) "
    r"(?:implemented|added|updated"
    r"|fixed|created|removed|refactored|changed|written|booked|cancell?ed|processed))\b",
    re.IGNORECASE,
)
_HANDED_OFF = re.compile(r"transfer_to_human|escalate", re.IGNORECASE)
_PROSE = re.compile(
    r"\.(?:md|mdx|rst|txt|adoc)$|(?:^|/)(?:CHANGELOG|LICENSE|AUTHORS|NOTICE)$", re.IGNORECASE
)
_HEARD = 300  # characters of a prompt that are searched for praise or complaint


@dataclass(frozen=True, slots=True)
class WorkOutcome:
    """How work ended, and how sure that is."""

    ending: Ending
    confidence: float
    why: str
    checked: bool = False
    """The last check after the last change passed."""


def work_outcome(  # noqa: PLR0911 - one case a sign, the surest first
    prompts: Sequence[UserPrompt],
    acts: Sequence[Act],
    mishaps: Sequence[Mishap],
    reply: str,
    *,
    stopped: bool,
    reported: Mapping[int, Ending],
) -> WorkOutcome:
    """Judge how a span ended, by the surest sign first.

    `reply` is the model's last reply; `stopped`: the user interrupted and wrote nothing after it;
    `reported`: endings reported from outside, by turn."""
    check = next(
        (
            act
            for act in reversed(acts)
            if act.doing is ActKind.CHECK and act.answered and not act.verdict.open
        ),
        None,
    )
    edit = next(
        (
            act.place
            for act in reversed(acts)
            if act.doing is ActKind.EDIT and not act.verdict.failed and _runs(act)
        ),
        -1,
    )
    checked = check is not None and check.passed and check.place > edit
    if reported:
        return WorkOutcome(reported[max(reported)], 1.0, "somebody told", checked)
    last = prompts[-1] if len(prompts) > 1 else None
    worked_since = last is not None and any(
        act.place > last.place and act.doing is not ActKind.PLAN for act in acts
    )
    if stopped:
        return WorkOutcome(Ending.PARTIAL, 0.6, "the user stopped it", checked)
    if last is not None and not worked_since and (verdict := user_verdict(last.text)) is not None:
        return WorkOutcome(verdict, 0.8, "the user's last words", checked)
    if check is not None and check.place > edit and check.verdict.failed:
        return WorkOutcome(
            Ending.PARTIAL if edit >= 0 else Ending.FAILURE,
            0.7,
            f"the last check ({check.family}) failed",
        )
    if (
        last is not None
        and has_sealed(last.text)
        and not any(each.by is None and each.failed.place > last.place for each in mishaps)
    ):
        return WorkOutcome(
            Ending.SUCCESS, 0.85 if checked else 0.75, "the user had it committed", checked
        )
    if any(_HANDED_OFF.search(act.tool) for act in acts[-2:]):
        return WorkOutcome(Ending.PARTIAL, 0.6, "it was handed to somebody else")
    if checked:
        return WorkOutcome(
            Ending.SUCCESS,
            0.8,
            f"the last check ({check.family if check else ''}) passed",
            checked=True,
        )
    return _outcome_by_reply(acts, mishaps, reply)


def _runs(act: Act) -> bool:
    """True if the edited files are code. Prose needs no check: a changelog is written when all is
    green."""
    return not act.files or not all(_PROSE.search(path) for path in act.files)


def _outcome_by_reply(acts: Sequence[Act], mishaps: Sequence[Mishap], reply: str) -> WorkOutcome:
    open_troubles = [each for each in mishaps if each.by is None]
    changed = any(act.doing in (ActKind.EDIT, ActKind.RUN, ActKind.OTHER) for act in acts)
    if reply and _GAVE_UP.search(reply[:1500]) and not _CLAIMS.search(reply[:1500]):
        return WorkOutcome(
            Ending.FAILURE if not changed else Ending.PARTIAL,
            0.5,
            "the model said that it could not",
        )
    if acts and open_troubles and acts[-1].failed:
        return WorkOutcome(Ending.PARTIAL, 0.55, "the last action failed")
    if not reply:
        return WorkOutcome(Ending.UNKNOWN, 0.3, "it broke off")
    if changed and _CLAIMS.search(reply[:1500]):
        return WorkOutcome(
            Ending.SUCCESS,
            0.55 if not open_troubles else 0.45,
            "the model said so, and no check speaks against it",
        )
    return WorkOutcome(Ending.UNKNOWN, 0.3, "nothing tells")


_DECISION_SIGNS = (
    *("decided", "decision", "settled", "agreed", "we'll ", "let's ", "chose", "opted"),
    *("going with", "stick with", "amend"),
)


def has_sealed(text: str) -> bool:
    """True if the user has the work committed, merged or released."""
    return _SEALS.match(text) is not None


def has_moved_on(text: str) -> bool:
    """True if the user takes the work for done: has it committed, or names what is next."""
    return has_sealed(text) or _NEXT.match(text) is not None


def user_verdict(text: str) -> Ending | None:
    """The user's verdict, if the prompt says nothing but that."""
    head = text[:_HEARD]
    unhappy = _UNHAPPY.search(head)
    content = _CONTENT.search(head)
    if unhappy and (not content or unhappy.start() < content.start()):
        return Ending.PARTIAL
    if content and goes_on(text):
        return Ending.SUCCESS
    return None


_CORRECTS = re.compile(
    r"\s*(?:(?:hm+|oh|ok(?:ay)?|well|but|sorry)[,.! ]+)*"
    r"(?:no\b(?!\s+(?:need|problem|worries|rush|idea))|nope\b|not (?:like )?that\b|wrong\b"
    r"|stop\b|undo\b|revert\b|that(?:'s| is) not\b|i (?:said|meant|asked for|wanted)\b"
    r"|why (?:did|are|have) you\b"
    r"|you (?:should(?:n't| not)|were not|weren't|ignored|misunderstood)\b)",
    re.IGNORECASE,
)
_REVERTS = re.compile(
    r"(?:^|[;&|]\s*)git (?:checkout\s+(?:--|HEAD|\.)|restore\b(?!\s+--staged)|reset --hard|revert\b"
    r"|stash(?:\s+(?:push|-u))?\s*(?:$|[;&|]))"
)


def is_correction(text: str) -> bool:
    """True if a prompt rejects what the model did: "no, not like that", "undo it"."""
    return _CORRECTS.match(text) is not None or user_verdict(text) is Ending.PARTIAL


def is_revert(command: str) -> bool:
    """True if a command throws away changes of files."""
    return _REVERTS.search(command) is not None


_DECIDES = re.compile(
    r"\b(?:decided|decision|settled|agreed|we'll (?:go|use|keep)|let's (?:go "
    r"with|use|keep|stick)|chose"
    r"|opted|going with|stick with|amend)",
    re.IGNORECASE,
)


def is_decision(text: str) -> bool:
    """True if the text says that something was decided."""
    low = text.lower()  # the pattern alone takes ten times as long
    return any(sign in low for sign in _DECISION_SIGNS) and _DECIDES.search(text) is not None


def phase_of(acts: Sequence[Act]) -> str:
    """The phase in which the work ended."""
    for act in reversed(acts):
        if act.doing is ActKind.CHECK:
            return "testing"
        if act.doing is ActKind.EDIT:
            return "changing"
    return "exploring" if any(act.doing is ActKind.READ for act in acts) else ""


_LISTS = ("todos", "plan", "items", "tasks", "todoList", "todo_list")
_WORDS = ("content", "step", "text", "title", "description", "task", "subject")
_DONE = frozenset({"completed", "done", "complete", "finished"})
_DROPPED = frozenset({"cancelled", "canceled", "dropped", "skipped"})
_DOING = frozenset({"in_progress", "in-progress", "doing", "active"})
_BOX = re.compile(r"^\s*[-*] \[( |x|X)\] +(\S.{2,200})$", re.MULTILINE)
_LEFT = re.compile(
    r"^\W*(?:next steps?|remaining(?: work| tasks| items| steps)?|still (?:open|to "
    r"do|missing)|to ?do|not (?:yet )?done"
    r"|left to do|open (?:points|items|questions))\W*$",
    re.IGNORECASE,
)
_POINT = re.compile(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])\s+(\S.{2,200})$")


@dataclass(frozen=True, slots=True)
class PlanItems:
    """The items of an agent's plan."""

    done: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


def plan_items(calls: Sequence[str], reply: str, *, acted: bool) -> PlanItems:
    """The items of the latest plan that these calls set, and of the reply's own lists.

    Without an action, a list in a reply is advice to the user.
    """
    found = PlanItems()
    for call in reversed(calls):
        if points := list(_points(decode_arguments(call))):
            done = tuple(text for text, state in points if state in _DONE)
            found = PlanItems(done, tuple(_open(points)))
            break
    if not acted:
        return found
    boxes = _BOX.findall(reply)
    ticked = (text for mark, text in boxes if mark != " ")
    unticked = (text for mark, text in boxes if mark == " ")
    return PlanItems((*found.done, *ticked), (*found.open, *unticked, *_left_open(reply)))


def _points(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    listed: list[Any] = next(
        (arguments[name] for name in _LISTS if isinstance(arguments.get(name), list)), []
    )
    for point in listed:
        if isinstance(point, dict):
            text = next((point[name] for name in _WORDS if isinstance(point.get(name), str)), "")
            if text:
                yield text, str(point.get("status", "")).lower()


def _open(points: Sequence[tuple[str, str]]) -> list[str]:
    """Open items, those in progress first."""
    left = [(text, state) for text, state in points if state not in _DONE | _DROPPED]
    return [text for text, state in left if state in _DOING] + [
        text for text, state in left if state not in _DOING
    ]


def _left_open(reply: str) -> Iterator[str]:
    """The items under a heading such as "Next steps"."""
    under = False
    for line in without_fences(reply).splitlines():
        point = _POINT.match(line)
        if point and under and not _BOX.match(line):
            yield point.group(1)
        elif line.strip():
            under = _LEFT.match(line.strip()) is not None
