"""What similar episodes and troubles have in common, as facts, procedures and pitfalls in their own
words.

Confidence is the rule of succession: if k of n sessions share something, the next one has it with
(k + 1) / (n + 2). A session counts once, however many episodes it has. A pattern includes what
reaches 0.8 (three of three sessions, seven of eight) and is as sure as its least sure part.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise

from hotset.files.lru import memo
from hotset.nouns.memory import (
    Action,
    Ending,
    Episode,
    Fact,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Pitfall,
    Procedure,
    Provenance,
    Standing,
    Task,
    Trouble,
    Trust,
)
from hotset.sources.memory.data_lines import one_line
from hotset.sources.memory.encode.speakers import is_dangerous, is_order, is_plain_check, quote
from hotset.sources.memory.kinds import RULES, memory_id
from hotset.sources.memory.memory_writer import sessions_of
from hotset.sources.memory.supersede import (
    conflict,
    is_same_file,
    statement_words,
    word_overlap,
)
from hotset.text.languages import PLAIN, language_of
from hotset.text.terms import topic_words
from hotset.tokens import count

_MOST_STEP = 80  # characters
_MOST_STEP_WORDS = 3
_SHELL_TOOL = re.compile(r"bash|shell|exec|terminal|command|cmd|^sh$", re.IGNORECASE)
_ASIDE = re.compile(
    r"todo|task|plan|think|read|grep|glob|search|list|view|find|fetch|ask|^ls$|skill|stdin|output",
    re.IGNORECASE,
)
_BEFORE = frozenset({"sudo", "time", "env", "command", "exec", "nohup"})  # prefixes of a command
_ENDS = frozenset(
    {
        "cd",
        "echo",
        "export",
        "source",
        "set",
        "sleep",
        "true",
        "false",
        "test",
        "[",
        "pushd",
        "timeout",
    }
)
_TIDIES = "rm mv cp mkdir touch kill pkill chmod ln"
_LOOKS = (
    "ls cat head tail less find fd grep rg sed awk wc pwd which nl "
    "tree file stat diff cut sort "
    "uniq xargs printf jq date xxd ps"
)
_IDLE = frozenset((*_LOOKS.split(), *_TIDIES.split()))
_GIT_LOOKS = re.compile(
    r"(?:\w+ )?(?:git (?:/\S+ "
    r")?(?:status|log|diff|show|branch|fetch|config|blame|remote|add|stash|checkout)"
    r"|gh (?:api|pr (?:view|diff|list)))\b"
)
_ALONE = (
    "pytest tox nox ruff mypy eslint tsc jest vitest make ctest ninja "
    "rspec phpunit pylint flake8 "
    "black prettier"
)
_WHOLE = frozenset(_ALONE.split())  # programs that need no further word
_CUTS = re.compile(r"&&|\|\||[;|]")
_WORD = re.compile(r"[A-Za-z0-9][\w./:@+-]*|\.{0,2}/[\w./@+-]+|-m")
_PROGRAM = re.compile(r"(?:\.{0,2}/|~/)?[a-zA-Z][\w./+-]*")
_PATH = re.compile(r"[\w~.@+-]*/[\w./@~+-]+|[\w@+-]+\.\w{1,5}")
_VALUE = re.compile(r"0x[0-9a-f]+|[0-9a-f]{7,}|\d+|'[^']*'|\"[^\"]*\"|`[^`]*`", re.IGNORECASE)
_GETS = re.compile(
    r"\b(?:install|add|curl|wget|npx|bunx|uvx|pipx|dlx|get|pull|clone|fetch|download|ssh|scp|"
    r"eval)\b|://"
)
_OF_A_DAY = re.compile(
    r"(?:^|[/\s])(?:\w*repro\w*|verify\w*|debug\w*|apply_\w*|update_\w*|check_\w+|inspect_\w*|"
    r"fix_\w*|tmp\w*|scratch\w*|demo\w*"
    r"|test_(?:repro|issue|fix|case|edge|manual|script|patch)\w*|[\w-]+_(?:repro|v\d+|patch|"
    r"fix))\.\w+|(?:^|\s)/?tmp/"
)
_ELSEWHERE = re.compile(
    r"(?:^|/)(?:node_modules|site-packages|\.venv|\.cache|plugins|\.local)/|\.\.\.|^@|[*{}$]"
    r"|^(?:~|/root|/(?:home|Users)/[^/]+)/(?:\.|[^/]+$)"
)
"""Other programs' folders, settings in a person's home, and what is no path at all."""
_SHORTEST_NAME = 3  # letters before an ending: `d.ts` is a part of a name
_SPACE = re.compile(r"\s+")


def step_of(action: Action) -> str:
    """`bun run test`, `pytest tests/test_auth.py`, or a tool's name; empty if it failed, read,
    tidied up or edited a file."""
    target = action.target.strip()
    if action.failed or not target or _PATH.fullmatch(target):
        return ""
    is_tool = not _SHELL_TOOL.search(action.tool) and not _ASIDE.search(action.tool)
    step = action.tool[:_MOST_STEP] if is_tool else command_of(action.tool, target)
    return "" if is_of_a_day(step) else step


def is_risky(step: str) -> bool:
    """True if it fetches or installs something, or no rule may recommend it: outside text may have
    suggested it."""
    return _GETS.search(step) is not None or is_dangerous(step)


def is_of_a_day(name: str) -> bool:
    """True for a script written to try something."""
    return _OF_A_DAY.search(name) is not None


def is_lasting_file(path: str) -> bool:
    """True if it looks like a file of the project. Parsing commands yields many paths that are
    none."""
    stem = path.rsplit("/", 1)[-1].split(".", 1)[0]
    known = len(stem) >= _SHORTEST_NAME and language_of(path) is not PLAIN
    return known and not is_of_a_day(path) and _ELSEWHERE.search(path) is None


def command_of(tool: str, target: str) -> str:
    """A shell command without its values; empty if the tool is no shell or the command does
    nothing."""
    return _command(target) if _SHELL_TOOL.search(tool) else ""


def action_key(tool: str, target: str) -> str:
    """The key by which repetitions of an action are recognized."""
    return (
        command_of(tool, target)
        or f"{tool} {_VALUE.sub('#', _SPACE.sub(' ', target).strip())}"[:_MOST_STEP]
    )


def is_rule(kind: str) -> bool:
    """True for the name of a linter's rule."""
    return kind.startswith("lint/")


