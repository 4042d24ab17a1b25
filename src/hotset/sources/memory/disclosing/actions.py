"""What is done where memory costs too much: six changes to how it is shown, each kept only where it measurably helps.

Each is worked out from what is known now, within bounds: carried out again it changes nothing more, and `take_back` undoes it.
None touches a memory: whatever an arrangement leaves out of the index or the timeline is found and read as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from hotset.nouns.memory import Arrangement, Layer, MemoryId, Uses
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.disclosing.economics import Breach, Economics, Remedy, Topics
from hotset.sources.memory.disclosing.overview import Overview, Topic
from hotset.sources.memory.disclosing.showing import Item, told_memories
from hotset.sources.memory.disclosing.timeline import SPLIT_TOKENS, TIMELINE_TOKENS, told_timeline
from hotset.sources.memory.disclosing.topics_shown import fitting_topics, ranked_topics, shown_as, stale_since, whole_index
from hotset.sources.memory.disclosing.unfolding import MEMORY_TOKENS, TOP_TOPICS
from hotset.sources.memory.managing.forms import layer_of
from hotset.text.terms import terms
from hotset.tokens import count

ARRANGED = "MemoryArranged"
"""The name of the event."""

_DAY = 86_400.0
_LEAST_FULL_DAYS, _LEAST_LINE_DAYS, _LEAST_EXCERPT = 1.0, 7.0, 60
_SHORTER, _SHORTER_EXCERPT = 0.5, 0.75
_MUCH_READ = 2000  # tokens: from here on what is read is a cost of its own, and comes shorter, too
_SHOWN_ENOUGH = 5  # times that memories of a topic were shown before their use says something
_SHOWN_A_READ = 4  # showings that one reading pays for
_LEAST_SCORE, _MOST_SCORE = 0.2, 1.5
_MOST_SCORES = 200
_FITTING = 4  # topics of a question that is taken to be usual
_MEASURED = 20  # topics that are asked about to see what they cost
_MOST_MEMBERS = 4
_MOST_COMPOSITES = 8
_MOST_STALE = _MOST_ALIASES = 200
_CONSIDERED = 1000  # topics, the weightiest: those that could reach an index
_BYPASS_SECONDS = _DAY


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change did, measured by telling the same with it and without it."""

    before: float
    after: float
    unit: str
    note: str = ""
    """Why nothing was changed."""


def carry_out(  # noqa: PLR0917 - each of them is of another kind
    breach: Breach,
    arrangement: Arrangement,
    overview: Overview,
    uses: Mapping[str, Uses],
    economics: Economics,
    now: float,
    *,
    items: Sequence[Item] = (),
) -> tuple[Arrangement, Effect]:
    """The arrangement for the next session, and what that is worth; the same one where nothing can be gained.

    `uses` are those of topics (`uses_by_topic`); `items` are memories that were recalled, to see what they take when shown.
    """
    scene = _Scene(arrangement, overview, uses, economics, now, items)
    return _REMEDIES[breach.remedy](scene)


def take_back(remedy: Remedy, arrangement: Arrangement) -> Arrangement:
    """As if it had never been carried out."""
    plain = Arrangement()
    match remedy:
        case Remedy.COMPRESS:
            return replace(arrangement, full_days=plain.full_days, line_days=plain.line_days, excerpt=plain.excerpt)
        case Remedy.RESCORE:
            return replace(arrangement, scores={})
        case Remedy.COMPOSE:
            return replace(arrangement, composites={})
        case Remedy.REORGANISE:
            return replace(arrangement, aliases={}, stale=())
        case Remedy.SPLIT:
            return replace(arrangement, split=plain.split)
        case Remedy.BYPASS:
            return replace(arrangement, bypass={})


def uses_by_topic(uses: Mapping[MemoryId, Uses], topics: Topics) -> dict[str, Uses]:
    """How often memories of each topic were used."""
    added: dict[str, Uses] = {}
    for id, use in uses.items():
        for topic in dict.fromkeys(topics(id)):
            one = added.get(topic, Uses())
            added[topic] = Uses(
                one.shown + use.shown,
                one.read + use.read,
                one.helped + use.helped,
                one.misled + use.misled,
                max(one.last, use.last),
            )
    return added


