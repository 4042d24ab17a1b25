"""Detect the kind of task from the prompt and earlier actions, to choose memories for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from hotset.nouns.memory import MemoryKind, Task
from hotset.sources.memory.kinds import KINDS
from hotset.text.words import UNSPACED


def phrases(text: str) -> str:
    """A regular expression for any of these phrases, as whole words."""
    return "|".join(
        _phrase(phrase.strip()) for phrase in re.split(r"[,\n]", text) if phrase.strip()
    )


def _phrase(phrase: str) -> str:
    parts = [_part(word) for word in phrase.split()]
    end = "" if _WITHOUT_SPACES.search(phrase[-1]) else r"(?!\w)"
    return parts[0].removeprefix(_GAP) + "".join(parts[1:]) + end


_GAP = r"\s+"
_WITHOUT_SPACES = re.compile(f"[{UNSPACED}]")


def _part(word: str) -> str:
    if word == "..":
        return r"(?:\s+[^\s.!?]+){0,8}?"
    if word.startswith("["):
        return f"(?:{_part(word[1:-1])})?"
    if word.startswith("<"):
        return f"{_GAP}(?:{phrases(_LISTS[word[1:-1]])})"
    words = "|".join(re.escape(one).replace(r"\*", r"\w*") for one in word.split("/"))
    return f"{_GAP}(?:{words})"


_LISTS: Mapping[str, str] = {
    "broken": """
        fail*, error*, bug, bugs, buggy, broken, break/breaks/breaking/broke, crash*, exception*, wrong*
        hang/hangs/hanging, stuck, leak*
        flak*, regress*, slow*, time/times/timed out, timeout*, stopped, cannot, can't, won't, never, not
        doesn't/isn't/don't/aren't/didn't
        returns null/none/nothing/500, missing, empty, twice, disappear*, ignored, red""",
    "trouble": (
        "bug, crash, failure, failing, error, leak, regression, "
        "flak*, problem, issue, deadlock, "
        "root cause, cause of"
    ),
    "small": """
        typo*, spelling, grammar, wording, formatting, indentation, whitespace, docs/documentation, readme
        comment/comments, link/links""",
    "shape": """
        structure, readability, maintainability, naming, names, modularity, duplicat*, coupling, cohesion, mess, complexity""",
    "change": """
        pr, prs, pull request/requests, merge request/requests, mr, diff/diffs, patch, changes, commit/commits
        branch, migration""",
    "finding": """
        issues, problems, vulnerabilities, mistakes, weaknesses, smells, concerns, risks, race conditions, holes
        anything risky""",
    "sound": """
        safe, correct, right, ok/okay, sound, good, ready, thread-safe, idiomatic, secure, enough, complete, sane
        acceptable, fine, reasonable
        best practice""",
    "unsound": "insecure, unsafe, wrong, off, odd, risky, suspicious, missing, dangerous, fishy",
    "place": """
        function*, helper*, module*, class/classes, file/files, method*, package*, component*, hook/hooks
        interface*, service*, pieces, parts
        layer*, own, separate""",
    "this": "this, these, that, my, our, the, it, all, every, we, no, everything, your",
    "question": (
        "where, which, how, what, who, when, whether, if we, all [the] "
        "places/callers/usages/uses/files/references"
    ),
    "paper": (
        "summary, overview, report, comparison, explanation, "
        "introduction, tour, analysis, plan "
        "on/for/to"
    ),
}

POLITE = """
    i/we want/need to know, i was wondering, i wonder
    hey, hi, hello, ok/okay, alright, thanks, great, cool, well, so, now, next, first, also, just, simply, quickly
    maybe, actually, again
    please/pls, kindly, claude, codex, team, task, todo, goal, plan, feature, ticket, feat, chore, context, request
    can/could/would/will you/we/u, i/we want/need/like/have/wish to, i/we want/need you to, i/we would like [you] to
    i'd/we'd like [you] to
    let's/lets, let us, help me/us [to], go ahead and, try to, make sure to, your task/job/goal is to
    the task/goal is to, you should/must
    it's time to, it is time to, time to, we/i should, i'm trying to, i am trying to, trying to, do a/an, give me
    perform a/an
    carry out a/an, have/take a
    bitte, kannst du, könntest du, wir müssen, ich möchte, por favor, puedes, podrías, necesito, quiero
    s'il te plaît, s'il vous plaît
    peux-tu, pourrais-tu, pouvez-vous, je veux, 请你, 请, 帮我, 麻烦你, 麻烦, 我想, 我们需要, 把这个"""
"""Words before the request that say nothing of it."""

DENIALS = """
    do not, don't/dont, doesn't/didn't/isn't/aren't/wasn't, no need to/for, never, not, without, avoid, stop
    instead of, rather than, no, nor
    nicht, kein, keine/keinen, ohne, sin, ne, sans, pas de, 不要, 别, 没有"""

HEADS: tuple[tuple[Task, float, str], ...] = (
    # Verbs whose object decides.
    (
        Task.IMPLEMENTATION,
        3.0,
        "fix/correct/update [the/a/an/some/all/any/this/my/our] [broken/wrong/minor/small] <small>",
    ),
    (Task.REFACTORING, 4.0, "fix/improve/change/reduce/remove/eliminate .. <shape>"),
    (
        Task.DEBUGGING,
        4.0,
        """
        find/see/check/look/explain/understand/investigate/analyze/analyse/determine/figure/tell/dig .. why .. <broken>
        find/see/check/look/explain/understand/investigate/analyze/analyse/determine/figure/tell/dig .. what is/went wrong/broken
        find/see/check/look/explain/investigate/analyze/analyse/determine/figure/tell/dig .. what is causing/breaking
        find/see/check/look/explain/investigate/analyze/analyse/determine/figure/tell/dig .. what's wrong/broken/causing/breaking
        find/look/understand/investigate/analyze/analyse/determine/dig/check/explain .. the <trouble>
        investigate/diagnose .. <trouble>, find out why, why .. <broken>, how come .. <broken>
        what's wrong/broken/failing/causing/breaking/happening
        what is/went wrong/broken/failing/causing/breaking/happening, what could be wrong
        what's going on, what is going on""",
    ),
    (
        Task.REVIEW,
        4.0,
        """
        check/look/read/go/inspect/examine/analyze/analyse/assess/see/scan .. <change>
        find/list/flag/point/spot/look/search/identify .. <finding>
        is/are/does/do/did <this> .. <sound>, any <finding>, any feedback/thoughts/objections/comments
        do you see .. <finding>
        are/is there .. <finding>, is there anything <unsound>, what would you improve/change
        does/is anything .. <unsound>, what did i/we miss, what do you think of/about
        what's wrong with this approach/design/code
        check/double-check/confirm/verify/ensure [that] <this>, check/verify/confirm if/whether <this> .. <sound>""",
    ),
    (
        Task.REFACTORING,
        4.0,
        """
        extract/pull/break/split/factor/separate/divide/lift/hoist/turn/convert/move .. into/to .. <place>
        pull/break/split/factor/move .. out/up/apart, turn/convert/break/split .. into/to, use .. instead of
        group .. by, merge/unify/combine/collapse these/the/both/two
        make/get .. cleaner/simpler/nicer/shorter/smaller/dry, make .. more readable/modular
        make .. easier to read/maintain/follow/test
        remove/delete/drop .. dead code, remove/delete/drop .. unused/duplicate*/boilerplate/redundan*, get rid of""",
    ),
    (
        Task.EXPLORATION,
        4.0,
        """
        find/check/see/figure/work/show/tell/list/determine/explain/describe/document/look/trace .. <question>
        write/give/make/draft/create/produce/provide .. <paper>, trace .. from .. to""",
    ),
    # Verbs and questions by themselves.
    (
        Task.REVIEW,
        4.0,
        """
        review/reviewing, code review/code-review, audit, inspect, proofread/proof-read, critique, validate, verify
        double-check, vet, lint
        second opinion, second/fresh pair of eyes, sanity check/sanity-check, evaluate, assess, rate, grade, judge
        look over, feedback
        überprüfe, prüfe, prüfen, begutachte, revisa, revisar, audita, verifica, revois, relis, relire, vérifie
        vérifier, vérifiez
        审查, 评审, 检查, 审核""",
    ),
    (
        Task.REFACTORING,
        4.0,
        """
        refactor*/re-factor, restructure, reorganize/reorganise, clean up/clean-up/cleanup, clean, tidy [up]
        simplify, rename, move, decouple
        deduplicate/de-duplicate/dedupe, modernize/modernise, untangle, streamline, inline, encapsulate, flatten
        shorten, harmonize/harmonise
        unify, dry up, modularize/modularise
        generalize/generalise, consolidate, pay down
        refaktoriere, strukturiere, vereinheitliche, räume, benenne, vereinfache, refactoriza, reestructura
        simplifica, renombra, limpia
        refactorise, restructure, renomme, nettoie, simplifie, 重构, 重命名, 整理, 简化, 拆分""",
    ),
    (Task.REFACTORING, 2.0, "optimize/optimise, replace, swap, migrate, speed up"),
    (
        Task.EXPLORATION,
        4.0,
        """
        explore, understand, research, explain, describe, summarize/summarise, compare, learn, study, get familiar
        familiarize/familiarise
        walk me/us through, outline, map [out], estimate, get up to speed, discover, survey, brainstorm
        tell me about/more, show me, overview of
        how does/do/is/are/did/would/can/should/many/much, what is/are/does/do/did/happens/kind/would, what's
        where is/are/do/does/did, where's
        which, who, when does/is/do/did/was, why do/did/does/is/are/was, is/are there, is it possible, do we have/use/support
        does this/the/it support/use/have/handle
        erkläre, erklär, erkunde, verstehe, wie funktioniert, wo ist/wird/werden/sind, was ist/macht, welche
        explica, explora, entender
        cómo funciona, dónde está/se, qué es/hace, cuál, explique*, comprendre, comment fonctionne/marche, où est/se
        qu'est-ce, quel/quelle
        解释, 了解, 探索, 说明, 介绍, 怎么, 如何, 什么是, 哪里, 在哪""",
    ),
    (
        Task.DEBUGGING,
        4.0,
        """
        fix/fixing, debug, troubleshoot, diagnose, reproduce, hotfix, resolve, bisect, unbreak, track/hunt down
        get to the bottom
        how do/can/should i/we fix/debug/solve, solve
        behebe, repariere, debugge, finde den fehler, warum, wieso, arregla, corrige, depura, soluciona, por qué
        répare, corriger, corrigez, débogue, résous, pourquoi, 修复, 修正, 调试, 排查, 解决, 为什么""",
    ),
    (
        Task.EXPLORATION,
        1.5,
        """
        investigate, analyze/analyse, find, search, look at/into/for/up, look, read, list, check [out], figure out
        locate, identify, go through
        think, plan""",
    ),
    (Task.IMPLEMENTATION, 1.0, "implement the/this/that [following/attached/above/approved] plan"),
    (
        Task.IMPLEMENTATION,
        4.0,
        """
        implement, create, build, add, write, develop, construct, introduce, generate, scaffold, set up/setup
        wire [up], integrate, extend
        support, enable, expose, design, port, draft, provide, allow, hook up, bootstrap, ship, deliver, insert
        append, include, code
        prototype, configure, bump, upgrade, install, deploy, release, publish
        implementiere, erstelle, baue, füge, schreibe, ergänze, implementa, crea, crear, añade, agrega, escribe, construye
        implémente, implémenter, crée, créer, ajoute, ajouter, écris, écrire, 实现, 添加, 新增, 创建, 编写, 增加, 开发
        写一个, 写个, 做一个""",
    ),
    (
        Task.IMPLEMENTATION,
        3.0,
        (
            "make, update, change, start, use, let, turn on, put, show, display, commit, push, "
            "run, continue, finish, complete"
        ),
    ),
)
"""How a requesting clause begins, and how sure that is. The first match wins."""

