"""What recorded sessions would have cost in dollars, by session, by call and by policy, and what
filled their windows. Numbers alone: no text, no path and no id of a session is in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedConversation
from hotset.replay.measure import Figures
from hotset.replay.policies import DEFAULT, FULL
from hotset.replay.report import Ruling, SessionSet

_MILLION = 1_000_000
_FIXED, _PERSON, _MODEL = (
    "system text and tool schemas",
    "prompts",
    "the model's own words and calls",
)
_OVER_MCP = "tools over MCP"
"""Their names may say what a person works with: they are counted together."""

_UNKNOWN = "other results"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
_MOST_SHARES = 10


@dataclass(frozen=True, slots=True)
class ReplayedSession:
    """One session, sent whole and with hotset."""

    model: str
    calls: int
    full: float
    """Dollars."""
    ours: float
    """Dollars, with a retrieval paid for each fault."""


@dataclass(frozen=True, slots=True)
class PolicyCost:
    name: str
    dollars: float
    percent: float
    """Of full history's cost."""
    faults_per_100: float
    over_window_pct: float


@dataclass(frozen=True, slots=True)
class WindowShare:
    """What takes a share of all prompts where everything is sent."""

    name: str
    percent: float


@dataclass(frozen=True, slots=True)
class ReplayEstimate:
    sessions: tuple[ReplayedSession, ...]
    """The dearest first."""
    sessions_read: int
    calls: int
    full: float
    ours: float
    full_by_call: tuple[float, ...]
    """Dollars up to the first call of every session, the second, and so on."""
    ours_by_call: tuple[float, ...]
    policies: tuple[PolicyCost, ...]
    shares: tuple[WindowShare, ...]
    """The largest first."""
    faults_per_100: float
    over_window_pct: float
    """Prompts of full history that would not have fitted the window."""
    windows: tuple[int, ...]
    models: tuple[str, ...]
    unlisted: tuple[str, ...]
    """Models without a list price: their dollars are a guess."""

    @property
    def saved(self) -> float:
        """Dollars; negative where hotset would have cost more."""
        return self.full - self.ours

    @property
    def saved_pct(self) -> float:
        return 100 * self.saved / self.full if self.full else 0.0


Replayed = Sequence[tuple[SessionSet, Mapping[str, Figures]]]
"""Each set with the figures of its policies."""


def estimate(
    replayed: Sequence[tuple[SessionSet, Mapping[str, Figures]]],
    ruling: Ruling,
    name: str = DEFAULT,
) -> ReplayEstimate:
    """The figures of all sets together; `name` is the policy that stands for hotset."""
    sessions = [
        cost
        for gathered, figures in replayed
        for cost in _sessions(gathered, figures, ruling, name)
    ]
    counted = [entry for gathered, _ in replayed for _, entry in gathered.counted]
    every = [figures for _, figures in replayed]
    full = [each[FULL] for each in every]
    ours = [each[name] for each in every]
    models = {each.model: ruling.rules(each.model) for each in counted}
    whole = sum(each.full for each in sessions)
    return ReplayEstimate(
        sessions=tuple(sorted(sessions, key=lambda each: -each.full)),
        sessions_read=sum(gathered.sessions for gathered, _ in replayed),
        calls=sum(each.calls for each in full),
        full=whole,
        ours=sum(each.ours for each in sessions),
        full_by_call=_added_up(full),
        ours_by_call=_added_up(ours),
        policies=tuple(_policies(replayed, ruling, whole)),
        shares=tuple(_shares(counted)),
        faults_per_100=_percent(
            sum(each.faults for each in ours), sum(each.actions for each in ours)
        ),
        over_window_pct=_percent(sum(each.over for each in full), sum(each.calls for each in full)),
        windows=tuple(sorted({rules.window for rules in models.values()})),
        models=tuple(sorted(model for model in models if model)),
        unlisted=tuple(sorted(model for model, rules in models.items() if not rules.price.listed)),
    )


def _sessions(
    gathered: SessionSet, figures: Mapping[str, Figures], ruling: Ruling, name: str
) -> Iterable[ReplayedSession]:
    stretches: dict[int, list[RecordedConversation]] = {}
    for number, conversation in gathered.counted:
        stretches.setdefault(number, []).append(conversation)
    for each in stretches.values():
        yield ReplayedSession(
            each[0].model,
            sum(len([call for call in stretch.calls if call]) for stretch in each),
            sum(_dollars(figures[FULL], stretch, ruling) for stretch in each),
            sum(_dollars(figures[name], stretch, ruling) for stretch in each),
        )


def _dollars(figures: Figures, conversation: RecordedConversation, ruling: Ruling) -> float:
    price = ruling.rules(conversation.model).price
    return figures.each.get(conversation.id, 0.0) * price.input / _MILLION


def _added_up(every: Sequence[Figures]) -> tuple[float, ...]:
    columns = zip_longest(*(each.by_call for each in every), fillvalue=0.0)
    return tuple(accumulate(map(sum, columns)))


def _policies(replayed: Replayed, ruling: Ruling, whole: float) -> Iterable[PolicyCost]:
    names = dict.fromkeys(name for _, figures in replayed for name in figures)
    for name in names:
        every = [figures[name] for _, figures in replayed if name in figures]
        paid = sum(
            _dollars(figures[name], conversation, ruling)
            for gathered, figures in replayed
            for _, conversation in gathered.counted
        )
        yield PolicyCost(
            name,
            paid,
            _percent(paid, whole),
            _faults_per_100(every),
            _over_window_pct(every),
        )


def _shares(conversations: Iterable[RecordedConversation]) -> list[WindowShare]:
    """What stands in the prompts: each message counts once for each call behind it."""
    sent: Counter[str] = Counter()
    for conversation in conversations:
        left = len(conversation.calls)
        sent[_FIXED] += conversation.fixed * left
        for line in conversation.lines:
            left -= line.role is Role.ASSISTANT
            sent[_MODEL if line.role is Role.ASSISTANT else _PERSON] += line.extra * left
            for piece in line.pieces:
                sent[_filler(line.role, piece.tool, is_result=piece.is_result)] += (
                    piece.tokens * left
                )
    total = sent.total()
    largest = [(name, tokens) for name, tokens in sent.most_common() if tokens]
    rest = sum(tokens for _, tokens in largest[_MOST_SHARES:])
    shown = [*largest[:_MOST_SHARES], *([("everything else", rest)] if rest else [])]
    return [WindowShare(name, _percent(tokens, total)) for name, tokens in shown]


def _filler(role: Role, tool: str, *, is_result: bool) -> str:
    if role is Role.ASSISTANT:
        return _MODEL
    if role is Role.SYSTEM:
        return _FIXED
    if not is_result and role is not Role.TOOL:
        return _PERSON
    if "__" in tool:
        return _OVER_MCP
    return f"results of {tool}" if _PLAIN.fullmatch(tool) else _UNKNOWN


def _faults_per_100(every: Sequence[Figures]) -> float:
    return _percent(sum(each.faults for each in every), sum(each.actions for each in every))


def _over_window_pct(every: Sequence[Figures]) -> float:
    return _percent(sum(each.over for each in every), sum(each.calls for each in every))


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0