def arranged_event(breach: Breach, effect: Effect, now: float, session: SessionId | None = None) -> Event:
    """What was done, why, and what it was worth, as it is kept."""
    detail: dict[str, str | int | float] = {
        "metric": breach.metric,
        "value": round(breach.value, 4),
        "threshold": breach.threshold,
        "remedy": breach.remedy,
        "before": round(effect.before, 1),
        "after": round(effect.after, 1),
        "unit": effect.unit,
        "note": effect.note,
    }
    return Event(ARRANGED, now, session, 0, detail)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What an action goes by."""

    arrangement: Arrangement
    overview: Overview
    uses: Mapping[str, Uses]
    economics: Economics
    now: float
    items: Sequence[Item]

    def timeline(self, arrangement: Arrangement) -> int:
        """Tokens of the timeline that a question gets which fits a few of the weightiest topics."""
        fitting = [each.topic.name for each in ranked_topics(self.overview, arrangement, self.now, most=_FITTING)]
        topics, tokens = (fitting[:TOP_TOPICS], SPLIT_TOKENS) if arrangement.split else (fitting, TIMELINE_TOKENS)
        return told_timeline(self.overview, arrangement, self.now, topics=topics, max_tokens=tokens).tokens

    def memories(self, arrangement: Arrangement) -> int:
        """Tokens of what was recalled, shown by its age."""
        memories = [item.memory for item in self.items if item.memory is not None]
        layers: dict[str, Layer] = {
            each.id: layer_of(each, self.now, uses=Uses(), referenced=False, mass=0.0, arrangement=arrangement)
            for each in memories
        }
        return told_memories(self.items, arrangement, layers, max_tokens=MEMORY_TOKENS).tokens

    def judged(self, changed: Arrangement, before: int, after: int, unit: str) -> _Outcome:
        """The change where it is one for the better."""
        if after < before:
            return changed, Effect(before, after, unit)
        return self.arrangement, Effect(before, before, unit, "there is nothing to be gained by it")


_Outcome = tuple[Arrangement, Effect]


def _compress(scene: _Scene) -> _Outcome:
    """The mildest of ever shorter spans with which less is told. Excerpts only shrink where much is read."""

    def cost(arrangement: Arrangement) -> int:
        return scene.timeline(arrangement) + (scene.memories(arrangement) if scene.items else 0)

    is_much = bool(scene.items) and scene.economics.read_tokens > _MUCH_READ
    before = after = cost(scene.arrangement)
    shorter = scene.arrangement
    while after >= before and (tighter := _tighter(shorter, is_much)) != shorter:
        shorter = tighter
        after = cost(shorter)
    return scene.judged(shorter, before, after, "tokens of what is told")


def _tighter(arrangement: Arrangement, is_much: bool) -> Arrangement:
    lines = min(arrangement.line_days, max(_LEAST_LINE_DAYS, arrangement.line_days * _SHORTER))
    if not is_much:
        return replace(arrangement, line_days=lines)
    full = min(arrangement.full_days, max(_LEAST_FULL_DAYS, arrangement.full_days * _SHORTER))
    excerpt = min(arrangement.excerpt, max(_LEAST_EXCERPT, int(arrangement.excerpt * _SHORTER_EXCERPT)))
    return replace(arrangement, line_days=lines, full_days=full, excerpt=excerpt)


def _rescore(scene: _Scene) -> _Outcome:
    """Topics that are shown and never read sink, until a question that names them no longer unfolds them."""
    judged = {name: uses for name, uses in scene.uses.items() if uses.shown >= _SHOWN_ENOUGH}
    often = sorted(judged, key=lambda name: (-judged[name].shown, name))[:_MOST_SCORES]
    scores = {name: score for name in often if (score := _score(judged[name])) != 1.0}
    unread = [name for name in often if _wanted(judged[name]) <= 0 and name in scene.overview.topics][:_MEASURED]

    def cost(arrangement: Arrangement) -> int:
        return sum(_told_about(name, arrangement, scene) for name in unread)

    changed = replace(scene.arrangement, scores=scores)
    before, after = cost(scene.arrangement), cost(changed)
    unit = "tokens told of topics that nobody reads"
    if after == before and scores != scene.arrangement.scores:  # what is read again comes back, though that saves nothing
        return changed, Effect(before, after, unit)
    return scene.judged(changed, before, after, unit)


def _score(uses: Uses) -> float:
    return round(min(_MOST_SCORE, max(_LEAST_SCORE, _SHOWN_A_READ * (_wanted(uses) + 1) / uses.shown)), 3)


def _wanted(uses: Uses) -> int:
    return uses.read + uses.helped - uses.misled


def _told_about(name: str, arrangement: Arrangement, scene: _Scene) -> int:
    """Tokens of the timeline of a topic, where a question by its name gets that far."""
    shown = shown_as(name, arrangement)
    fitting = fitting_topics(scene.overview, arrangement, scene.now, query=name)
    if all(each.topic.name != shown for each in fitting):
        return 0
    return told_timeline(scene.overview, arrangement, scene.now, topics=[shown]).tokens


def _compose(scene: _Scene) -> _Outcome:
    """The topics that were read one after the other in a task become one."""
    known = scene.overview.topics
    often = Counter(topic for topics in scene.economics.together for topic in topics if topic in known)
    ranked = sorted(often, key=lambda topic: (-often[topic], topic))
    members: list[str] = []
    for topic in ranked:
        members.extend(each for each in _with_it(topic, scene.arrangement) if each not in members)
    members = members[:_MOST_MEMBERS]

    def loads(arrangement: Arrangement) -> int:
        return ceil(len({shown_as(topic, arrangement) for topic in ranked}) / TOP_TOPICS)

    changed = scene.arrangement
    if len(members) > 1:
        apart = {name: topics for name, topics in scene.arrangement.composites.items() if not set(members).intersection(topics)}
        kept = list(apart.items())[-(_MOST_COMPOSITES - 1) :]
        changed = replace(changed, composites={**dict(kept), " + ".join(sorted(members)): tuple(sorted(members))})
    return scene.judged(changed, loads(scene.arrangement), loads(changed), "full loads for the topics of this task")


def _with_it(topic: str, arrangement: Arrangement) -> tuple[str, ...]:
    """A topic, with those that it is one with already."""
    topic = arrangement.aliases.get(topic, topic)
    return arrangement.composites.get(shown_as(topic, arrangement), (topic,))


def _reorganise(scene: _Scene) -> _Outcome:
    """What nobody touched or read for long leaves the index; what says the same twice stands in it once."""
    weighty = ranked_topics(scene.overview, Arrangement(scores=scene.arrangement.scores), scene.now, most=_CONSIDERED)
    topics = [scene.overview.topics[each.topic.name] for each in weighty]
    since = stale_since(scene.overview)
    stale = [topic.name for topic in topics if max(topic.last, scene.uses.get(topic.name, Uses()).last) < since][:_MOST_STALE]
    aliases = _overlapping([topic for topic in topics if topic.name not in stale])
    changed = replace(scene.arrangement, aliases=aliases, stale=tuple(sorted(stale)))
    before, after = (count(whole_index(scene.overview, each)) for each in (scene.arrangement, changed))
    return scene.judged(changed, before, after, "tokens of the index of all topics")


def _overlapping(topics: Sequence[Topic]) -> dict[str, str]:
    """Names that differ in an ending or a sign, and topics of the very same memories, under the one with most to say."""
    by_words = _same(topics, lambda topic: frozenset(term.text for term in terms(topic.name)))
    left = [topic for topic in topics if topic.name not in by_words and topic.count > 1]
    by_content = _same(left, lambda topic: (topic.count, topic.tokens, topic.last, topic.latest))
    merged = {name: by_content.get(to, to) for name, to in by_words.items()} | by_content
    return dict(list(merged.items())[:_MOST_ALIASES])


def _same(topics: Iterable[Topic], key: Callable[[Topic], object]) -> dict[str, str]:
    groups: dict[object, list[Topic]] = {}
    for topic in topics:
        groups.setdefault(key(topic), []).append(topic)
    found = {}
    for group in groups.values():
        first = min(group, key=lambda topic: (-topic.count, len(topic.name), topic.name))
        found.update({topic.name: first.name for topic in group if topic is not first})
    return found


def _split(scene: _Scene) -> _Outcome:
    changed = replace(scene.arrangement, split=True)
    before, after = scene.timeline(scene.arrangement), scene.timeline(changed)
    return scene.judged(changed, before, after, "tokens of the timeline for a question")


def _bypass(scene: _Scene) -> _Outcome:
    """A kind of task that was told of memories, and asked for none, is left alone for a day."""
    economics = scene.economics
    running = {task: until for task, until in scene.arrangement.bypass.items() if until > scene.now}
    spent = Effect(economics.spent, economics.spent, "tokens of such a session")
    if economics.task is None:
        return scene.arrangement, replace(spent, note="what was done is not known")
    if economics.asked:
        return scene.arrangement, replace(spent, note="memories were asked for")
    if economics.available < _WORTH_JUDGING:
        return scene.arrangement, replace(spent, note="too little is remembered to tell")
    until = running.get(economics.task, scene.now + _BYPASS_SECONDS)
    return replace(scene.arrangement, bypass={**running, economics.task: until}), replace(spent, after=0)


_WORTH_JUDGING = 1000  # tokens: a store that holds less cannot save as much, however well it is shown

_REMEDIES: Mapping[Remedy, Callable[[_Scene], _Outcome]] = {
    Remedy.COMPRESS: _compress,
    Remedy.RESCORE: _rescore,
    Remedy.COMPOSE: _compose,
    Remedy.REORGANISE: _reorganise,
    Remedy.SPLIT: _split,
    Remedy.BYPASS: _bypass,
}