SIGNS: Mapping[Task, str] = {
    Task.DEBUGGING: """
        bug, bugs, buggy, broken, crash/crashes/crashed/crashing, stack trace/traces, stacktrace
        traceback/tracebacks, exception/exceptions
        fails, failing, failed, failure/failures, error message/messages, error/errors, regression, root cause, reproduce
        steps to reproduce, expected behavior/behaviour, actual behavior/behaviour/result/results, stopped working
        does/did/do/is/are/was not, does nothing, nothing is/was/happens/changes, nobody can, but not
        all of a sudden, suddenly, killed
        i'm/we're seeing/getting, i am seeing/getting, no matching, not found, undefined
        doesn't/didn't/isn't/aren't/won't/can't/cannot/couldn't, no longer, any idea
        hang/hangs, deadlock, memory leak, flaky, segfault/segfaults, goes/went wrong, wrong, incorrect/incorrectly
        unexpected/unexpectedly
        off by one, blank, twice, is red, stuck, getting a/an/this/the, i get a/an/this, users report
        worked yesterday/before, exits with
        fix the/this/that issue/bug/problem, permission denied
        fehler, stürzt, kaputt, funktioniert nicht, fehlgeschlagen, error al, falla, fallo, roto
        no funciona/arranca, geht nicht
        plante, échoue, panne
        ne marche/fonctionne pas, 报错, 崩溃, 失败, 错误, 异常, 不工作""",
    Task.REVIEW: """
        review/reviews/reviewing/reviewed, code review, feedback, audit, pull request, merge request, before i/we merge/ship
        ready/safe/good to merge, about to ship/merge, best practices, nitpick/nitpicks, lgtm, coding standards
        vulnerabilit*, code quality
        approve, pr #*, 代码审查, 安全漏洞""",
    Task.REFACTORING: """
        refactor/refactored/refactoring, restructur*, clean/cleaned/cleaning up, clean-up/cleanup, tidy, duplicated
        duplication, dead code
        technical/tech debt, code smell/smells, spaghetti, without [any] changing/changes [the/its] behavior/behaviour
        no behavior/behaviour/behavioral/behavioural/functional change/changes, same behavior/behaviour
        behavior/behaviour must/should stay/remain
        does everything, god class/object, readab*, maintainab*, big mess, untangle, decoupl*, single responsibility
        more modular
        too long, 重构, 拆分""",
    Task.EXPLORATION: """
        overview, architecture, understand, high level/high-level, where is/are, walk me/us through, options
        trade-offs/tradeoffs
        pros and cons, deep analysis, don't change/edit/write/touch any/anything/code, no [code] changes yet
        read only/read-only, curious
        wonder/wondering, new to this/the, onboard*, 架构, 概述, 在哪里""",
    Task.IMPLEMENTATION: """
        new feature/endpoint/command/option/flag/page/button/field/module/test/tests/component/api/setting/column/class/function
        feature request, implement/implemented/implementing, acceptance criteria, user story, from scratch, should be able to
        should support/accept, to be able to, adding/add support, mvp, prototype, we need a/an, 新功能""",
}
"""Words that indicate a task anywhere in a text."""