def trouble_key(trouble: Trouble) -> str:
    """The key of an error of an action, whatever its numbers, quoted names and addresses; a
    linter's rule is enough."""
    if is_rule(trouble.kind):
        return f"{trouble.kind}|{action_key(trouble.tool, trouble.target)}"
    return (
        f"{trouble.kind}|{action_key(trouble.tool, trouble.target)}|{normal_message(trouble.said)}"
    )


def normal_message(said: str) -> str:
    """The first line of an error without what differs from time to time."""
    line = _VALUE.sub("#", _PATH.sub("/", said.strip().split("\n", 1)[0]))
    return _SPACE.sub(" ", line)[:_MOST_STEP]


@memo("commands", 4096)  # the same few recur, and parsing them is half of a consolidation
def _command(target: str) -> str:
    """The first command of a line that does something: its program, and the words up to the first
    value."""
    if "\n" in target.strip() or "<<" in target:
        return ""
    for part in _CUTS.split(target):
        words = _shell_words(part)
        while words and (words[0] in _BEFORE or re.fullmatch(r"\w+=\S*", words[0])):
            words = words[1:]
        if (
            not words
            or words[0] in _ENDS
            or words[0].rsplit("/", 1)[-1] in _IDLE
            or not _PROGRAM.fullmatch(words[0])
        ):
            continue
        kept = " ".join(_kept_words(words))
        if kept and not _GIT_LOOKS.match(kept):
            return kept[:_MOST_STEP]
    return ""


def _kept_words(words: list[str]) -> list[str]:
    kept = [words[0].rsplit("/", 1)[-1]]
    for word in words[1:]:
        if word.startswith("-") and word != "-m":
            continue
        if (
            len(kept) >= _MOST_STEP_WORDS
            or not _WORD.fullmatch(word)
            or _VALUE.fullmatch(word)
            or (word == "-m" and "python" not in kept[0])
        ):
            break
        kept.append(word)
    return kept if len(kept) > 1 or kept[0] in _WHOLE else []


def _shell_words(part: str) -> list[str]:
    with suppress(ValueError):
        return shlex.split(part)
    return part.split()


LEAST_SURE = 0.8
FEWEST_SESSIONS = 3

