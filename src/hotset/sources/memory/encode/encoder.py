"""Memories from a session, by rules alone, and from what a person or a model put into words. Pure
and deterministic."""

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
from hotset.sources.memory.encode.calls import Act, ActKind, acts
from hotset.sources.memory.encode.facts import FactMatch, agreed_in, facts_in, subject_of
from hotset.sources.memory.encode.outcome import (
    Work,
    WorkEnd,
    WorkOutcome,
    changed_files,
    goal_of,
    is_decision,
    left_by,
    own_reply,
    phase_of,
    text_of,
    title_of,
    title_of_work,
    topics_of,
    work_outcome,
)
from hotset.sources.memory.encode.pitfalls import Lesson, LessonContext, lesson, mishaps
from hotset.sources.memory.encode.procedures import Recipe, recipes, work_root
from hotset.sources.memory.encode.session import (
    GoalSpan,
    Material,
    Utterance,
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
from hotset.sources.memory.kinds import ADVICE_KINDS, RULES, memory_id
from hotset.sources.memory.tasks import detect_task
from hotset.text.characters import squeeze
from hotset.text.clip import clip_prose
from hotset.text.sentences import sentences
from hotset.text.terms import topic_words
from hotset.text.words import once
from hotset.tokens import count

_VOUCHED = frozenset({Trust.PERSON, Trust.OUTCOME})
_CONFIDENCE = {Trust.PERSON: 0.9, Trust.OUTCOME: 0.8, Trust.AGENT: 0.5, Trust.OUTSIDE: 0.2}
_LONGEST_TITLE = 90


def standing_of(kind: MemoryKind, trust: Trust) -> Standing:
    """Advice stands only where an outcome or a person vouches for it; text of others waits,
    whatever it is."""
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
    """What somebody put into words. The same words from the same place are the same memory."""
    told = seal(text.strip()).text
    named = seal(title.strip()).text or clip_prose(
        next(iter(sentences(told)), told), _LONGEST_TITLE
    )
    standing = standing_of(kind, trust)
    if trust is not Trust.PERSON and any(
        is_dangerous(each) or is_suspect(each) for each in (told, named)
    ):
        standing = Standing.CANDIDATE
    key = "\0".join((source.by, source.session or "", source.agent, named, told))
    return MemoryRecord(
        id=memory_id(kind, key, created),
        kind=kind,
        title=clip_prose(named, _LONGEST_TITLE),
        text=told,
        created=created,
        source=source,
        detail=_detail(kind, told, named),
        topics=topics_of(f"{named} {told}"),
        confidence=_CONFIDENCE[trust],
        trust=trust,
        standing=standing,
        tokens=count(told),
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


_MOST_ACTIONS = 40
_MOST_TROUBLES = 12
_MOST_FILES = 20
_MOST_DECISIONS = 4
_MOST_PAGES = 40
_MOST_WRONG = 3  # pitfalls that a procedure is linked to
_MOST_PLACES = 24
_CHARS_PER_TOKEN = 4
_CONFIRMED, _ONCE, _WAITING = (
    0.8,
    0.5,
    0.4,
)  # of a pitfall; of a procedure that worked once; of what waits for a person


@dataclass(frozen=True, slots=True)
class SessionMemories:
    memories: tuple[MemoryRecord, ...] = ()
    links: tuple[MemoryLink, ...] = ()


def encode_session(material: Material) -> SessionMemories:
    """All memories of a session. Of a longer line of it, the same ones again, and what came
    since."""
    line = material.line
    formed = own_words(line)
    others = outside_words(
        (place, _words_of_others(said, own=place in formed)) for place, said in enumerate(line)
    )
    own = frozenset(place for place in formed if not repeats(line[place].text, place, others))
    memories: dict[MemoryId, MemoryRecord] = {}
    links: list[MemoryLink] = []
    part: _Part | None = None
    for stretch in goal_spans(line, own):
        part = _Part(material, stretch, line[stretch.first : stretch.end], others)
        episode = part.episode()
        lessons, recipes = list(part.lessons()), list(part.recipes())
        derived = [*part.facts(), *lessons, *recipes]
        if episode is not None:
            memories.setdefault(episode.id, episode)
            links += [
                MemoryLink(each.id, episode.id, Relation.DERIVED_FROM, each.created)
                for each in derived
                if each.id not in memories
            ]
        # What went wrong on the way belongs to the steps that led there.
        links += [
            MemoryLink(way.id, wrong.id, Relation.RELATED_TO, way.created)
            for way in recipes
            for wrong in lessons[:_MOST_WRONG]
        ]
        for each in derived:
            memories.setdefault(each.id, each)
    if part is not None and (ledger := part.ledger()) is not None:
        memories[ledger.id] = ledger
    return SessionMemories(tuple(memories.values()), tuple(links))


def ledger_id(session: SessionId) -> MemoryId:
    """Of the ledger that rules keep of a session."""
    return memory_id(MemoryKind.LEDGER, f"left by {session}")


class _Part:
    """One stretch of the line, and what is made of it."""

    def __init__(
        self, material: Material, stretch: GoalSpan, line: Sequence[Utterance], others: OutsideWords
    ) -> None:
        self._material = material
        self._stretch = stretch
        self._line = line
        self._others = others
        self._acts = acts(line, stretch.first)
        self._mishaps = mishaps(self._acts)
        self._title = title_of(stretch.goal.text)
        self._told_title = self._title if stretch.goal.person else title_of_work(self._acts)
        self._facts = list(self._found())
        self._came = self._outcome()

    def episode(self) -> MemoryRecord | None:
        """None where nothing was done or said about anything."""
        done = [act for act in self._acts if act.doing is not ActKind.PLAN]
        replied = any(said.page.kind is Kind.RESPONSE for said in self._line)
        goal = goal_of(self._stretch.goal.text)
        if not goal or not (done or (replied and next(topic_words(self._stretch.goal.text), None))):
            return None
        came, acted = self._came, self._acts
        files = once(path for act in done for path in act.files)
        decisions = once(
            (
                found.text
                for _, found in self._facts
                if found.trust is not Trust.OUTSIDE
                and (found.form in _DECISIONS or is_decision(found.text))
            ),
            _MOST_DECISIONS,
        )
        phase = phase_of(acted)
        text = text_of(Work(goal, done, self._mishaps, came, self._last_words(), decisions))
        detail = Episode(
            goal=goal,
            phase=phase,
            turns=(self._line[0].page.turn, max(said.page.turn for said in self._line)),
            branch=self._line[-1].page.branch,
            seconds=max(0.0, self._line[-1].page.time - self._line[0].page.time),
            actions=tuple(self._action(act) for act in _shown(done)),
            more_actions=max(0, len(done) - _MOST_ACTIONS),
            troubles=tuple(each.noun for each in self._mishaps[:_MOST_TROUBLES]),
            files=files[:_MOST_FILES],
            artifacts=changed_files(done)[:_MOST_FILES],
            decisions=decisions,
            tokens=sum(said.page.size for said in self._line) // _CHARS_PER_TOKEN,
            quoted=not self._stretch.goal.person,
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
                self._told_pages(),
                once((place for act in acted for place in _places(act)), _MOST_PLACES),
            ),
            detail=detail,
            topics=topics_of(
                f"{self._title}\n{self._stretch.goal.text}", detail.artifacts or files[:_MOST_FILES]
            ),
            task=detect_task(
                goal, [f"{act.tool} {act.command or act.target}" for act in done], phase
            ).task,
            ending=came.ending,
            confidence=came.confidence,
            trust=Trust.OUTCOME if came.ending is Ending.SUCCESS else Trust.AGENT,
            tokens=count(text),
            time=self._material.now,
        )

    def facts(self) -> Iterator[MemoryRecord]:
        for said, found in self._facts:
            key = f"{self._material.session.id}\0{said.page.id}\0{found.text}"
            yield MemoryRecord(
                id=memory_id(MemoryKind.FACT, key),
                kind=MemoryKind.FACT,
                title=clip_prose(found.text, 90),
                text=found.text,
                created=said.page.time,
                source=self._source((said.page.id,), ()),
                detail=Fact(found.subject),
                topics=topics_of(found.text),
                confidence=found.confidence,
                trust=found.trust,
                standing=standing_of(MemoryKind.FACT, found.trust),
                tokens=count(found.text),
                time=self._material.now,
                why="amends what held before" if found.amends else "",
            )

    def lessons(self) -> Iterator[MemoryRecord]:
        made = once(path for act in self._acts if act.made for path in act.files)
        around = LessonContext(made, self._others, work_root(self._acts), self._called)
        for mishap in self._mishaps:
            learnt = lesson(mishap, around)
            if learnt is not None:
                yield self._advice(MemoryKind.PITFALL, learnt, mishap.failed)

    def recipes(self) -> Iterator[MemoryRecord]:
        for made in recipes(self._told_title, self._acts, self._came, self._others):
            yield self._advice(MemoryKind.PROCEDURE, made, made.acts[-1])

    def ledger(self) -> MemoryRecord | None:
        """Where the work stands at the end of the session, if it is not done. When the session goes
        on, it is another version."""
        end, goal = self._stretch.end, self._stretch.goal.text
        plans = {act.place: self._called(act) for act in self._acts if act.doing is ActKind.PLAN}
        prompts = self._stretch.prompts
        last = prompts[-1].text if len(prompts) > 1 and prompts[-1].person else ""
        reply = self._reply()[1]
        left = left_by(
            WorkEnd(
                self._told_title, self._acts, self._mishaps, self._came, reply, last, plans, end
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
            source=self._source(self._told_pages(), left.files),
            detail=left.checkpoint,
            topics=topics_of(f"{self._title}\n{goal}", left.files),
            task=detect_task(self._title).task,
            ending=self._came.ending,
            confidence=self._came.confidence,
            trust=Trust.AGENT,
            standing=standing_of(MemoryKind.LEDGER, Trust.AGENT),
            tokens=count(left.text),
            time=self._material.now,
        )

    def _called(self, act: Act) -> str:
        return self._line[act.place - self._stretch.first].text

    def _advice(self, kind: MemoryKind, made: Lesson | Recipe, at: Act) -> MemoryRecord:
        """What other sessions came to as well is one memory that carries the sources of all; what
        waits is its session's own."""
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

    def _outcome(self) -> WorkOutcome:
        stretch, line = self._stretch, self._line
        turns = {said.page.turn for said in line}
        told = {turn: ending for turn, ending in self._material.endings.items() if turn in turns}
        spoke = max(
            (place for place, said in enumerate(line, stretch.first) if _is_work(said)), default=-1
        )
        stopped = bool(stretch.stopped) and stretch.stopped[-1] > max(
            spoke, stretch.prompts[-1].place
        )
        return work_outcome(
            stretch.prompts, self._acts, self._mishaps, self._reply()[1], stopped=stopped, told=told
        )

    def _reply(self) -> tuple[int, str]:
        """The last that the model said, and where; nothing where work went on after it."""
        for place in range(len(self._line) - 1, -1, -1):
            said = self._line[place]
            if said.page.kind is Kind.RESPONSE and said.text.strip():
                return place + self._stretch.first, said.text
            if said.page.kind.family is Kind.TOOL_CALL:
                break
        return -1, ""

    def _last_words(self) -> str:
        """From the reply that ended most of the work: what comes after it is thanks and
        good-byes."""
        best, since = (-1, -1, ""), 0
        for place, said in enumerate(self._line, self._stretch.first):
            if said.page.kind is Kind.PROMPT:
                since = 0
            elif said.page.kind.family is Kind.TOOL_CALL:
                since += 1
            elif said.page.kind is Kind.RESPONSE and said.text.strip() and since >= best[0]:
                best = (since, place, said.text)
        return own_reply(best[2], best[1], self._others)

    def _found(self) -> Iterator[tuple[Utterance, FactMatch]]:
        """What the user said that holds, and what the model said that the user agreed to; each
        once."""
        seen: set[str] = set()
        first = self._stretch.first
        prompts = {prompt.place - first: prompt for prompt in self._stretch.prompts}
        order = sorted(prompts)
        own = {place: prompt.text if prompt.person else "" for place, prompt in prompts.items()}
        for place, said in enumerate(self._line):
            if place in prompts:
                prompt = prompts[place]
                trust = Trust.PERSON if prompt.person else Trust.OUTSIDE
                found = (
                    facts_in(prompt.text, place + first, self._others, trust)
                    if not prompt.handed
                    else iter(())
                )
            elif said.page.kind is Kind.RESPONSE:
                before = self._heard_before(place, own)
                after = next((own[at] for at in order if at > place), "")
                found = agreed_in(said.text, before, after, place + first, self._others)
            else:
                continue
            for each in found:
                if each.text not in seen:
                    seen.add(each.text)
                    yield said, each

    def _heard_before(self, place: int, own: Mapping[int, str]) -> str:
        """What the user said in the last user message before a reply; nothing where that was no
        word of theirs."""
        asked = [at for at in range(place) if self._line[at].page.kind is Kind.PROMPT]
        message = [
            at for at in asked if self._line[at].page.chain == self._line[asked[-1]].page.chain
        ]
        return "\n".join(own[at] for at in message if own.get(at))

    def _told_pages(self) -> tuple[PageId, ...]:
        """The pages that an episode's words stand on: what was said, then what was done, as many as
        are named."""
        spoken = [
            said.page.id for said in self._line if said.page.kind in (Kind.PROMPT, Kind.RESPONSE)
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


def _words_of_others(said: Utterance, *, own: bool) -> bytes:
    """What nobody proved to be a person's, to search in: a result, and a prompt that may be one."""
    if said.page.kind is Kind.PROMPT and not own and not said.outside:
        return squeeze(said.text.encode("utf-8", "replace"))
    return said.outside


_DECISIONS = frozenset({"decided", "agreed", "amended"})


def _shown(done: Sequence[Act]) -> Sequence[Act]:
    """As many as are listed: what changed something first, in the order of the work."""
    if len(done) <= _MOST_ACTIONS:
        return done
    telling_ones = [act for act in done if act.doing is not ActKind.READ or act.failed]
    chosen = (
        telling_ones
        if len(telling_ones) <= _MOST_ACTIONS
        else [*telling_ones[: _MOST_ACTIONS // 2], *telling_ones[-_MOST_ACTIONS // 2 :]]
    )
    left = _MOST_ACTIONS - len(chosen)
    rest = [act for act in done if act.doing is ActKind.READ and not act.failed][:left]
    return sorted((*chosen, *rest), key=lambda act: act.place)


def _is_work(said: Utterance) -> bool:
    return said.page.kind is Kind.RESPONSE or said.page.kind.family in (
        Kind.TOOL_CALL,
        Kind.TOOL_RESULT,
    )


def _places(act: Act) -> Iterator[str]:
    """What `rollback` knows it by: the tool, and the file or address."""
    yield act.tool
    yield from act.files
    if "://" in act.target:
        yield act.target.split()[0]