STATEMENTS = """
    the, my, our, a, an, it, this, there, some, after, when, since, users, customers, people, everything, nothing
    nobody, running, i get, i got
    der, die, das, meine, nach, el, la, los, mi, le, les, mon, ma, après"""
"""How a sentence begins that reports and requests nothing."""

WISHES = """
    should, need/needs/needed, must, want/wants, would like, i'd/we'd like/love, wish, could, ought, please
    can/could we, has/have to
    soll/sollte, muss, debería, debe, devrait, doit"""
"""What makes a wish of it."""

PHASES: tuple[tuple[Task, float, str], ...] = (
    (
        Task.EXPLORATION,
        4.0,
        "plan, planning, discovery, research, exploration, exploring, design, investigation",
    ),
    (Task.IMPLEMENTATION, 4.0, "development, implementation, coding, building, implementing"),
    (Task.DEBUGGING, 4.0, "debug, debugging, troubleshooting, fixing, diagnosis"),
    (Task.REVIEW, 4.0, "review, reviewing, qa, validation, verification, audit"),
    (
        Task.REFACTORING,
        4.0,
        "refactor, refactoring, cleanup/clean-up, optimization/optimisation, restructuring",
    ),
    (Task.IMPLEMENTATION, 1.0, "changing, editing"),  # a fix and a clean-up change files as well
    (Task.DEBUGGING, 1.0, "testing"),
)
"""Names of phases. A phase named after a task decides it."""