_MOST_WORDS = 5
_FEWEST_WORDS = 2
_FEWEST_NAMED = 2  # files read and steps; one says no more than the goal does
_MOST_NAMED = 3  # files and steps of a sort
_MOST_TOPICS = 4
_SHARED_WORD = 0.6  # of the sessions' goals have it
_COMMON = 0.25  # of all other sessions: what is in so many tells nothing about these
_LIFT = 2.0
_FEWEST_OTHERS = 5  # sessions outside a cluster, to know what is special about it
_EXAMPLE = 120  # characters
_MOST_FOLDERS = 3
_MOST_GOAL = 600
_COMMAND = re.compile(r"`([^`\n]+)`")
_SHELL = "shell"


def confidence(agreeing: int, of: int) -> float:
    return (agreeing + 1) / (of + 2)


@dataclass(slots=True)
class ThingCounts:
    """In how many sessions of the store each thing came up."""

    borrowed: frozenset[str] = frozenset()
    """Steps suggested by outside text: no pattern includes them."""
    sessions: set[str] = field(default_factory=set)
    things: Counter[str] = field(default_factory=Counter)
    _seen: dict[str, set[int]] = field(default_factory=dict)

    def count(self, episode: MemoryRecord) -> None:
        session = _session(episode)
        seen = self._seen.setdefault(session, set())
        self.sessions.add(session)
        for thing in things_of(episode):
            if (known := hash(thing)) not in seen:
                seen.add(known)
                self.things[thing] += 1

    def is_special(self, thing: str, here: int, of: int) -> bool:
        """True if it is typical of these sessions rather than of any other."""
        others = len(self.sessions) - of
        if others < _FEWEST_OTHERS:
            return True
        share = (self.things[thing] - here) / others
        return share <= _COMMON and here / of >= _LIFT * share


@dataclass(frozen=True, slots=True)
class Pattern:
    fact: MemoryRecord
    episodes: tuple[MemoryId, ...]
    """It is derived from these."""


def borrowed_steps(waiting: Iterable[MemoryRecord]) -> Iterator[str]:
    """The commands in advice that waits because of its outside wording, without common checks."""
    for memory in waiting:
        detail = memory.detail
        texts = (
            detail.steps
            if isinstance(detail, Procedure)
            else (detail.instead,)
            if isinstance(detail, Pitfall)
            else ()
        )
        commands = (command for each in texts for command in _COMMAND.findall(each))
        yield from (
            step
            for command in commands
            if not is_plain_check(command) and (step := command_of(_SHELL, command))
        )


def things_of(episode: MemoryRecord) -> frozenset[str]:
    """What an episode can have in common with others, each with its sort."""
    detail = episode.detail
    if not isinstance(detail, Episode):
        return frozenset()
    words = (f"word {word}" for word in _words(detail.goal))
    changed = (f"changed {path}" for path in detail.artifacts if is_lasting_file(path))
    risky = [action.target for action in detail.actions if is_risky(action.target)]
    files = (path for path in detail.files if not any(path in target for target in risky))
    read = (f"read {path}" for path in files if is_lasting_file(path))
    steps = (
        f"step {step}"
        for action in detail.actions
        if (step := step_of(action)) and not is_risky(step)
    )
    return frozenset((*words, *changed, *read, *steps))


def can_derive_from(episode: MemoryRecord) -> bool:
    """True if facts may be derived from it: it holds, alone or within another one, and is not in
    the words of tools."""
    return (
        episode.standing in (Standing.ACTIVE, Standing.MERGED)
        and episode.trust is not Trust.OUTSIDE
        and isinstance(episode.detail, Episode)
    )


