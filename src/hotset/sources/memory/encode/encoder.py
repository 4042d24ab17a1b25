"""Encode a session, or text worded by a person or a model, as memories. Rules only; pure and
deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.memory import (
    DETAILS,
    Action,
    Checkpoint,
    Detail,
    Ending,
    Episode,
    Fact,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Pitfall,
    Procedure,
    Provenance,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.page import Kind, PageId, SessionId
from hotset.sealing import seal
from hotset.sources.memory.encode.facts import FactMatch, agreed_in, facts_in, subject_of
from hotset.sources.memory.encode.outcome import (
    Work,
    WorkEnd,
    constraints_in,
    goal_of,
    left_by,
    own_reply,
    text_of,
    title_of,
    title_of_work,
    topics_of,
)
from hotset.sources.memory.encode.pitfalls import Lesson, LessonContext, lesson, trouble_of
from hotset.sources.memory.encode.procedures import Recipe, recipes, work_root
from hotset.sources.memory.encode.session import (
    GoalSpan,
    Material,
    Utterance,
    acts_of,
    goal_spans,
    own_words,
)
from hotset.sources.memory.encode.speakers import (
    OutsideWords,
    is_dangerous,
    is_suspect,
    outside_words,
    repeats,
)
from hotset.sources.memory.encode.statements import asks_for_the_past, is_question
from hotset.sources.memory.kinds import ADVICE_KINDS, RULES, memory_id
from hotset.sources.memory.tasks import detect_task
from hotset.sources.memory.time_parser import time_question
from hotset.text.characters import squeeze
from hotset.text.clip import clip_prose
from hotset.text.sentences import sentences
from hotset.text.terms import topic_words
from hotset.text.words import once
from hotset.tokens import count
from hotset.window.work.calls import Act, ActKind
from hotset.window.work.endings import (
    UserPrompt,
    WorkOutcome,
    is_decision,
    phase_of,
    work_outcome,
)
from hotset.window.work.file_changes import changed_files
from hotset.window.work.mishaps import mishaps

_VOUCHED = frozenset({Trust.PERSON, Trust.OUTCOME})
_CONFIDENCE = {Trust.PERSON: 0.9, Trust.OUTCOME: 0.8, Trust.AGENT: 0.5, Trust.OUTSIDE: 0.2}
_LONGEST_TITLE = 90


def standing_of(kind: MemoryKind, trust: Trust) -> Standing:
    """Advice is active only if an outcome or a person vouches for it; outside text is always a
    candidate."""
    if trust is Trust.OUTSIDE or (kind in ADVICE_KINDS and trust not in _VOUCHED):
        return Standing.CANDIDATE
    return Standing.ACTIVE


def worded_memory(
    kind: MemoryKind,
    text: str,
    *,
    title: str = "",
    trust: Trust,
    source: Provenance,
    created: float,
) -> MemoryRecord:
    """The memory that holds this text. Its id depends only on the text and its source."""
    sealed_text = seal(text.strip()).text
    sealed_title = seal(title.strip()).text or clip_prose(
        next(iter(sentences(sealed_text)), sealed_text), _LONGEST_TITLE
    )
    standing = standing_of(kind, trust)
    if trust is not Trust.PERSON and any(
        is_dangerous(each) or is_suspect(each) for each in (sealed_text, sealed_title)
    ):
        standing = Standing.CANDIDATE
    key = "\0".join((source.by, source.session or "", source.agent, sealed_title, sealed_text))
    return MemoryRecord(
        id=memory_id(kind, key, created),
        kind=kind,
        title=clip_prose(sealed_title, _LONGEST_TITLE),
        text=sealed_text,
        created=created,
        source=source,
        detail=_detail(kind, sealed_text, sealed_title),
        topics=topics_of(f"{sealed_title} {sealed_text}"),
        confidence=_CONFIDENCE[trust],
        trust=trust,
        standing=standing,
        tokens=count(sealed_text),
        time=created,
    )


def _detail(kind: MemoryKind, text: str, title: str) -> Detail:
    made: dict[type | None, Detail] = {
        Fact: Fact(subject_of(text)),
        Procedure: Procedure(title, tuple(sentences(text))),
        Pitfall: Pitfall(text),
        Checkpoint: Checkpoint(doing=text),
    }
    return made.get(DETAILS[kind])


_ONE_LINE = 200  # characters of a reply that is gone with its question
_MOST_ACTIONS = 40
_MOST_TROUBLES = 12
_MOST_FILES = 20
_MOST_DECISIONS = 4
_MOST_PAGES = 40
_MOST_WRONG = 3  # pitfalls that a procedure is linked to
_MOST_PLACES = 24
_CHARS_PER_TOKEN = 4
_CONFIRMED, _ONCE, _WAITING = 0.8, 0.5, 0.4
"""Confidence of a pitfall, of a procedure that worked once, and of unconfirmed advice."""


@dataclass(frozen=True, slots=True)
class WorkFinding:
    """What a piece of work that succeeded decided and found. Nothing in it is outside text."""

    text: str
    after: PageId
    """The first page of that work."""
    time: float


@dataclass(frozen=True, slots=True)
class SessionMemories:
    memories: tuple[MemoryRecord, ...] = ()
    links: tuple[MemoryLink, ...] = ()
    findings: tuple[WorkFinding, ...] = ()


def encode_session(material: Material) -> SessionMemories:
    """All memories of a session. Encoding a longer version of it yields the same ones plus the new
    ones."""
    line = material.line
    own, others = session_words(material)
    memories: dict[MemoryId, MemoryRecord] = {}
    links: list[MemoryLink] = []
    findings: list[WorkFinding] = []
    part: _Part | None = None
    for span in goal_spans(line, own):
        part = _Part(material, span, line[span.first : span.end], others)
        episode = part.episode()
        lessons, recipes = list(part.lessons()), list(part.recipes())
        findings += part.findings(lessons)
        derived = [*part.facts(), *lessons, *recipes]
        if episode is not None:
            memories.setdefault(episode.id, episode)
            links += [
                MemoryLink(each.id, episode.id, Relation.DERIVED_FROM, each.created)
                for each in derived
                if each.id not in memories
            ]
        # Link the pitfalls of a span to the procedures it led to.
        links += [
            MemoryLink(way.id, wrong.id, Relation.RELATED_TO, way.created)
            for way in recipes
            for wrong in lessons[:_MOST_WRONG]
        ]
        for each in derived:
            memories.setdefault(each.id, each)
    if part is not None and (ledger := part.ledger()) is not None:
        memories[ledger.id] = ledger
    return SessionMemories(tuple(memories.values()), tuple(links), tuple(findings))


@dataclass(frozen=True, slots=True)
class GoalWork:
    """What was asked and done for one goal of a session, and how it ended."""

    prompts: tuple[UserPrompt, ...]
    acts: tuple[Act, ...]
    outcome: WorkOutcome


def judge_session(material: Material) -> tuple[GoalWork, ...]:
    """The work of a session, goal by goal."""
    own, others = session_words(material)
    parts = (
        _Part(material, span, material.line[span.first : span.end], others)
        for span in goal_spans(material.line, own)
    )
    return tuple(part.work() for part in parts)


def session_words(material: Material) -> tuple[frozenset[int], OutsideWords]:
    """The places of prompts that are proven to be a person's own words, and all outside text."""
    line = material.line
    formed = own_words(line)
    others = outside_words(
        (place, _words_of_others(utterance, own=place in formed))
        for place, utterance in enumerate(line)
    )
    return frozenset(
        place for place in formed if not repeats(line[place].text, place, others)
    ), others