TRACES = re.compile(
    r"""
    Traceback\ \(most\ recent\ call\ last\) | ^Caused\ by:\ . | Exception\ in\ thread | panicked\ at\s | core\ dumped
    | [Ss]egmentation\ fault | ^[ \t]*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Panic|Fault)\b(?::|\ in\s)
    | ^[ \t]+at\ .+\([^()\n]+:\d+(?::\d+)?\) | ^[ \t]+at\ .+:\d+:\d+$ | ^[ \t]*File\ "[^"\n]+",\ line\ \d
    | ^(?:FAILED|ERROR)\ [\w./-]+(?:::|\ -\s) | ^E\ \ \ +\S | ^---\ FAIL:\s | ^[ \t]*✕\s | ^FAIL\ +\S
    | \b[1-9]\d*\ (?:tests?\ )?failed\b(?=,|\ in\s|$) | \berror\[E\d{4}\] | \berror\ TS\d{3,5}\b | ^npm\ ERR!
    | undefined\ reference\ to\ ` | ^fatal:\s | ^make(?:\[\d+\])?:\ \*\*\* | ^[\w./-]+:\d+(?::\d+)?:\ (?:fatal\ )?error:\s
    | \bexit(?:s|ed)?\ (?:with\ )?(?:code|status)\ [1-9]\d*\b | ^cannot\ import\ name\s | ^No\ module\ named\s
    """,
    re.MULTILINE | re.VERBOSE,
)
"""Errors and failing tests as programs print them."""