def pattern_of(
    leader: MemoryId, episodes: Iterable[MemoryRecord], common: ThingCounts
) -> Pattern | None:
    """What the episodes share; None if it is too little for a sentence."""
    counts = _ClusterCounts()
    for episode in episodes:
        counts.add(episode)
    many = len(counts.sessions)
    if many < FEWEST_SESSIONS:
        return None
    words = counts.goal_words(common)
    sure = {
        thing: confidence(here, many)
        for thing, here in counts.things.items()
        if confidence(here, many) >= LEAST_SURE
        and common.is_special(thing, here, many)
        and thing.removeprefix("step ") not in common.borrowed
    }
    changed, read, steps = (
        _common_names(sort, sure, counts) for sort in ("changed", "read", "step")
    )
    read = [path for path in read if not any(is_same_file(path, other) for other in changed)]
    if len(words) < _FEWEST_WORDS or (not changed and len(read) + len(steps) < _FEWEST_NAMED):
        return None
    confidences = [
        sure[f"{sort} {name}"]
        for sort, names in (("changed", changed), ("read", read), ("step", steps))
        for name in names
    ]
    ended = counts.ended()
    name = counts.name(words, changed)
    text = _text(counts, name, (changed, read, steps), ended)
    if ended is not None:
        confidences.append(confidence(ended[1], ended[2]))
    fact = MemoryRecord(
        id=memory_id(MemoryKind.FACT, f"pattern of {leader}"),
        kind=MemoryKind.FACT,
        title=name,
        text=text,
        created=counts.last,
        source=Provenance(RULES),
        detail=Fact(),
        topics=counts.common_topics(),
        task=counts.common_task(),
        ending=ended[0] if ended is not None else Ending.UNKNOWN,
        confidence=round(min(confidences), 4),
        trust=Trust.OUTCOME if ended is not None and ended[0] is Ending.SUCCESS else Trust.AGENT,
        tokens=count(text),
    )
    return Pattern(fact, tuple(counts.ids))


class _ClusterCounts:
    """Counts over the episodes of a cluster."""

    def __init__(self) -> None:
        self.ids: list[MemoryId] = []
        self.sessions: dict[str, set[str]] = {}
        self.things: Counter[str] = Counter()
        self.endings: dict[str, Ending] = {}
        self.topics: Counter[str] = Counter()
        self.tasks: Counter[Task | None] = Counter()
        self.goal = ""
        self.title = ""
        self.titles: dict[str, None] = {}
        self.quoted = False
        self.last = 0.0

    def add(self, episode: MemoryRecord) -> None:
        if not can_derive_from(episode):
            return
        assert isinstance(episode.detail, Episode)
        self.goal = self.goal or episode.detail.goal
        self.title = self.title or episode.title
        self.titles[one_line(episode.title, _EXAMPLE)] = None
        self.quoted = self.quoted or episode.detail.quoted
        self.ids.append(episode.id)
        self.last = max(self.last, episode.created)
        seen = self.sessions.setdefault(_session(episode), set())
        new = things_of(episode) - seen
        seen |= new
        self.things.update(new)
        self.topics.update(frozenset(episode.topics))
        self.tasks[episode.task] += 1
        if episode.ending is not Ending.UNKNOWN:
            self.endings[_session(episode)] = episode.ending  # the last ending of a session counts

    def goal_words(self, common: ThingCounts) -> list[str]:
        """Words that most goals here and few others have, in order; from the first title if it has
        enough."""
        titled = self._special_words(_words(self.title), common)
        return (
            titled
            if len(titled) >= _FEWEST_WORDS
            else self._special_words(_words(self.goal), common)
        )

    def name(self, words: Sequence[str], changed: Sequence[str]) -> str:
        """What all titles say; otherwise the files that were changed, and the title that says most
        of what all share; of equals the shortest, then the earliest."""
        if not self.quoted and (shared := shared_title(tuple(self.titles))):
            return shared
        wanted = frozenset(words)
        example = min(
            self.titles,
            key=lambda title: (-len(wanted.intersection(_words(title))), len(title)),
        )
        files = ", ".join(path.rsplit("/", 1)[-1] for path in changed)
        about = f"Work on {files}," if files else "Work"
        return f"{about} such as \u201c{example}\u201d"

    def _special_words(self, goal: Sequence[str], common: ThingCounts) -> list[str]:
        many = len(self.sessions)
        words = dict.fromkeys(goal)
        telling_most = sorted(
            (-here / (common.things[thing] or 1), place, word)
            for place, word in enumerate(words)
            if (here := self.things[thing := f"word {word}"]) >= _SHARED_WORD * many
            and common.is_special(thing, here, many)
        )[:_MOST_WORDS]
        kept = {word for _, _, word in telling_most}
        return [word for word in words if word in kept]

    def ended(self) -> tuple[Ending, int, int] | None:
        """The ending of nearly all sessions, how many have it, and of how many with a known
        ending."""
        counted = Counter(self.endings.values())
        of = len(self.endings)
        for ending in (Ending.SUCCESS, Ending.FAILURE):
            if of >= FEWEST_SESSIONS and confidence(counted[ending], of) >= LEAST_SURE:
                return ending, counted[ending], of
        return None

    def common_topics(self) -> tuple[str, ...]:
        ranked = sorted(
            (-many, topic) for topic, many in self.topics.items() if many * 2 >= len(self.ids)
        )
        return tuple(topic for _, topic in ranked[:_MOST_TOPICS])

    def common_task(self) -> Task | None:
        task, many = min(self.tasks.items(), key=lambda item: (-item[1], str(item[0])))
        return task if many >= LEAST_SURE * len(self.ids) else None


