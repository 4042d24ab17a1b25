"""Steps in clusters that leave the window together: by topic, or by finished work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from hotset.nouns.page import Role
from hotset.nouns.window import Line
from hotset.window.step_sizes import Step
from hotset.window.work.worklog import finished_work

_RECENT = 3  # steps that say what a cluster is about now
_SHARED = 0.1  # of the names of a step or of these, whichever are fewer
_COMMON = 0.5  # of all steps; a name in more of them tells no topic from another
_LEAST = 3  # steps of a cluster; a shorter one joins a neighbour

Cluster = tuple[Step, ...]
Names = Callable[[Step], frozenset[str]]
_Telling = Mapping[Step, frozenset[str]]


def topic_clusters(steps: Sequence[Step], names_in: Names) -> list[Cluster]:
    """Neighbouring steps that name the same things, in conversation order."""
    parts = {step: _parts(names_in(step)) for step in steps}
    counts = Counter(name for names in parts.values() for name in names)
    common = {name for name, count in counts.items() if count > max(_RECENT, _COMMON * len(steps))}
    telling = {step: names - common for step, names in parts.items()}
    clusters: list[list[Step]] = []
    for step in steps:
        if clusters and _is_near(telling[step], _union(telling, clusters[-1][-_RECENT:])):
            clusters[-1].append(step)
        else:
            clusters.append([step])
    return [tuple(each) for each in _join_short(clusters, telling)]


def finished_clusters(lines: Sequence[Line], steps: Sequence[Step]) -> list[Cluster]:
    """The steps of each piece of finished work. Only the lines from the prompt before these steps
    on are read."""
    if not steps:
        return []
    begin = steps[0].first
    while begin and lines[begin - 1].role is Role.USER and not lines[begin - 1].answers:
        begin -= 1
    found: list[Cluster] = []
    at = 0
    for first, end in finished_work(lines[begin:]):
        while at < len(steps) and steps[at].first < begin + first:
            at += 1
        piece = at
        while at < len(steps) and steps[at].last < begin + end:
            at += 1
        if at > piece:
            found.append(tuple(steps[piece:at]))
    return found


def _join_short(clusters: Sequence[list[Step]], telling: _Telling) -> list[list[Step]]:
    """Short clusters join the neighbour with which they share more names, or the one before."""
    joined: list[list[Step]] = []
    waiting: list[Step] = []
    for at, cluster in enumerate(clusters):
        own = [*waiting, *cluster]
        waiting = []
        if len(own) >= _LEAST or (not joined and at + 1 == len(clusters)):
            joined.append(own)
            continue
        names = _union(telling, own)
        before = len(names & _union(telling, joined[-1])) if joined else -1
        after = len(names & _union(telling, clusters[at + 1])) if at + 1 < len(clusters) else -1
        if before >= after:
            joined[-1] += own
        else:
            waiting = own
    return joined


def _parts(names: frozenset[str]) -> frozenset[str]:
    """The names, and of paths the file and its folder: two files of one folder are near."""
    parts = (name.rsplit("/", 2)[-2:] for name in names if "/" in name)
    return names.union(*parts)


def _is_near(one: frozenset[str], other: frozenset[str]) -> bool:
    fewer = min(len(one), len(other))
    return not one or (fewer > 0 and len(one & other) >= _SHARED * fewer)


def _union(telling: _Telling, steps: Sequence[Step]) -> frozenset[str]:
    return frozenset().union(*(telling[step] for step in steps))