KIND_WEIGHTS: Mapping[Task, Mapping[MemoryKind, float]] = {
    task: {kind: traits.weights[task] for kind, traits in KINDS.items() if traits.weights}
    for task in Task
}
"""How much of each kind a task wants; every row sums to 1."""


@dataclass(frozen=True, slots=True)
class TaskGuess:
    task: Task
    confidence: float
    """From 0 (no evidence, or two tasks equally) to 1."""
    because: tuple[str, ...] = ()
    """The evidence, strongest first."""


def detect_task(goal: str, actions: Sequence[str] = (), phase: str = "") -> TaskGuess:
    """Guess the task. `actions`: tools, each with its command or path if it has one (`Bash pytest
    -q`, `Read src/a.py`)."""
    evidence = [*_from_words(goal), *_from_actions(actions), *_from_phase(phase)]
    scores = dict.fromkeys(Task, 0.0)
    for one in evidence:
        scores[one.task] += one.weight
    best, second = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
    if not scores[best]:
        return TaskGuess(Task.IMPLEMENTATION, 0.0)
    if scores[best] == scores[second] and scores[Task.IMPLEMENTATION] == scores[best]:
        best = Task.IMPLEMENTATION
    confidence = max(0.0, scores[best] - scores[second]) / (scores[best] + _DOUBT)
    reasons = sorted((one for one in evidence if one.task is best), key=lambda one: -one.weight)
    return TaskGuess(
        best, round(confidence, 3), tuple(dict.fromkeys(one.why for one in reasons))[:_REASONS]
    )


@dataclass(frozen=True, slots=True)
class _Evidence:
    task: Task
    weight: float
    why: str