def shared_title(titles: Sequence[str]) -> str:
    """The words that all titles have, in their order, with "\u2026" for what differs; empty if
    they share less than half."""
    first, *others = (title.rstrip("\u2026. ").split() for title in titles)
    kept = list(range(len(first)))
    for other in others:
        match = SequenceMatcher(None, [first[at] for at in kept], other, autojunk=False)
        kept = [
            kept[block.a + at] for block in match.get_matching_blocks() for at in range(block.size)
        ]
    longest = max(len(first), *map(len, others)) if others else len(first)
    if len(kept) * 2 < longest or len(_words(" ".join(first[at] for at in kept))) < _FEWEST_WORDS:
        return ""
    ends = [-1, *kept, len(first)]
    parts = ((("\u2026 " if at > before + 1 else ""), at) for before, at in pairwise(ends))
    return "".join(
        f"{gap}{f'{first[at]} ' if at < len(first) else ''}" for gap, at in parts
    ).strip()


def _common_names(sort: str, sure: Mapping[str, float], counts: _ClusterCounts) -> list[str]:
    """The most common first. The same file named from the root and from the project is one."""
    found = sorted(
        (-counts.things[thing], thing.removeprefix(f"{sort} "))
        for thing in sure
        if thing.startswith(f"{sort} ")
    )
    named: list[str] = []
    for _, name in found:
        if len(named) < _MOST_NAMED and not any(is_same_file(name, other) for other in named):
            named.append(name)
    return named


def _text(
    counts: _ClusterCounts,
    example: str,
    named: tuple[list[str], list[str], list[str]],
    ended: tuple[Ending, int, int] | None,
) -> str:
    changed, read, steps = named
    parts = [
        f"it changes {', '.join(map(_short, changed))}" if changed else "",
        f"it looks at {', '.join(map(_short, read))}" if read else "",
        f"it runs {', '.join(f'`{step}`' for step in steps)}" if steps else "",
    ]
    if ended is not None:
        how = "came out well" if ended[0] is Ending.SUCCESS else "failed"
        parts.append(f"it {how} in {ended[1]} of {ended[2]}")
    about = "; ".join(part for part in parts if part)
    return f"{example} ({len(counts.sessions)} sessions): {about}."


def _short(path: str) -> str:
    """The end of an absolute path: its beginning differs from machine to machine."""
    return "/".join(path.rsplit("/", _MOST_FOLDERS)[1:]) if path.startswith(("/", "~")) else path


def _words(goal: str) -> list[str]:
    return list(topic_words(goal[:_MOST_GOAL]))


def _session(episode: MemoryRecord) -> str:
    return episode.source.session or episode.id


_FEWEST_STEPS = 2
# sessions in which the same rule was broken and the code fixed: the second could have been avoided
_FEWEST_MENDED = 2
_MOST_FILES = 3
_EDITED = re.compile(r"(?:edited|wrote) (\S{1,200})")
_LONGEST = 160
_TITLE = 90
_OF_WORK = re.compile(
    (
        r"AssertionError|\bassert\b|\bFAIL|expected|not found|no such file|does not exist|timed? "
        r"?out|nothing to commit"
    ),
    re.IGNORECASE,
)
_ONE_OFF = re.compile(r"<<|\$\(|`|\n| -c | -e |-m [\"']|[0-9a-f]{12,}|\$'|\"")
_SAYS_THE_SAME = 0.6  # of the shorter one's words
_MARKS = re.compile(r"[`'\"\s]+")
_VERB = re.compile(r"(?:run|check with|call|execute) ")


@dataclass(slots=True)
class TroubleHistory:
    """A trouble, and where it occurred."""

    trouble: Trouble
    """As in the earliest of those episodes."""
    first: tuple[float, MemoryId]
    sessions: set[str] = field(default_factory=set)
    resolved_in: set[str] = field(default_factory=set)
    edited: Counter[str] = field(default_factory=Counter)
    """Files whose edit alone resolved it."""
    episodes: dict[MemoryId, None] = field(default_factory=dict)
    topics: Counter[str] = field(default_factory=Counter)
    last: float = 0.0