def ledger_id(session: SessionId) -> MemoryId:
    """The id of the ledger that rules keep for a session."""
    return memory_id(MemoryKind.LEDGER, f"left by {session}")


class _Part:
    """One goal span of the session and the memories made from it."""

    def __init__(
        self, material: Material, span: GoalSpan, line: Sequence[Utterance], others: OutsideWords
    ) -> None:
        self._material = material
        self._span = span
        self._line = line
        self._others = others
        self._acts = acts_of(line, span.first)
        self._mishaps = mishaps(self._acts)
        self._title = title_of(span.goal.text)
        self._shared_title = self._title if span.goal.person else title_of_work(self._acts)
        self._facts = list(self._find_facts())
        self._outcome = self._judge_outcome()

    def work(self) -> GoalWork:
        return GoalWork(self._span.prompts, tuple(self._acts), self._outcome)

    def episode(self) -> MemoryRecord | None:
        """None if the span contains no action and no exchange about a topic."""
        done = [act for act in self._acts if act.doing is not ActKind.PLAN]
        has_reply = any(utterance.page.kind is Kind.RESPONSE for utterance in self._line)
        goal = goal_of(self._span.goal.text)
        if not goal or not (done or (has_reply and next(topic_words(self._span.goal.text), None))):
            return None
        outcome, acted = self._outcome, self._acts
        files = once(path for act in done for path in act.files)
        decisions, answer = self._decisions(), self._last_words()
        if not done and self._is_passing_question(decisions):
            return None
        typed = [each.text for each in self._span.prompts if each.person and not each.handed]
        constraints = constraints_in(typed, goal)
        phase = phase_of(acted)
        text = text_of(Work(goal, done, self._mishaps, outcome, answer, decisions, constraints))
        detail = Episode(
            goal=goal,
            phase=phase,
            turns=(self._line[0].page.turn, max(utterance.page.turn for utterance in self._line)),
            branch=self._line[-1].page.branch,
            seconds=max(0.0, self._line[-1].page.time - self._line[0].page.time),
            actions=tuple(self._action(act) for act in _select_actions(done)),
            more_actions=max(0, len(done) - _MOST_ACTIONS),
            troubles=tuple(trouble_of(each) for each in self._mishaps[:_MOST_TROUBLES]),
            files=files[:_MOST_FILES],
            artifacts=changed_files(done)[:_MOST_FILES],
            decisions=decisions,
            constraints=constraints,
            answer=answer,
            tokens=sum(utterance.page.size for utterance in self._line) // _CHARS_PER_TOKEN,
            quoted=not self._span.goal.person,
        )
        created = self._line[0].page.time
        start = self._line[0].page.id
        return MemoryRecord(
            id=memory_id(MemoryKind.EPISODE, f"{self._material.session.id}\0{start}", created),
            kind=MemoryKind.EPISODE,
            title=self._title,
            text=text,
            created=created,
            source=self._source(
                self._source_pages(),
                once((place for act in acted for place in _places(act)), _MOST_PLACES),
            ),
            detail=detail,
            topics=topics_of(
                f"{self._title}\n{self._span.goal.text}", detail.artifacts or files[:_MOST_FILES]
            ),
            task=detect_task(
                goal, [f"{act.tool} {act.command or act.target}" for act in done], phase
            ).task,
            ending=outcome.ending,
            confidence=outcome.confidence,
            trust=Trust.OUTCOME if outcome.ending is Ending.SUCCESS else Trust.AGENT,
            tokens=count(text),
            time=self._material.now,
        )

    def _is_passing_question(self, decisions: Sequence[str]) -> bool:
        """True if nothing but a question was asked, and the reply is a line or tells the past: a
        memory of it would be found in place of what answers it."""
        asked = [prompt.text for prompt in self._span.prompts]
        if decisions or self._facts or not all(map(is_question, asked)):
            return False
        replies = [each.text for each in self._line if each.page.kind is Kind.RESPONSE]
        return sum(map(len, replies)) <= _ONE_LINE * len(replies) or any(
            asks_for_the_past(each) or time_question(each, self._material.now) is not None
            for each in asked
        )

    def findings(self, lessons: Sequence[MemoryRecord]) -> Iterator[WorkFinding]:
        """At most one: the user's decisions and those they agreed to, confirmed lessons, and the
        files that were changed. The model's own account may repeat what others wrote: it is left
        out."""
        if self._outcome.ending is not Ending.SUCCESS:
            return
        learnt = once(
            (
                *(f"Decided: {text}" for text in self._decisions()),
                *(f"Learned: {each.text}" for each in lessons if each.trust is not Trust.OUTSIDE),
            )
        )
        if learnt:
            changed = changed_files(self._acts)[:_MOST_FILES]
            files = (f"Changed: {', '.join(changed)}",) if changed else ()
            text = "\n".join((self._shared_title, *learnt, *files))
            yield WorkFinding(text, self._line[0].page.id, self._line[-1].page.time)

    def facts(self) -> Iterator[MemoryRecord]:
        for utterance, match in self._facts:
            key = f"{self._material.session.id}\0{utterance.page.id}\0{match.text}"
            yield MemoryRecord(
                id=memory_id(MemoryKind.FACT, key),
                kind=MemoryKind.FACT,
                title=clip_prose(match.text, 90),
                text=match.text,
                created=utterance.page.time,
                source=self._source((utterance.page.id,), ()),
                detail=Fact(match.subject),
                topics=topics_of(match.text),
                confidence=match.confidence,
                trust=match.trust,
                standing=standing_of(MemoryKind.FACT, match.trust),
                tokens=count(match.text),
                time=self._material.now,
                why="amends what held before" if match.amends else "",
            )

    def lessons(self) -> Iterator[MemoryRecord]:
        made = once(path for act in self._acts if act.made for path in act.files)
        context = LessonContext(made, self._others, work_root(self._acts), self._call_text)
        for mishap in self._mishaps:
            pitfall = lesson(mishap, context)
            if pitfall is not None:
                yield self._advice(MemoryKind.PITFALL, pitfall, mishap.failed)

    def recipes(self) -> Iterator[MemoryRecord]:
        for made in recipes(self._shared_title, self._acts, self._outcome, self._others):
            yield self._advice(MemoryKind.PROCEDURE, made, made.acts[-1])

    def ledger(self) -> MemoryRecord | None:
        """The state of unfinished work at the end of the session. A resumed session makes a new
        version."""
        end, goal = self._span.end, self._span.goal.text
        plans = {act.place: self._call_text(act) for act in self._acts if act.doing is ActKind.PLAN}
        prompts = self._span.prompts
        last = prompts[-1].text if len(prompts) > 1 and prompts[-1].person else ""
        reply = self._reply()[1]
        left = left_by(
            WorkEnd(
                self._shared_title,
                self._acts,
                self._mishaps,
                self._outcome,
                reply,
                last,
                plans,
                end,
            ),
            self._others,
        )
        if left is None:
            return None
        return MemoryRecord(
            id=ledger_id(self._material.session.id),
            kind=MemoryKind.LEDGER,
            title=left.title,
            text=left.text,
            created=self._line[-1].page.time,
            source=self._source(self._source_pages(), left.files),
            detail=left.checkpoint,
            topics=topics_of(f"{self._title}\n{goal}", left.files),
            task=detect_task(self._title).task,
            ending=self._outcome.ending,
            confidence=self._outcome.confidence,
            trust=Trust.AGENT,
            standing=standing_of(MemoryKind.LEDGER, Trust.AGENT),
            tokens=count(left.text),
            time=self._material.now,
        )

    def _decisions(self) -> tuple[str, ...]:
        return once(
            (
                match.text
                for _, match in self._facts
                if match.trust is not Trust.OUTSIDE
                and (match.form in _DECISIONS or is_decision(match.text))
            ),
            _MOST_DECISIONS,
        )

    def _call_text(self, act: Act) -> str:
        return self._line[act.place - self._span.first].text

    def _advice(self, kind: MemoryKind, made: Lesson | Recipe, at: Act) -> MemoryRecord:
        """Confirmed advice is shared by all sessions that reach it; unconfirmed advice belongs to
        one session."""
        trust = Trust.OUTCOME if made.confirmed else Trust.OUTSIDE
        key = made.key if made.confirmed else f"{self._material.session.id}\0{at.page}\0{made.text}"
        sure = (_CONFIRMED if isinstance(made, Lesson) else _ONCE) if made.confirmed else _WAITING
        pages = once(
            (page for act in made.acts for page in (act.page, act.result) if page), _MOST_PAGES
        )
        return MemoryRecord(
            id=memory_id(kind, key),
            kind=kind,
            title=made.title,
            text=made.text,
            created=at.time,
            source=self._source(
                tuple(PageId(page) for page in pages),
                once(place for act in made.acts for place in _places(act)),
            ),
            detail=made.pitfall if isinstance(made, Lesson) else made.procedure,
            topics=topics_of(made.title, once(path for act in made.acts for path in act.files)),
            task=detect_task(self._title).task,
            ending=Ending.SUCCESS,
            confidence=sure,
            trust=trust,
            standing=standing_of(kind, trust),
            tokens=count(made.text),
            time=self._material.now,
        )

    def _judge_outcome(self) -> WorkOutcome:
        span, line = self._span, self._line
        turns = {utterance.page.turn for utterance in line}
        reported = {
            turn: ending for turn, ending in self._material.endings.items() if turn in turns
        }
        last_work = max(
            (place for place, utterance in enumerate(line, span.first) if _is_work(utterance)),
            default=-1,
        )
        stopped = bool(span.stopped) and span.stopped[-1] > max(last_work, span.prompts[-1].place)
        return work_outcome(
            span.prompts,
            self._acts,
            self._mishaps,
            self._reply()[1],
            stopped=stopped,
            reported=reported,
        )

    def _reply(self) -> tuple[int, str]:
        """The model's last reply and its place; (-1, "") if tool calls follow it."""
        for place in range(len(self._line) - 1, -1, -1):
            utterance = self._line[place]
            if utterance.page.kind is Kind.RESPONSE and utterance.text.strip():
                return place + self._span.first, utterance.text
            if utterance.page.kind.family is Kind.TOOL_CALL:
                break
        return -1, ""

    def _last_words(self) -> str:
        """The key sentence of the reply that ended the most work; later replies are mostly
        pleasantries."""
        best, calls = (-1, -1, ""), 0
        for place, utterance in enumerate(self._line, self._span.first):
            if utterance.page.kind is Kind.PROMPT:
                calls = 0
            elif utterance.page.kind.family is Kind.TOOL_CALL:
                calls += 1
            elif (
                utterance.page.kind is Kind.RESPONSE and utterance.text.strip() and calls >= best[0]
            ):
                best = (calls, place, utterance.text)
        return own_reply(best[2], best[1], self._others)

    def _find_facts(self) -> Iterator[tuple[Utterance, FactMatch]]:
        """Facts the user stated, and facts of the model that the user agreed to; each once."""
        seen: set[str] = set()
        first = self._span.first
        prompts = {prompt.place - first: prompt for prompt in self._span.prompts}
        order = sorted(prompts)
        own = {place: prompt.text if prompt.person else "" for place, prompt in prompts.items()}
        for place, utterance in enumerate(self._line):
            if place in prompts:
                prompt = prompts[place]
                trust = Trust.PERSON if prompt.person else Trust.OUTSIDE
                matches = (
                    facts_in(prompt.text, place + first, self._others, trust)
                    if not prompt.handed
                    else iter(())
                )
            elif utterance.page.kind is Kind.RESPONSE:
                before = self._prompt_before(place, own)
                after = next((own[at] for at in order if at > place), "")
                matches = agreed_in(utterance.text, before, after, place + first, self._others)
            else:
                continue
            for each in matches:
                if each.text not in seen:
                    seen.add(each.text)
                    yield utterance, each

    def _prompt_before(self, place: int, own: Mapping[int, str]) -> str:
        """The user's own words in the last user message before a reply; empty if it has none."""
        prompts = [at for at in range(place) if self._line[at].page.kind is Kind.PROMPT]
        message = [
            at for at in prompts if self._line[at].page.chain == self._line[prompts[-1]].page.chain
        ]
        return "\n".join(own[at] for at in message if own.get(at))

    def _source_pages(self) -> tuple[PageId, ...]:
        """The source pages of an episode, at most 40: the conversation first, then the actions."""
        spoken = [
            utterance.page.id
            for utterance in self._line
            if utterance.page.kind in (Kind.PROMPT, Kind.RESPONSE)
        ]
        done = [act.page for act in self._acts if act.doing is not ActKind.READ]
        return tuple(
            PageId(page)
            for page in once((*spoken[:1], *spoken[-2:], *spoken[1:-2], *done), _MOST_PAGES)
        )

    def _action(self, act: Act) -> Action:
        return Action(
            max(0.0, act.time - self._line[0].page.time), act.tool, act.target, act.failed
        )

    def _source(self, pages: tuple[PageId, ...], places: tuple[str, ...]) -> Provenance:
        return Provenance(
            RULES, self._material.session.id, self._material.session.agent, pages, places
        )