_DOUBT = 1.0  # the worth of a single weak sign: alone it gives a confidence of one half
_REASONS = 4
_TRACE = 4.0  # as much as the head of the first sentence
_SIGN = 1.0
_SIGNS_AT_MOST = 3  # for a task: a long text contains every word somewhere
_SURE = 3.0  # a head of this weight is the request; those behind it say how
_LATER = 0.4  # of a head behind a sure one
# characters from the start, a title and what follows: the steps of a plan contain every verb
_NEAR = 600
_FAR = 0.25  # of what comes after that
_START, _END = 3000, 700  # characters: people who paste a log or a file ask before or after it


def _from_words(goal: str) -> Iterator[_Evidence]:
    text = _WRAPPED.sub(
        " ", _BLANKS.sub(lambda hit: hit[0][:_BLANKS_KEPT], _ends(goal, _PASTED, _PASTED_END))
    )
    if trace := TRACES.search(text):
        yield _Evidence(
            Task.DEBUGGING, _TRACE, f"an error in the text ({' '.join(trace[0].split())[:40]})"
        )
    prose = _ends(_prose(text), _START, _END)
    asked = list(_from_heads(prose))
    yield from asked
    if all(one.weight < _SURE for one in asked):
        yield from _from_statement(prose)
    yield from _from_signs(prose)


def _ends(text: str, start: int, end: int) -> str:
    return text if len(text) <= start + end else f"{text[:start]}\n{text[-end:]}"


_PASTED, _PASTED_END = 30_000, 10_000  # characters in which an error is looked for
_BLANKS = re.compile(r"\n{4,}|[^\S\n]{9,}")  # a long run of them costs its square
_BLANKS_KEPT = 4
_WRAPPED = re.compile(
    r"<(system-reminder|local-command-[a-z]+|command-(?:name|message|args)|"
    r"environment_context|permissions instructions"
    r"|user_instructions|INSTRUCTIONS)>.*?(?:</\1>|\Z)|<!--.{,2000}?-->",
    re.DOTALL,
)
"""What clients put around a prompt, and the hints of issue templates: not part of the goal."""


def _prose(text: str) -> str:
    """The text without code, paths and quotations; all of it if nothing else is left."""
    prose = _QUOTED.sub(" … ", _FENCED.sub("\n", text))
    return prose if len(_WORD.findall(prose)) > 1 else text


_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(
    r"""
    `[^`\n]*` | "[^"\n]{1,300}" | “[^”\n]{1,300}” | «[^»\n]{1,300}» | „[^“”\n]{1,300}[“”] | 「[^」\n]{1,300}」
    | (?<!\w)'[^'\n]{2,300}'(?!\w)
    | https?://\S+ | (?<![^\s(])[\w@~.-]*(?:/[\w@.*-]+)+/?                       # addresses and paths
    | \b\w+(?:\.\w+)+\b | \b\w*_\w+\b | \b[a-z]+[A-Z]\w* | (?<!\S)--?[a-z][\w-]*   # names of files, functions and options
    | ^[ \t]*>.*$ | ^[ \t]{4,}\S.*$                                               # quoted and indented lines
    """,
    re.MULTILINE | re.VERBOSE,
)
_WORD = re.compile(r"\w+")


def _from_heads(prose: str) -> Iterator[_Evidence]:
    """What each clause asks for."""
    seen: set[Task] = set()
    is_asked = False
    for start, clause in _clauses(prose):
        request = _pattern(POLITE, r"[\W_]*(?:(?:{})[\W_]*)*").sub("", clause, count=1)
        if _pattern(DENIALS).match(request):
            continue
        for task, weight, words in HEADS:
            if hit := _pattern(words).match(request):
                if task not in seen:
                    place = (_LATER if is_asked else 1.0) * _nearness(start)
                    yield _Evidence(task, weight * place, f"asks to “{_first_words(hit[0])}”")
                seen.add(task)
                is_asked = is_asked or weight >= _SURE
                break


def _clauses(prose: str) -> Iterator[tuple[int, str]]:
    start = 0
    for end in _clause().finditer(prose):
        yield start, prose[start : end.start()]
        start = end.end()
    yield start, prose[start:]