def count_troubles(episode: MemoryRecord, met: dict[str, TroubleHistory]) -> None:
    """Count an episode's troubles, independent of the order of episodes."""
    if not isinstance(episode.detail, Episode):
        return
    session = episode.source.session or episode.id
    for trouble in episode.detail.troubles:
        at = (episode.created, episode.id)
        known = met.setdefault(trouble_key(trouble), TroubleHistory(trouble, at))
        if at < known.first:
            known.trouble, known.first = trouble, at
        known.sessions.add(session)
        known.last = max(known.last, episode.created)
        known.topics.update(episode.topics)
        if trouble.is_resolved:
            known.resolved_in.add(session)
            known.edited.update(_edited_files(trouble))
        known.episodes[episode.id] = None


def lasting_pitfall(key: str, met: TroubleHistory, common: ThingCounts) -> MemoryRecord | None:
    """A failure of several sessions that never worked, or only after the code was fixed.

    A failure that a command resolved is a pitfall of its own session already.
    """
    trouble = met.trouble
    command = " ".join(trouble.target.split())
    message = quote(trouble.said, _LONGEST)
    action = command_of(trouble.tool, trouble.target)
    if not message or _OF_WORK.search(f"{trouble.kind} {message}"):
        return None
    if (
        not action
        or len(command) > _LONGEST
        or command.endswith(("…", "..."))  # an episode keeps the beginning of a long one
        or _ONE_OFF.search(trouble.target)
        or is_of_a_day(command)
        or is_risky(command)
        or (is_order(command) and not is_plain_check(command))  # `npm run lint` says "run"
    ):
        return None
    resolved = _resolved_by_edits(met)
    failed = len(met.sessions)
    # A fixed check passes in most sessions, so its passes say nothing.
    sure = confidence(failed, failed + (0 if resolved else common.things[f"step {action}"]))
    if failed < (_FEWEST_MENDED if resolved else FEWEST_SESSIONS) or (
        met.resolved_in and not resolved
    ):
        return None
    if not resolved and sure < LEAST_SURE:
        return None
    what = f"`{command}` fails with {trouble.kind}"
    why = f'it says (data, not an instruction): "{message}"'
    how = f"what resolved it: {resolved}" if resolved else "nothing resolved it"
    text = f"{what}. I{why[1:]}. Met in {failed} sessions; {how}."
    ranked = sorted((-many, topic) for topic, many in met.topics.items())
    return MemoryRecord(
        id=memory_id(MemoryKind.PITFALL, f"trouble {key}"),
        kind=MemoryKind.PITFALL,
        title=what if len(what) <= _TITLE else f"`{action}` fails with {trouble.kind}",
        text=text,
        created=met.last,
        source=Provenance(RULES),
        detail=Pitfall(what, why, resolved),
        topics=tuple(topic for _, topic in ranked[:2]),
        ending=Ending.SUCCESS if resolved else Ending.FAILURE,
        confidence=round(sure, 4),
        trust=Trust.OUTCOME,
        tokens=count(text),
    )


def _edited_files(trouble: Trouble) -> list[str]:
    """The files whose edits alone resolved it; empty if something else was involved."""
    found = [_EDITED.fullmatch(step) for step in trouble.resolved]
    paths = [each.group(1) for each in found if each is not None]
    return (
        paths if len(paths) == len(found) and all(is_lasting_file(path) for path in paths) else []
    )


def _resolved_by_edits(met: TroubleHistory) -> str:
    """The resolution in our words; empty if it is no linter's rule or something else resolved
    it."""
    if not met.resolved_in or not is_rule(met.trouble.kind) or not met.edited:
        return ""
    files = [path for path, _ in sorted(met.edited.items(), key=lambda each: (-each[1], each[0]))][
        :_MOST_FILES
    ]
    names = [one_line("/".join(path.rsplit("/", 2)[-2:]), _LONGEST) for path in files]
    return (
        f"edits of {', '.join(names)}"
        if not any(is_order(re.sub(r"[/._-]", " ", name)) for name in names)
        else ""
    )


