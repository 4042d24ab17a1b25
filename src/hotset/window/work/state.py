"""The state that an agent leaves to its successor, read from its conversation, and its text for a
model. Pure.

What was done, changed and tested comes from calls and their results; what was decided, from the
words of the user and the model; what is planned, also from the agent's notes. A sentence that
repeats what a tool brought is nobody's decision.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgspec import structs

from hotset.nouns.handoff import (
    STATES,
    AnyState,
    AppliedFix,
    CheckRun,
    FileChange,
    FoundIssue,
    HandoffBrief,
    HandoffReason,
    HandoffState,
    Items,
    RoutedTask,
    StateItem,
    StateSource,
    noted_fields,
)
from hotset.nouns.knobs import StateName
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Line
from hotset.text.clip import clip, clip_prose
from hotset.text.sentences import report_sentences
from hotset.window.arguments import ArgumentUse, arguments
from hotset.window.work.calls import Act, ActKind, decode_arguments, edit_lines
from hotset.window.work.decisions import SpokenText
from hotset.window.work.mishaps import Mishap, mishaps
from hotset.window.work.prompts import asks_back
from hotset.window.work.worklog import WorkReading, called, counted_line

_LONGEST, _LONGEST_NOTE = 300, 1200  # characters of an item
_MOST = 24  # items of a field, the latest
_MOST_TURNS = 8  # of a conversation's history
_MOST_NAMES = 12  # names in written text, of one field

_DELEGATES = frozenset(
    {"task", "agent", "subagent", "spawn_agent", "delegate", "dispatch_agent", "run_agent"}
)
_DELEGATED_TO = ("subagent_type", "agent", "agent_type", "agent_name", "name", "to")
_DELEGATED_WHAT = ("description", "task", "title", "prompt", "message", "instructions")

_PREFERS = re.compile(
    r"\b(?:i(?:'d| would)? (?:much |really |always )?prefer|i(?:'d| would) rather"
    r"|i (?:really )?(?:like|love|hate|dislike) (?!(?:it|that|this|them|how|what)\b(?! when))"
    r"|i want (?:\w+ ){0,2}(?:answers?|replies|explanations?|summar\w+|comments?)"
    r"|please (?:don't|do not|never|always|avoid|use|keep (?!going|on\b|at it))"
    r"|(?:you (?:should|must|can)|please) (?:always|never)|from now on|no (?:emojis?|comments))\b"
    r"|^(?:please )?(?:always|never (?!mind)|be (?:brief|concise|verbose|thorough)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?)/|(?:^|/)test_[^/]+$|_(?:test|spec)\.\w+$"
    r"|\.(?:test|spec)\.\w+$"
)
_TEST_NAME = re.compile(
    r"^\s*(?:async )?def (test_\w+)|^func (Test\w+)|^\s*(?:pub |async )*fn (\w*test\w*)\("
    r"|^\s*(?:it|test)(?:\.(?!todo)\w+)*\(\s*['\"`]([^'\"`\n]+)",
    re.MULTILINE,
)
_FAILING = re.compile(
    r"^(?:FAILED (\S+::\S+)|--- FAIL: (\S+)|\(fail\) (.+?)(?: \[[\d.]+ ?m?s\])?$"
    r"|not ok \d+ -? ?(.+)|\s*[\u2715\u00d7] (.+?)(?: \(\d+ ?m?s\))?$|test (\S+) \.\.\. FAILED)",
    re.MULTILINE,
)
_COMPONENT = re.compile(r"\.(?:tsx|jsx|vue|svelte|astro|html?)$")
_STYLE = re.compile(r"\.(?:css|scss|sass|less|styl)$|tailwind\.config|(?:^|/)theme\.\w+$")
_DESIGNED = re.compile(rf"{_COMPONENT.pattern}|{_STYLE.pattern}|\.(?:[cm]?[jt]s|json)$")
_TOKEN = re.compile(
    r"var\(\s*(--[a-z][\w-]+)|(?<![\w-])(--[a-z][\w-]+)(?=['\"]?\s*:)"
    r"|\.setProperty\(\s*['\"](--[a-z][\w-]+)"
)
_ACCESSIBLE = re.compile(r"(?<=[\s:])(aria-[a-z]+|alt|role|tabIndex|tabindex)(?==[\"'{])")
_COUNTS_FAILURES = re.compile(r"\b[1-9]\d* (?:fail|failed|failing|failures?)\b")
_STARTED = re.compile(
    r"\A\W*(?:the )?(?:async |background |sub)?(?:agent|task)\b[^\n]{0,60}"
    r"\b(?:launched|started|queued|spawned|running)\b|\brunning in (?:the )?background\b",
    re.IGNORECASE,
)
"""Of a delegation that is under way."""
_BROKE_OFF = re.compile(
    r"\A\W*(?:the )?(?:sub)?(?:agent|task|delegation)\b[^\n]{0,60}"
    r"\b(?:failed|errored|crashed|aborted|cancell?ed|interrupted|timed out)\b",
    re.IGNORECASE,
)
_TASK_ID = re.compile(r"\b(?:agent|task)[ _-]?id\W{1,4}([\w-]{4,})", re.IGNORECASE)
_STATUS = re.compile(r"<?status\W{1,4}(completed|failed|killed|stopped)\b", re.IGNORECASE)
_HEAD = 400  # characters of a result that say how a delegation goes


def build_state(
    kind: StateName,
    lines: Sequence[Line],
    turn_of: Callable[[Line], int],
    brief: HandoffBrief,
    *,
    index: int,
    reason: HandoffReason,
    now: float,
    topics: Sequence[str] = (),
) -> AnyState:
    """The state of this kind after these lines."""
    work = _Work(lines, WorkReading(lines), turn_of, brief)
    turns = [turn_of(line) for line in lines if line.role is Role.ASSISTANT]
    common: dict[str, Any] = {
        "index": index,
        "reason": reason,
        "time": now,
        "turns": (min(turns, default=1), max(turns, default=1)),
        "agent": brief.agent,
        "task_id": brief.task,
        "pipeline_id": brief.pipeline,
        "context_notes": tuple(
            StateItem(clip(text, _LONGEST), 0, StateSource.STORE) for text in brief.remembered
        ),
    }
    state = STATES[kind](**common, **_FILLED[kind](work, topics))
    noted = {
        field: _once((*getattr(state, field), *items)) for field, items in work.noted(kind).items()
    }
    return structs.replace(state, **noted)


def program_notes(state: AnyState | None) -> Items:
    """What the program said with this handoff, and with earlier ones."""
    notes = state.context_notes if state is not None else ()
    return tuple(each for each in notes if each.source is StateSource.PROGRAM)


def with_notes(state: AnyState, notes: Iterable[StateItem]) -> AnyState:
    """The state with these notes as well; of too many the oldest are left out."""
    short = [structs.replace(each, text=clip(each.text, _LONGEST_NOTE)) for each in notes]
    stored = [each for each in state.context_notes if each.source is StateSource.STORE]
    said = [each for each in state.context_notes if each.source is not StateSource.STORE]
    return structs.replace(state, context_notes=(*stored, *_latest((*said, *short))))


def state_lines(state: HandoffState, room: int) -> list[str]:
    """The state for a model, a line a field, in about `room` characters: of what does not fit the
    oldest items are left out. The user's first message stands in the window itself."""
    texts = {label: list(items) for label, items in _labelled(state) if items}
    while sum(len(each) + 2 for items in texts.values() for each in items) > room:
        longest = max(texts, key=lambda label: sum(map(len, texts[label])))
        if len(texts[longest]) == 1:
            if (short := clip(texts[longest][0], room // (2 * len(texts)))) == texts[longest][0]:
                break
            texts[longest] = [short]
        else:
            del texts[longest][0]
    return [f"{label}: {'; '.join(items)}" for label, items in texts.items()]


@dataclass(frozen=True)
class _Work:
    """A conversation with its calls, for the fields of a state."""

    lines: Sequence[Line]
    reading: WorkReading
    turn_of: Callable[[Line], int]
    brief: HandoffBrief

    def noted(self, kind: StateName) -> dict[str, Items]:
        """What the agent noted, by field."""
        known = noted_fields(kind)
        found: dict[str, list[StateItem]] = {}
        for note in self.brief.notes:
            for field, texts in note.fields.items():
                if field in known:
                    found.setdefault(field, []).extend(
                        StateItem(clip(text, _LONGEST_NOTE), note.turn, note.source)
                        for text in texts
                    )
        return {field: _latest(items) for field, items in found.items()}

    def first_prompt(self) -> str:
        """The user's first message, word for word."""
        for line in self.lines:
            if line.role is Role.USER and not line.answers and not line.aside:
                parts = [each.content for each in line.pieces if each.kind is Kind.PROMPT]
                if parts:
                    return b"\n".join(parts).decode("utf-8", "replace")
        return ""

    def prompts(self) -> Items:
        return tuple(
            StateItem(clip_prose(text, _LONGEST), self._turn(at), StateSource.USER)
            for at, text in self.reading.prompts()
        )

    def decisions(self) -> Items:
        """What the user and the model decided, in their words."""
        return _latest(map(self._item, self.reading.decided()))

    def _item(self, said: SpokenText) -> StateItem:
        source = StateSource.USER if said.is_user else StateSource.MODEL
        return StateItem(clip(said.text, _LONGEST), self._turn(said.at), source)

    @cached_property
    def plan(self) -> tuple[Items, Items]:
        """Items of the agent's plan that are done, and that are open."""
        items = self.reading.plan()
        calls = [act for act in self.reading.acts if act.doing is ActKind.PLAN]
        at = self.reading.places[calls[-1].place] if calls else len(self.lines) - 1
        reply = self.reading.last_reply()
        source = StateSource.CALL if calls else StateSource.MODEL

        def of(texts: Iterable[str]) -> Items:
            return _latest(
                StateItem(
                    clip(text, _LONGEST),
                    self._turn(len(self.lines) - 1 if text in reply else at),
                    StateSource.MODEL if text in reply else source,
                )
                for text in dict.fromkeys(texts)
            )

        return of(items.done), of(items.open)

    def changed(self) -> tuple[FileChange, ...]:
        """Files that were changed, and whose change stands."""
        return tuple(
            FileChange(
                each.path,
                "edited" if each.old else "written",
                each.times,
                clip(each.new, _LONGEST),
                self._turn(each.at),
            )
            for each in self.reading.files()
        )[-_MOST:]

    def checks(self) -> tuple[CheckRun, ...]:
        """The latest run of each check, where its outcome is known."""
        latest: dict[str, CheckRun] = {}
        for act in self.reading.acts:
            if act.doing is not ActKind.CHECK or not act.answered or act.verdict.open:
                continue
            if act.verdict.declined:
                continue
            if act.verdict.unknown:  # what it said before is not the latest any more
                latest.pop(clip(called(act), _LONGEST), None)
                continue
            text = self.reading.pages[act.result_place].text
            failing = tuple(
                clip(next(filter(None, found)), _LONGEST) for found in _FAILING.findall(text)
            )
            command = clip(called(act), _LONGEST)
            latest.pop(command, None)
            latest[command] = CheckRun(
                command,
                clip(counted_line(text) or act.verdict.message, _LONGEST),
                act.passed,
                self._turn_of_act(act),
                failing[:_MOST] if act.failed else (),
            )
        return tuple(latest.values())[-_MOST:]

    @cached_property
    def mishaps(self) -> Sequence[Mishap]:
        return mishaps(self.reading.acts)

    def issues(self, *, open_only: bool = False) -> tuple[FoundIssue, ...]:
        """Failures that calls reported; with `open_only` those that nothing resolved."""
        return tuple(
            FoundIssue(
                clip(called(each.failed), _LONGEST),
                each.failed.verdict.kind,
                clip(each.failed.verdict.message, _LONGEST),
                self._turn_of_act(each.failed),
            )
            for each in self.mishaps
            if not (open_only and each.by is not None)
        )[-_MOST:]

    def fixes(self) -> tuple[AppliedFix, ...]:
        return tuple(
            AppliedFix(
                clip(called(each.failed), _LONGEST),
                each.failed.verdict.kind,
                each.resolved,
                self._turn_of_act(each.by),
            )
            for each in self.mishaps
            if each.by is not None
        )[-_MOST:]

    def written(
        self, files: re.Pattern[str], names: re.Pattern[str], *, where: bool = True
    ) -> Items:
        """Names that edits wrote into such files and that still stand there, each once; with
        `where` beside the file."""
        found: dict[str, StateItem] = {}
        for change in self.reading.changes():
            if not files.search(change.path):
                continue
            here: dict[str, Act] = {}
            for act in change.edits:
                gone, came = self._sides(act)
                if act.made:
                    here.clear()
                for name in _names_in(names, gone):
                    here.pop(name, None)
                for name in _names_in(names, came):
                    here.setdefault(name, act)
            for name, act in here.items():
                item = f"{name} ({change.path})" if where else name
                found.setdefault(item, StateItem(item, self._turn_of_act(act), StateSource.CALL))
        return _latest(found.values())

    def _sides(self, act: Act) -> tuple[str, str]:
        """What an edit took away and what it wrote."""
        text = self.reading.pages[act.place].text
        gone, came = ([], []) if act.made else edit_lines(text)
        if gone or came:
            return "\n".join(gone), "\n".join(came)
        return _given(text, ArgumentUse.REPLACED), _given(text, ArgumentUse.WRITTEN)

    def routed(self) -> tuple[RoutedTask, ...]:
        """Work that was given to other agents; not what the user refused."""
        found: list[RoutedTask] = []
        for act in self.reading.acts:
            if act.tool.rpartition("__")[2].rpartition(".")[2].lower() not in _DELEGATES:
                continue
            if act.verdict.declined:
                continue
            given = decode_arguments(self.reading.pages[act.place].text)
            text = next((str(given[name]) for name in _DELEGATED_WHAT if given.get(name)), "")
            agent = next((str(given[name]) for name in _DELEGATED_TO if given.get(name)), "")
            found.append(
                RoutedTask(
                    clip_prose(text, _LONGEST),
                    clip(agent, 80),
                    self._status(act),
                    self._turn_of_act(act),
                )
            )
        return tuple(found[-_MOST:])

    def _status(self, act: Act) -> str:
        """How a delegation stands. One in the background ends with a later notice."""
        if not act.answered:
            return "active"
        result = self.reading.pages[act.result_place].text
        head = result[:_HEAD]
        if act.failed or _BROKE_OFF.search(head):
            return "failed"
        if not (act.verdict.open or _STARTED.search(head)):
            return "completed"
        task = _TASK_ID.search(result)
        for page in self.reading.pages[act.result_place + 1 :] if task else ():
            is_notice = page.kind is Kind.PROMPT or bool(page.call)
            if task and is_notice and task[1] in page.text and (told := _STATUS.search(page.text)):
                return "completed" if told[1].lower() == "completed" else "failed"
        return "active"

    def questions(self) -> Items:
        """What the last reply asks the user."""
        reply = self.reading.last_reply()
        if not reply or not asks_back(reply):
            return ()
        turn = self._turn(len(self.lines) - 1)
        asked = [each for each in report_sentences(reply) if each.endswith("?")]
        return tuple(
            StateItem(clip(each, _LONGEST), turn, StateSource.MODEL) for each in asked[-3:]
        )

    def preferences(self) -> Items:
        """The user's own sentences on how they want to be served."""
        return _latest(map(self._item, self.reading.said_by_user(_prefers)))

    def failing(self) -> Items:
        """Tests that failed in the latest run of their check, and passed in none since."""
        open_runs = {each.command for each in self.issues(open_only=True)}
        resolved = {each.command for each in self.issues()} - open_runs
        return tuple(
            StateItem(name, run.turn, StateSource.RESULT)
            for run in self.checks()
            if not run.passed and run.command not in resolved
            for name in run.failing or ((run.command,) if _counts_failures(run.outcome) else ())
        )

    def _turn_of_act(self, act: Act | None) -> int:
        return self._turn(self.reading.places[act.place]) if act is not None else 0

    def _turn(self, at: int) -> int:
        return self.turn_of(self.lines[max(0, at)])


def _engineer(work: _Work, _: Sequence[str]) -> dict[str, Any]:
    done, left = work.plan
    return {
        "original_prompt": work.first_prompt(),
        "accomplished": done,
        "files_changed": work.changed(),
        "remaining": left,
        "key_decisions": work.decisions(),
        "blockers_hit": work.issues(open_only=True),
        "test_results": work.checks(),
    }


def _designer(work: _Work, _: Sequence[str]) -> dict[str, Any]:
    done, left = work.plan
    changed = work.changed()
    return {
        "original_prompt": work.first_prompt(),
        "accomplished": done,
        "components_created": tuple(each for each in changed if _COMPONENT.search(each.path)),
        "styles_applied": tuple(each for each in changed if _STYLE.search(each.path)),
        "remaining": left,
        "design_decisions": work.decisions(),
        "design_tokens": work.written(_DESIGNED, _TOKEN, where=False)[-_MOST_NAMES:],
        "accessibility": work.written(_COMPONENT, _ACCESSIBLE)[-_MOST_NAMES:],
    }


def _inspector(work: _Work, _: Sequence[str]) -> dict[str, Any]:
    checks = work.checks()
    return {
        "original_prompt": work.first_prompt(),
        "checks_performed": checks,
        "issues_found": work.issues(),
        "fixes_applied": work.fixes(),
        "pending_issues": work.issues(open_only=True),
        "key_decisions": work.decisions(),
        "validation_state": {each.command: each.passed for each in checks},
    }


def _tester(work: _Work, _: Sequence[str]) -> dict[str, Any]:
    return {
        "original_prompt": work.first_prompt(),
        "tests_created": work.written(_TEST_FILE, _TEST_NAME),
        "test_results": work.checks(),
        "failing_tests": work.failing(),
        "key_decisions": work.decisions(),
    }


def _orchestrator(work: _Work, _: Sequence[str]) -> dict[str, Any]:
    done, left = work.plan
    routed = work.routed()
    count = len(done) + len(left)
    phase = "" if not count else "completing" if not left else "executing" if done else "planning"
    active = tuple(each for each in routed if each.status == "active")
    return {
        "session_id": work.brief.session,
        "original_goal": work.first_prompt(),
        "phase": phase,
        "progress": round(len(done) / count, 2) if count else 0.0,
        "pending_tasks": left,
        "active_pipelines": active,
        "completed_tasks": done,
        "delegated": tuple(each for each in routed if each.status != "active"),
        "agent_states": work.brief.others,
        "waiting_on": tuple(
            StateItem(f"{each.agent}: {each.text}", each.turn, StateSource.CALL) for each in active
        ),
        "key_decisions": work.decisions(),
        "blockers": work.issues(open_only=True),
    }


def _guide(work: _Work, topics: Sequence[str]) -> dict[str, Any]:
    prompts = work.prompts()
    routed = work.routed()
    counts = Counter(each.agent for each in routed if each.agent)
    return {
        "session_id": work.brief.session,
        "user_id": work.brief.user,
        "original_prompt": work.first_prompt(),
        "conversation_history": prompts[-_MOST_TURNS:],
        "current_intent": prompts[-1:],
        "active_topics": tuple(topics),
        "recent_routings": routed,
        "agent_affinities": {
            agent: round(many / counts.total(), 2) for agent, many in counts.items()
        },
        "pending_followups": work.questions(),
        "user_preferences": work.preferences(),
        "key_decisions": work.decisions(),
        "active_agents": tuple(dict.fromkeys(each.agent for each in work.brief.others)),
        "waiting_for": tuple(
            StateItem(f"{each.agent}: {each.text}", each.turn, StateSource.CALL)
            for each in routed
            if each.status == "active"
        ),
    }


_FILLED: dict[StateName, Callable[[_Work, Sequence[str]], dict[str, Any]]] = {
    "engineer": _engineer,
    "designer": _designer,
    "inspector": _inspector,
    "tester": _tester,
    "orchestrator": _orchestrator,
    "guide": _guide,
}


def _names_in(names: re.Pattern[str], text: str) -> Iterator[str]:
    for match in names.finditer(text):
        yield next((each for each in match.groups() if each), match[0])


def _given(call: str, use: ArgumentUse) -> str:
    found = list(arguments(call.encode()))
    if use is ArgumentUse.WRITTEN and not any(each.use is use for each in found):
        return "\n".join(each.text for each in found if "*** " in each.text)
    return "\n".join(each.text for each in found if each.use is use)


def _prefers(text: str) -> bool:
    return _PREFERS.search(text) is not None


def _counts_failures(outcome: str) -> bool:
    return _COUNTS_FAILURES.search(outcome) is not None


def _latest(items: Iterable[StateItem]) -> Items:
    return _once(items)[-_MOST:]


def _once(items: Iterable[StateItem]) -> Items:
    """Each text once, at its first place."""
    found: dict[str, StateItem] = {}
    for each in items:
        found.setdefault(each.text, each)
    return tuple(found.values())


_LABELS = {
    "accomplished": "Done",
    "completed_tasks": "Done",
    "files_changed": "Changed",
    "components_created": "Components",
    "styles_applied": "Styles",
    "test_results": "Checks",
    "checks_performed": "Checks",
    "tests_created": "Tests written",
    "failing_tests": "Failing",
    "remaining": "Open",
    "pending_tasks": "Open",
    "blockers_hit": "Unresolved",
    "blockers": "Unresolved",
    "pending_issues": "Unresolved",
    "fixes_applied": "Fixed",
    "key_decisions": "Decided",
    "design_decisions": "Decided",
    "design_tokens": "Design tokens",
    "blockers_noted": "Blocked (noted)",
    "pending_noted": "Issues (noted)",
    "coverage_gaps": "Untested (noted)",
    "context_notes": "Notes",
}
"""What a model reads; other fields have their own name. Issues that are resolved stand as
fixed."""

_UNSHOWN = frozenset(
    {
        *("index", "reason", "time", "turns", "agent", "references", "session_id", "user_id"),
        *("original_prompt", "original_goal", "issues_found", "validation_state"),
        *("conversation_history", "current_intent", "active_agents"),
    }
)
"""Fields that the window says elsewhere: the user's words stand there, and the reference."""


def _labelled(state: HandoffState) -> Iterator[tuple[str, list[str]]]:
    for field in structs.fields(state):
        value = getattr(state, field.name)
        if field.name in _UNSHOWN or not value:
            continue
        label = _LABELS.get(field.name, field.name.replace("_", " ").capitalize())
        if isinstance(value, dict):
            yield label, [f"{key} {each}" for key, each in value.items()]
        elif isinstance(value, tuple):
            yield label, [_shown(each) for each in value]
        else:
            yield label, [str(value)]


def _shown(item: object) -> str:  # noqa: PLR0911 - one case a type
    """An item in one line, with its turn."""
    match item:
        case StateItem(text, turn):
            return f"{' '.join(text.split())} (turn {turn})" if turn else " ".join(text.split())
        case FileChange(path, action, times, _, turn):
            often = f" {times} x" if times > 1 else ""
            return f"{path} {action}{often} (turn {turn})"
        case CheckRun(command, outcome, passed, turn, failing):
            names = f": {', '.join(failing[:3])}" if failing else ""
            told = f", {outcome}" if outcome else ""
            return f"`{command}` {'passed' if passed else 'failed'}{told}{names} (turn {turn})"
        case FoundIssue(command, kind, _, turn):
            return f"`{command}` failed with {kind} (turn {turn})"
        case AppliedFix(command, kind, how, turn):
            return f"`{command}` {kind}: {', '.join(how) or 'works now'} (turn {turn})"
        case RoutedTask(text, agent, status, turn):
            return f"{agent or 'agent'} {status}: {text} (turn {turn})"
        case _:
            return str(getattr(item, "agent", item))