def _nearness(start: int) -> float:
    return 1.0 if start < _NEAR else _FAR


def _from_statement(prose: str) -> Iterator[_Evidence]:
    """A prompt without request and wish reports a problem."""
    statement = _pattern(STATEMENTS, r"[\W_]*(?:{})\s+\w+").match(prose[:_NEAR])
    if statement and not _pattern(WISHES, r"(?<!\w)(?:{})").search(prose[:_NEAR]):
        yield _Evidence(
            Task.DEBUGGING, _SIGN, f"reports something (“{_first_words(statement[0])} …”)"
        )


@cache
def _pattern(words: str, form: str = "{}") -> re.Pattern[str]:
    """Compiled on first use: that takes a twentieth of a second, which start-up need not wait
    for."""
    return re.compile(form.format(phrases(words)), re.IGNORECASE)


@cache
def _clause() -> re.Pattern[str]:
    joins = phrases(
        "and [then], then, but, so that, und [dann], dann, y [luego], luego, et, puis, ensuite"
    )
    return re.compile(
        rf"[.!?;:,]+(?=\s|$)|[\n\u3002\uff01\uff1f\uff1b\uff0c]+|,?\s+(?:{joins})\s+(?=\w)"
    )


def _first_words(text: str) -> str:
    return " ".join(text.split()[:3]).lower()


def _from_signs(prose: str) -> Iterator[_Evidence]:
    denial = _pattern(
        DENIALS, r"(?<!\w)(?:{})(?:\s+(?:a|an|any|the|to|yet|do|be|really|need))*\s*$"
    )
    for task, words in SIGNS.items():
        found: dict[str, float] = {}
        for hit in _pattern(words, r"(?<![a-zA-Z])(?:{})").finditer(prose):
            if not denial.search(prose[max(0, hit.start() - _DENIED_WITHIN) : hit.start()]):
                found.setdefault(" ".join(hit[0].lower().split()), _SIGN * _nearness(hit.start()))
        for word, weight in list(found.items())[:_SIGNS_AT_MOST]:
            yield _Evidence(task, weight, f"says “{word}”")


_DENIED_WITHIN = 30  # characters before the word: "not a", "no need for any"


def _from_actions(actions: Sequence[str]) -> Iterator[_Evidence]:
    acts = [act for action in actions[-_RECENT:] if (act := _act(action))]
    if not acts:
        return
    share = {act: acts.count(act) / len(acts) for act in set(acts)}
    reason = f"actions: {', '.join(sorted(share, key=lambda act: (-share[act], act)))}"
    changes = [at for at, act in enumerate(acts) if act in {"change", "make", "move"}]
    if not changes:
        yield _Evidence(Task.EXPLORATION, _ACTIONS * share.get("look", 0.0), reason)
        yield _Evidence(Task.REVIEW, _ACTIONS * min(1.0, 2 * share.get("compare", 0.0)), reason)
    before = acts[: changes[0]] if changes else acts
    if "test" in before or "trace" in before:
        yield _Evidence(Task.DEBUGGING, _ACTIONS, f"{reason}; ran it before changing anything")
    if "move" in share:
        yield _Evidence(Task.REFACTORING, _ACTIONS * min(1.0, 3 * share["move"]), reason)
    if "make" in share or "change" in share:
        yield _Evidence(
            Task.IMPLEMENTATION, max(_ACTIONS * share.get("make", 0.0), _CHANGED), reason
        )


# less than the first sentence's head: every task reads, and most of them change something
_ACTIONS = 3.0
_CHANGED = 1.0  # a fix and a clean-up change files as well
_RECENT = 40