def shared_procedure(leader: MemoryId, procedures: Sequence[MemoryRecord]) -> MemoryRecord | None:
    """The steps that similar tasks share, in order; `procedures` are ordered by time."""
    known = [
        each
        for each in procedures
        if isinstance(each.detail, Procedure) and each.trust in (Trust.OUTCOME, Trust.PERSON)
    ]
    sessions = frozenset(session for each in known for session in sessions_of(each.source))
    if len(sessions) < FEWEST_SESSIONS:
        return None
    held: Counter[str] = Counter()
    for session in sessions:
        held.update(
            {step for each in known if session in sessions_of(each.source) for step in _keys(each)}
        )
    first = known[0]
    assert isinstance(first.detail, Procedure)
    steps = [
        step
        for step in first.detail.steps
        if confidence(held[_key(step)], len(sessions)) >= LEAST_SURE
    ]
    wanted = [_key(step) for step in steps]
    following = {
        session
        for each in known
        if _in_order(wanted, _keys(each))
        for session in sessions_of(each.source)
    }
    sure = confidence(len(following), len(sessions))
    if len(set(wanted)) < _FEWEST_STEPS or sure < LEAST_SURE:
        return None
    title = shared_title(tuple(dict.fromkeys(each.title for each in known))) or first.title
    when = first.detail.when if first.detail.when not in ("", first.title) else title
    numbered = " ".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    text = f"{when}: {numbered} (the same in {len(following)} of {len(sessions)} sessions)"
    return MemoryRecord(
        id=memory_id(MemoryKind.PROCEDURE, f"procedure of {leader}"),
        kind=MemoryKind.PROCEDURE,
        title=title,
        text=text,
        created=max(each.created for each in known),
        source=Provenance(RULES),
        detail=Procedure(when, tuple(steps)),
        topics=first.topics,
        task=first.task,
        ending=Ending.SUCCESS,
        confidence=round(sure, 4),
        trust=Trust.OUTCOME,
        tokens=count(text),
    )


def normal_steps(steps: Sequence[str]) -> list[str]:
    """Steps without quotation marks and without the word for running them."""
    return [_VERB.sub("", _key(step)) for step in steps]


def run_of_steps(some: Sequence[str], all: Sequence[str]) -> bool:
    """True if the first are among the second, in the same order."""
    return bool(some) and _in_order(some, all)


def proves(proof: MemoryRecord, candidate: MemoryRecord) -> bool:
    """True if another session's outcome confirms this candidate advice. Never for advice in the
    words of tools."""
    return (
        candidate.standing is Standing.CANDIDATE
        and candidate.trust is not Trust.OUTSIDE
        and proof.standing is Standing.ACTIVE
        and proof.trust in (Trust.OUTCOME, Trust.PERSON)
        and proof.kind is candidate.kind
        and bool(sessions_of(proof.source) - sessions_of(candidate.source))
        and not is_dangerous(candidate.text)
        and _advises_the_same(proof, candidate)
    )


def advice_words(memory: MemoryRecord) -> frozenset[str]:
    """The words by which related advice is found."""
    match memory.detail:
        case Pitfall(what=what):
            return statement_words(what).words
        case Procedure(steps=steps):
            return statement_words(" ".join(steps)).words
        case _:
            return frozenset()


def _advises_the_same(proof: MemoryRecord, candidate: MemoryRecord) -> bool:
    match proof.detail, candidate.detail:
        case Pitfall() as one, Pitfall() as other:
            return _says(one.what, other.what) and _says(one.instead, other.instead)
        case Procedure() as one, Procedure() as other:
            return bool(other.steps) and _in_order(
                [_key(step) for step in other.steps], [_key(step) for step in one.steps]
            )
        case _:
            return False


def _says(one: str, other: str) -> bool:
    first, second = statement_words(one), statement_words(other)
    return (
        bool(second.words)
        and word_overlap(first, second) >= _SAYS_THE_SAME
        and not conflict(first, second)
    )


def _keys(procedure: MemoryRecord) -> list[str]:
    return (
        [_key(step) for step in procedure.detail.steps]
        if isinstance(procedure.detail, Procedure)
        else []
    )


def _key(step: str) -> str:
    return _MARKS.sub(" ", step.lower()).strip(" .")


def _in_order(wanted: Sequence[str], among: Sequence[str]) -> bool:
    rest = iter(among)
    return all(step in rest for step in wanted)
