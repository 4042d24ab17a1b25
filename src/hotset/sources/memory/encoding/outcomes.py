"""How a stretch of work came out, judged by what happened: checks, troubles, and what the user said at the end. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Ending
from hotset.sources.memory.encoding.acting import Act, Doing
from hotset.sources.memory.encoding.episodes import Prompted, goes_on
from hotset.sources.memory.encoding.troubles import Mishap

_CONTENT = re.compile(
    r"\b(?:thanks|thank you|thx|merci|danke|perfect|great|awesome|excellent|nice|lgtm|looks good"
    r"|sounds good|well done|good job|love it"
    r"|(?:it |that |this |now )*works(?: now| great| fine| well)?|working now|that's (?:it|all|great"
    r"|perfect)|that is all|all good|fixed it)\b",
    re.IGNORECASE,
)
_UNHAPPY = re.compile(
    r"\b(?:still (?:broken|fail\w*|not|does ?n.t|wrong|the same|see|get\w*|crash\w*|an? )"
    r"|does ?n[o']?t work|doesn.t|didn.t work|not work\w*"
    r"|is (?:wrong|broken)|broke\b|broken|fail(?:s|ed|ing)?|bugged|you (?:broke|forgot|missed|messed"
    r"|fucked|removed|deleted)|undo|revert|worse|crash\w*"
    r"|try again|not (?:what i|right|correct|fixed)|incorrect|wtf|error)\b",
    re.IGNORECASE,
)
_SEALS = re.compile(
    r"(?:please |ok(?:ay)?,? |great,? |now |and |can you )*(?:commit|push|merge|ship|deploy|release"
    r"|open a pr|create a pr|publish)\b",
    re.IGNORECASE,
)
_GAVE_UP = re.compile(
    r"\b(?:i (?:was|am|'m) (?:not able|unable)|i (?:couldn't|could not|can't|cannot)|unfortunately"
    r"|not possible|remains? (?:broken|failing|unresolved))\b",
    re.IGNORECASE,
)
_CLAIMS = re.compile(
    r"\b(?:(?:is|are|all|now|been) (?:done|complete[d]?|implemented|fixed|updated|committed|pushed|merged"
    r"|in place)|all (?:\w+ ){0,3}(?:tests )?pass(?:es|ing|ed)?"
    r"|successfully|committed|(?:^|\n)(?:\*\*)?(?:pulled|merged|pushed|created|opened|closed|updated|fixed"
    r"|added|removed|done|completed?|implemented|deleted|switched|renamed|published|deployed|saved"
    r"|reverted|resolved|committed|moved|refactored|cleaned)\b|i(?:'ve| have) (?:implemented|added|updated"
    r"|fixed|created|removed|refactored|changed|written|booked|cancell?ed|processed))\b",
    re.IGNORECASE,
)
_HANDED_OFF = re.compile(r"transfer_to_human|escalate", re.IGNORECASE)
_PROSE = re.compile(r"\.(?:md|mdx|rst|txt|adoc)$|(?:^|/)(?:CHANGELOG|LICENSE|AUTHORS|NOTICE)$", re.IGNORECASE)
_HEARD = 300  # characters of a prompt in which somebody says how they like it


@dataclass(frozen=True, slots=True)
class Came:
    """How it came out, and how sure that is."""

    ending: Ending
    confidence: float
    why: str
    checked: bool = False
    """The last check after the last change passed."""


def came_out(  # noqa: PLR0911 - one case a sign, the surest first
    prompts: Sequence[Prompted],
    acts: Sequence[Act],
    mishaps: Sequence[Mishap],
    reply: str,
    *,
    stopped: bool,
    told: Mapping[int, Ending],
) -> Came:
    """`reply`: the last that the model said; `stopped`: the user stopped it and said no more; `told`: by those who know."""
    check = next((act for act in reversed(acts) if act.doing is Doing.CHECK and act.answered and not act.verdict.open), None)
    edit = next((act.place for act in reversed(acts) if act.doing is Doing.EDIT and not act.verdict.failed and _runs(act)), -1)
    checked = check is not None and check.passed and check.place > edit
    if told:
        return Came(told[max(told)], 1.0, "somebody told", checked)
    last = prompts[-1] if len(prompts) > 1 else None
    worked_since = last is not None and any(act.place > last.place and act.doing is not Doing.PLAN for act in acts)
    if stopped:
        return Came(Ending.PARTIAL, 0.6, "the user stopped it", checked)
    if last is not None and not worked_since and (heard := _heard(last.text)) is not None:
        return Came(heard, 0.8, "the user's last words", checked)
    if check is not None and check.place > edit and not check.passed:
        return Came(Ending.PARTIAL if edit >= 0 else Ending.FAILURE, 0.7, f"the last check ({check.family}) failed")
    if (
        last is not None
        and _SEALS.match(last.text)
        and not any(each.by is None and each.failed.place > last.place for each in mishaps)
    ):
        return Came(Ending.SUCCESS, 0.85 if checked else 0.75, "the user had it committed", checked)
    if any(_HANDED_OFF.search(act.tool) for act in acts[-2:]):
        return Came(Ending.PARTIAL, 0.6, "it was handed to somebody else")
    if checked:
        return Came(Ending.SUCCESS, 0.8, f"the last check ({check.family if check else ''}) passed", checked=True)
    return _by_the_rest(acts, mishaps, reply)


def _runs(act: Act) -> bool:
    """Does what was edited run? Words about it need no check: a changelog is written when all is green."""
    return not act.files or not all(_PROSE.search(path) for path in act.files)


def _by_the_rest(acts: Sequence[Act], mishaps: Sequence[Mishap], reply: str) -> Came:
    open_troubles = [each for each in mishaps if each.by is None]
    changed = any(act.doing in (Doing.EDIT, Doing.RUN, Doing.OTHER) for act in acts)
    if reply and _GAVE_UP.search(reply[:1500]) and not _CLAIMS.search(reply[:1500]):
        return Came(Ending.FAILURE if not changed else Ending.PARTIAL, 0.5, "the model said that it could not")
    if acts and open_troubles and acts[-1].failed:
        return Came(Ending.PARTIAL, 0.55, "the last action failed")
    if not reply:
        return Came(Ending.UNKNOWN, 0.3, "it broke off")
    if changed and _CLAIMS.search(reply[:1500]):
        return Came(Ending.SUCCESS, 0.55 if not open_troubles else 0.45, "the model said so, and no check speaks against it")
    return Came(Ending.UNKNOWN, 0.3, "nothing tells")


def _heard(text: str) -> Ending | None:
    """What the last words say, where they only say that."""
    head = text[:_HEARD]
    unhappy = _UNHAPPY.search(head)
    content = _CONTENT.search(head)
    if unhappy and (not content or unhappy.start() < content.start()):
        return Ending.PARTIAL
    if content and goes_on(text):
        return Ending.SUCCESS
    return None