def _act(action: str) -> str:
    name, _, rest = action.strip().partition(" ")
    tool = _HUMP.sub("_", name.rpartition("__")[2].strip(":")).lower()
    command = rest if _SHELL.fullmatch(tool) else action
    by_tool = (act for act, pattern in _TOOLS.items() if pattern.fullmatch(tool))
    by_command = (act for act, pattern in _COMMANDS.items() if pattern.search(command))
    return next(chain(by_tool, by_command), "")


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHELL = re.compile(
    r"(?:bash|sh|shell|zsh|exec_command|exec|local_shell|local_shell_call|run_command|"
    r"run_in_terminal|run_terminal_cmd|execute_command|terminal)"
)
_TOOLS: Mapping[str, re.Pattern[str]] = {
    "look": re.compile(
        r"read|read_\w+|view|view_\w+|open|open_file|cat|grep|grep_\w+|glob|glob_\w+|ls|list|"
        r"list_\w+|search|search_\w+|find|find_\w+|file_search|codebase_search"
        r"|web_?search|web_?fetch|fetch|get_\w+|notebook_read|semantic_search|symbols?|tree|"
        r"repo_map"
    ),
    "move": re.compile(r"move|move_\w+|rename|rename_\w+|extract_\w+|delete_file|inline_\w+"),
    "make": re.compile(
        r"write|write_(?!stdin)\w+|create|create_file|new_file|save_file|add_file|insert_content"
    ),
    "change": re.compile(
        r"edit|edit_\w+|multi_?edit|apply_patch|apply_diff|patch|str_replace\w*|"
        r"search_replace|replace_\w+|update_file|notebook_edit|insert|edit_block"
    ),
    "test": re.compile(r"run_tests?|test|tests|run_test_\w+|pytest|jest"),
    "trace": re.compile(
        r"check_logs?|trace|get_logs?|read_logs?|debug\w*|get_errors|diagnostics|"
        r"get_diagnostics|inspect_\w+"
    ),
    "compare": re.compile(
        r"diff|git_diff|review_\w+|check_style|get_pull_request\w*|get_diff|lint|run_lint\w*|"
        r"_?fetch_pr|create_review|add_review_comment"
    ),
}
_COMMANDS: Mapping[str, re.Pattern[str]] = {
    "test": re.compile(
        r"\b(?:pytest|unittest|nosetests|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|gotestsum)\b"
        r"|\b(?:npm|yarn|pnpm|bun|cargo|go|make|mvn|gradle|gradlew|dotnet|mix|swift|rake|deno)"
        r"\s+(?:run\s+)?test\b"
        r"|\bruntests\b|\brepro(?:duce)?\w*\.\w+"
    ),
    "trace": re.compile(
        r"\b(?:pdb|gdb|lldb|strace|dmesg|journalctl|git "
        r"bisect)\b|\b(?:tail|less|cat|grep)\b[^|;&]*\.log\b"
        r"|\b(?:docker|kubectl) logs\b"
    ),
    "compare": re.compile(
        r"\bgit (?:diff|show|log|blame)\b|\bgh pr (?:diff|view|review|checks)\b"
        r"|\b(?:ruff check|eslint|mypy|pylint|flake8|clippy|golangci-lint)\b"
    ),
    "move": re.compile(r"(?:^|[;&|]\s*)(?:git mv|mv|git rm)\s"),
    "make": re.compile(
        r"(?:^|[;&|]\s*)(?:mkdir|touch)\s|\bcat\s*>+\s*\S+\s*<<|\btee\s+\S+\s*<<"
        r"|\bnpm (?:init|create)\b|<<\s*['\"]?EOF['\"]?\s*>\s*\S"
    ),
    "change": re.compile(
        r"\bsed\s+(?:-\w+\s+)*-i|\bperl\s+-\w*i|\bgit apply\b|\bpatch\s+-p|\bapply_patch\b"
    ),
    "look": re.compile(
        r"(?:^|[;&|]\s*)(?:rg|grep|find|ls|cat|head|tail|sed -n|nl|tree|wc|fd|bat|less|ag|awk"
        r"|git (?:status|ls-files|grep))(?:\s|$)"
    ),
}
"""The first match wins: running a test and printing its end is running a test."""


def _from_phase(phase: str) -> list[_Evidence]:
    return [
        _Evidence(task, weight, f"phase “{phase.strip()}”")
        for task, weight, words in PHASES
        if _pattern(words, r"\b(?:{})").search(phase)
    ]