def _words_of_others(utterance: Utterance, *, own: bool) -> bytes:
    """Searchable text not proven to be the user's: a tool result, or a prompt that may quote
    one."""
    if utterance.page.kind is Kind.PROMPT and not own and not utterance.outside:
        return squeeze(utterance.text.encode("utf-8", "replace"))
    return utterance.outside


_DECISIONS = frozenset({"decided", "agreed", "amended"})


def _select_actions(done: Sequence[Act]) -> Sequence[Act]:
    """At most 40 actions in order of work; reads are dropped first."""
    if len(done) <= _MOST_ACTIONS:
        return done
    changes = [act for act in done if act.doing is not ActKind.READ or act.failed]
    chosen = (
        changes
        if len(changes) <= _MOST_ACTIONS
        else [*changes[: _MOST_ACTIONS // 2], *changes[-_MOST_ACTIONS // 2 :]]
    )
    left = _MOST_ACTIONS - len(chosen)
    rest = [act for act in done if act.doing is ActKind.READ and not act.failed][:left]
    return sorted((*chosen, *rest), key=lambda act: act.place)


def _is_work(utterance: Utterance) -> bool:
    return utterance.page.kind is Kind.RESPONSE or utterance.page.kind.family in (
        Kind.TOOL_CALL,
        Kind.TOOL_RESULT,
    )


def _places(act: Act) -> Iterator[str]:
    """What `rollback` identifies an action by: the tool, and the file or address."""
    yield act.tool
    yield from act.files
    if "://" in act.target:
        yield act.target.split()[0]
