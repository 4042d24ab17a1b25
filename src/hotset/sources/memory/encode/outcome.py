"""Describe a span of work: topics, title, text, outcome and what is left open. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Checkpoint, Ending
from hotset.sources.memory.encode.procedures import (
    in_project,
    is_file,
    is_throwaway,
    parts_of,
    work_root,
)
from hotset.sources.memory.encode.speakers import (
    LEAST_SENTENCE,
    OutsideWords,
    is_dangerous,
    is_order,
    is_suspect,
    quote,
)
from hotset.sources.memory.encode.statements import clauses, is_stated
from hotset.text.clip import clip_prose, first_words
from hotset.text.sentences import sentences, without_fences
from hotset.text.terms import topic_words
from hotset.text.words import once, word_set
from hotset.window.work.calls import Act, ActKind, check_family
from hotset.window.work.endings import WorkOutcome, plan_items
from hotset.window.work.file_changes import changed_files
from hotset.window.work.mishaps import Mishap

MOST = 4
_OF_FILES = 2
_LOOKED_AT = 4000
# characters at the beginning of a text; each word there counts more
_HEAD = 240
_HEAD_WEIGHT = 3
_LONGEST_TOPIC = 24
_COMMON_FOLDERS = word_set("""
    src lib libs app apps packages package tests test spec specs docs doc main index home users user
    code workspace workspaces projects project repos repo tmp var opt usr internal pkg cmd source
    sources components component utils util helpers common shared core modules module testbed dist
    build public static scripts bin init mod types config configs frontend backend server client api
    services service pages views features node_modules readme changelog package-lock tsconfig
    """)
_DULL = word_set("""
    new old good bad big small many day days week year time times today tomorrow yesterday people
    person someone everything something question questions answer option options example sentence
    word words line lines step steps section number list name names value values type types text
    user users model agent agents message messages session case cases part point result results
    output input version current latest different same possible sure thing stuff bit idea ideas
    order start end begin based including specific recent really please thank interested looking
    wondering thinking recommend recommendation suggestion tip advice information detail helpful
    definitely feature branch repository pull request path line error errors warning support handle
    provide include ensure return run running call called want need use using work working read
    write look fail failed found find command always never again remember remembered note somewhere
    better best second third ids info mention ask decide save main misleading correct python python3
    node bash sudo home localhost unrecognized quickest potential hoping hope later open close
    detect detected introduce introduced require confident inconsistent approach direct default
    custom purpose investigate align clarify modify src tsx jsx json yaml toml january february
    march april may june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday upcoming understand concerned there tool tools description statu
    source http https www com org github html true false null none
    """)
_ADVERB = re.compile(r"(?!assembly|anomaly|monopoly|butterfly)[a-z]{5,}ly")
_WORDY = re.compile(r"[a-z][a-z0-9_.+-]*[a-z0-9+]|[a-z]{3,}")


_A_VERB = re.compile(
    r"(?im)^\W*[a-z]+(?=\s+(?:the|an?|all|our|my|this|these|those|every|each|it|them)\b)"
    r"|(?<=\bto )[a-z]+(?=\s+(?:the|an?|all|our|my|this|it)\b)"
    r"|(?<=\b(?:is|be) )[a-z]+(?=\s+(?:on|in|by|with|to|as|at|from|for)\b)"
    r"|(?<=\bare )[a-z]+(?=\s+(?:on|in|by|with|to|as|at|from|for)\b)"
    r"|(?<=\b(?:was|not) )[a-z]+(?=\s+(?:on|in|by|with|to|as|at|from|for)\b)"
)
"""A verb where English has one: "Rotate the keys", "to publish it", "are cut on Tuesdays". It says
what is done, not what it is about."""


def topics_of(text: str, files: Sequence[str] = ()) -> tuple[str, ...]:
    """At most four topics: where the work was done, then the most frequent and earliest words."""
    found = [*_from_files(files)]
    prose = _A_VERB.sub(" ", without_fences(text[:_LOOKED_AT]))
    taken = {part for topic in found for part in re.split(r"[/ _.-]", topic)}
    for word in _from_words(prose):
        if len(found) >= MOST:
            break
        if word not in taken and not any(
            word in part or part in word for part in taken if len(part) > 3
        ):  # stems
            found.append(word)
            taken.add(word)
    return tuple(found[:MOST])


def _from_files(files: Sequence[str]) -> list[str]:
    """The folders, or the names, that most of the files have in common."""
    counted: Counter[str] = Counter()
    for path in files:
        parts = [part for part in re.split(r"[/\\]", path.lower()) if part]
        if not parts:
            continue
        stem = parts[-1].split(".")[0].removeprefix("test_").removesuffix("_test").strip("_-")
        folder = next((part for part in reversed(parts[:-1]) if _is_telling(part)), "")
        if _is_telling(stem):
            counted[
                f"{folder}/{stem}" if folder and len(folder) + len(stem) < _LONGEST_TOPIC else stem
            ] += 1
        elif folder:
            counted[folder] += 1
    return [
        name
        for name, _ in sorted(
            counted.items(), key=lambda each: (-each[1], list(counted).index(each[0]))
        )
    ][:_OF_FILES]


def _is_telling(part: str) -> bool:
    return (
        part not in _COMMON_FOLDERS
        and len(part) > 2  # `a`, `x1`
        and len(part) <= _LONGEST_TOPIC
        and not part.startswith((".", "agents-eval-"))
        and re.fullmatch(r"[a-z][a-z_-]*[a-z0-9]*", part) is not None
    )


def _from_words(text: str) -> list[str]:
    counted: Counter[str] = Counter()
    for word in topic_words(text):
        if (
            word not in _DULL
            and len(word) <= _LONGEST_TOPIC
            and _WORDY.fullmatch(word)
            and not _ADVERB.fullmatch(word)
        ):
            counted[word] += 1
    head = {word for word in topic_words(text[:_HEAD]) if word in counted}
    order = {word: number for number, word in enumerate(counted)}
    return sorted(
        counted, key=lambda word: (-(counted[word] + _HEAD_WEIGHT * (word in head)), order[word])
    )


LONGEST_GOAL = 200
_TITLE_WORDS = 10
_LONGEST_TITLE = 90
_LONGEST_TEXT = 620  # characters: about 160 tokens, of which paths take many
_LONGEST_REPLY = 220
_LONGEST_ANSWER = 320
_LONGEST_CONSTRAINT = 120
_MOST_CONSTRAINTS = 4
_CONCLUDES = re.compile(
    r"(?:so|in short|in summary|overall|recommendation|conclusion|decision|bottom line|therefore)"
    r"\b[,:]|(?:i(?:'d| would)|let's|we(?:'ll| will| should)) (?:go with|use|pick|choose|recommend|"
    r"keep)\b|the (?:fix|cause|reason|answer|root cause|culprit) (?:is|was)\b",
    re.IGNORECASE,
)
"""How a sentence begins with which a reply concludes."""
_CHANGED_EXTRA = 24  # characters around the names of changed files
_FOLDERS = re.compile(r"(?<= )/(?:[\w.@-]+/)+(?=[\w.@-]+/[\w.@-]+)")
"""The folders of a whole path but for the last."""
_OPINION = re.compile(r"(?:i (?!want|need|prefer|'d)|i'm|it |there )", re.IGNORECASE)
_CONSTRAINS = re.compile(
    r"\b(?:must(?: not|n't)?|don'?t|do not|only|never|without|no more than|at most|at least|"
    r"(?:under|within|below) \d+|unless|make sure|should(?: not|n't)|avoid|except|keep (?!going)|"
    r"has to|have to stay|needs to stay|stay)\b",
    re.IGNORECASE,
)
_LONGEST_COMMAND = 80  # characters; longer ones are scripts
_CHORE = re.compile(
    r"(?:rm|echo|printf|mkdir|touch|mv|cp|chmod|git (?:add|config|stash|checkout))\b"
)
_MOST_FILES_NAMED, _MOST_COMMANDS_NAMED, _MOST_TROUBLES_NAMED = 4, 2, 3
_POLITE = re.compile(
    r"(?:(?:hi|hello|hey|ok(?:ay)?|alright|great|thanks?|thank "
    r"you|please|so|now|well|yes|also|and|bonjour)(?: there)?[,.!]*\s+)*"
    r"(?:(?:can|could|would|will) you (?:please |help me )?|(?:i(?:'d| would) like|i want|i need"
    r"|i'm looking|i'm trying|i am trying)(?: you)? to |please |help me (?:to )?|let's |lets )?",
    re.IGNORECASE,
)
_LEADS_IN = re.compile(r".{0,80}:\s*$")
_HEADING = re.compile(
    (
        r"^\s*#{1,4}\s+(?:plan|fix|task|feature|bug(?: "
        r"?fix)?|assessment|goal)?\s*[:\u2013—-]?\s*(\S.{2,160})$"
    ),
    re.IGNORECASE | re.MULTILINE,
)
_MARKUP = re.compile(r"\*\*|`|^\s*(?:[-•*]|#{1,6})\s+", re.MULTILINE)
_LABEL = re.compile(
    (
        r"#{0,6}\s*(?:context|description|summary|overview|background|plan|goal|problem|details?)"
        r"\s*:?\s*"
    ),
    re.IGNORECASE,
)
_COMMAND_NAME = re.compile(r"^/[\w:-]+\s+(?=\S)")
_HEDGES = re.compile(
    r"^(?:now |ok(?:ay)?,? |great[,!.]? |perfect[,!.]? )?(?:let me|i'll|i will|i'm going to|first,"
    r"|looking at|here(?:'s| is)|sure|please|thank you|you're welcome|i'm sorry|oh wait|i am "
    r"ready)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[\w./-]+\.\w{1,5}\b|\||\S+ [\u2013—-] |[A-Z]\w+: |\W")
"""A list item or a table row: its meaning depends on the text before it."""
_FEWEST_WORDS = 4
_ENDED = {
    Ending.SUCCESS: "It worked",
    Ending.PARTIAL: "It was left unfinished",
    Ending.FAILURE: "It failed",
    Ending.UNKNOWN: "How it came out is not known",
}


@dataclass(frozen=True, slots=True)
class Work:
    """The material of an episode's text."""

    goal: str
    acts: Sequence[Act]
    mishaps: Sequence[Mishap]
    outcome: WorkOutcome
    reply: str
    """What the model's last reply said, if it is the model's own."""
    decisions: Sequence[str]
    constraints: Sequence[str] = ()


def goal_of(prompt: str) -> str:
    """The user's words, cut at a sentence; an introductory line includes what it introduces."""
    lines = [
        line.strip()
        for line in without_fences(prompt).splitlines()
        if line.strip() and not _LABEL.fullmatch(line.strip())
    ]
    text = " ".join(_sentence(line) for line in lines[:12]) or prompt
    return clip_prose(text, LONGEST_GOAL)


def title_of(prompt: str) -> str:
    """A title of about ten words."""
    text = without_fences(prompt).strip()
    lines = [
        bare for line in text.splitlines() if (bare := line.strip()) and not _LABEL.fullmatch(bare)
    ]
    leads_in = bool(lines) and _LEADS_IN.fullmatch(lines[0]) is not None
    if leads_in and (heading := _HEADING.search("\n".join(lines[1:3]))):
        title = heading.group(1)
    elif leads_in and len(lines) > 1:
        title = lines[1]
    else:
        arguments = _COMMAND_NAME.sub("", text)
        said = arguments if any(topic_words(arguments)) else text  # of `/plan 14` both
        opening = [each for each in sentences(said) if not _LABEL.fullmatch(each)][:4]
        title = (
            next((each for each in opening if len(set(topic_words(each))) > 1), " ".join(opening))
            or prompt.strip()
        )
    bare = _POLITE.sub("", _plain(title), count=1).strip() or _plain(title)
    short = first_words(bare, _TITLE_WORDS)[:_LONGEST_TITLE].strip(" ,;:-")
    short = short[:-1] if short.endswith(".") and not short.endswith("..") else short
    return short[:1].upper() + short[1:]


def title_of_work(acts: Sequence[Act]) -> str:
    """A title without the words of the prompt, for prompts that may quote somebody else."""
    names = once((path.rsplit("/", 1)[-1] for path in changed_files(acts)), _MOST_FILES_NAMED)
    return f"Work on {', '.join(names)}" if names else "A task that was handed over"


def text_of(work: Work) -> str:
    """What was asked, done and achieved, in a few sentences."""
    ending = f"{_ENDED[work.outcome.ending]} ({work.outcome.why})."
    if work.reply:
        ending = f"The agent: {_end_sentence(clip_prose(work.reply, _LONGEST_REPLY))} {ending}"
    parts = [f"Asked: {_end_sentence(work.goal)}"]
    if work.constraints:
        parts.append(f"Heeding: {_end_sentence(clip_prose('; '.join(work.constraints), 160))}")
    if work.decisions:
        parts.append(f"Decided: {_end_sentence(clip_prose(work.decisions[0], 120))}")
    parts += _trouble_lines(work.mishaps)
    text = " ".join(parts)
    text += _actions_text(work.acts, _LONGEST_TEXT - len(ending) - len(text) - 2)
    return f"{clip_prose(text, _LONGEST_TEXT - len(ending) - 1)} {ending}"


def constraints_in(prompts: Sequence[str], goal: str) -> tuple[str, ...]:
    """What the user asked to heed: statements that limit how the goal is reached, without those
    that the goal has."""
    found = (
        clip_prose(clause, _LONGEST_CONSTRAINT)
        for prompt in prompts
        for clause in clauses(without_fences(prompt))
        if is_stated(clause)
        and _CONSTRAINS.search(clause)
        and not _OPINION.match(clause)
        and not is_suspect(clause)
    )
    return once((each for each in found if each not in goal), _MOST_CONSTRAINTS)


def own_reply(text: str, before: int, others: OutsideWords) -> str:
    """What a reply says in the end: its first sentence with substance, and the one that concludes.
    Neither is an order or repeats outside text."""
    told = list(_own_sentences(text, before, others))
    concluded = [each for each in told[1:] if _CONCLUDES.match(each)]
    return clip_prose(" ".join((*told[:1], *concluded[-1:])), _LONGEST_ANSWER)


def _own_sentences(text: str, before: int, others: OutsideWords) -> Iterator[str]:
    for sentence in sentences(without_fences(text)):
        bare = _plain(sentence)
        if (
            len(bare.split()) < _FEWEST_WORDS
            or _HEDGES.match(bare)
            or bare.endswith((":", "?"))
            or (_LISTED.match(bare) and not _CONCLUDES.match(bare))
            or " | " in bare
        ):
            continue
        if not is_order(bare) and not others.says(bare, before, LEAST_SENTENCE):
            yield bare


def _actions_text(acts: Sequence[Act], room: int) -> str:
    """What was done, behind a space; as many of its parts as the room allows, the first always."""
    edited = changed_files(acts)
    ran = [
        act
        for act in acts
        if act.command and not act.verdict.failed and len(act.command) <= _LONGEST_COMMAND
    ]
    checks = once(act.command for act in reversed(ran) if act.doing is ActKind.CHECK)
    others = once(
        act.command
        for act in reversed(ran)
        if act.doing is ActKind.RUN and not _CHORE.match(act.command)
    )
    commands = [
        f"`{command}`"
        for command in (*checks[:1], *others, *checks[1:])
        if not is_dangerous(command)
    ]
    called = once(act.tool for act in acts if act.doing is ActKind.OTHER)
    parts = []
    if edited:
        short = ["/".join(path.strip("/").split("/")[-2:]) for path in edited[:_MOST_FILES_NAMED]]
        while len(short) > 1 and len(", ".join(short)) + _CHANGED_EXTRA > room:
            short.pop()
        parts.append(f"changed {', '.join(short)}{_more(len(edited), len(short))}")
    if commands:
        parts.append(f"ran {', '.join(commands[:_MOST_COMMANDS_NAMED])}")
    if called:
        parts.append(
            f"called {', '.join(called[:_MOST_FILES_NAMED])}{_more(len(called), _MOST_FILES_NAMED)}"
        )
    if not parts:
        looked = sum(act.doing is ActKind.READ for act in acts)
        return f" Looked at {looked} things." if looked else ""
    while len(parts) > 1 and len("; ".join(parts)) + 2 > room:
        parts.pop()
    text = "; ".join(parts)
    return f" {text[:1].upper()}{text[1:]}."


def _trouble_lines(mishaps: Sequence[Mishap]) -> list[str]:
    lines = []
    # A failed edit is retried at once; it is not worth mentioning.
    for mishap in [each for each in mishaps if each.failed.doing is not ActKind.EDIT][
        :_MOST_TROUBLES_NAMED
    ]:
        steps = [_FOLDERS.sub("", step) for step in mishap.resolved if step.split()[1:]]
        how = f"resolved: {', '.join(steps[:2])}" if steps else ""
        if mishap.by is None:
            how = "not resolved"
        where = clip_prose(first_words(mishap.failed.target, 8), _LONGEST_COMMAND)
        lines.append(
            f"Trouble: {mishap.failed.verdict.kind} at `{where}`{f' ({how})' if how else ''}."
        )
    return lines


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", _MARKUP.sub("", text)).strip()


def _sentence(line: str) -> str:
    """A line as prose; a heading gets a full stop."""
    return _end_sentence(_plain(line)) if line.startswith("#") else _plain(line)


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


def _more(many: int, shown: int) -> str:
    return f" and {many - shown} more" if many > shown else ""


_MOST = 6  # points of a list
_LONGEST_ITEM = 120  # characters of a point
_MOST_FILES = 6
_LONGEST_ERROR = 140
_FEWEST_ITEM_WORDS = 2  # telling words an open item needs: "commit" and "go on" leave nothing open
_SCRIPT = "script"
_CLIENTS = re.compile(r"(?:^|/)\.(?:claude|codex|cursor|gemini)/")
"""Files that an agent's client keeps for itself."""
_INLINE_MARKUP = re.compile(r"\*\*|`|__")


@dataclass(frozen=True, slots=True)
class LeftWork:
    """What a session left unfinished."""

    checkpoint: Checkpoint
    title: str
    text: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkEnd:
    """What is known of a span of work when it ends."""

    title: str
    acts: Sequence[Act]
    mishaps: Sequence[Mishap]
    outcome: WorkOutcome
    reply: str
    """The model's last reply."""
    asked: str
    """The user's last prompt, if it is not the goal."""
    calls: Mapping[int, str]
    """Calls that set the agent's todo list, by their place."""
    place: int
    """Place of the end in the session."""


def left_by(ended: WorkEnd, others: OutsideWords) -> LeftWork | None:
    """The unfinished work of a span; None if nothing is open or there is too little to resume."""
    calls = [ended.calls[place] for place in sorted(ended.calls)]
    lists = plan_items(calls, ended.reply, acted=bool(ended.acts))
    own = [_own(point, ended.place, others) for point in lists.open]
    open_points = once((point for point in own if point), _MOST)
    root = work_root(ended.acts)
    changed = (
        path for path in changed_files(ended.acts) if is_file(path) and not _CLIENTS.search(path)
    )
    files = once((in_project(path, root) for path in changed), _MOST_FILES)
    red = next(
        (
            each
            for each in reversed(ended.mishaps)
            if each.by is None and _is_of_the_project(each.failed)
        ),
        None,
    )
    ended_badly = ended.outcome.ending in (Ending.PARTIAL, Ending.FAILURE)
    if ended.outcome.ending is Ending.SUCCESS or not (
        open_points or (files and (ended_badly or red is not None))
    ):
        return None
    done = once((point for each in lists.done if (point := _own(each, ended.place, others))), _MOST)
    blockers = (_error(red),) if red is not None and ended_badly else ()
    says_something = ended_badly and len(set(topic_words(ended.asked))) >= _FEWEST_ITEM_WORDS
    asked = _own(ended.asked, ended.place, others) if says_something else ""
    following = open_points or ((f"the user said: {asked}",) if asked else _make_it_pass(red))
    if not following and not blockers:
        return None  # its episode says as much
    checkpoint = Checkpoint(
        done=done, doing=clip_prose(ended.title, _LONGEST_ITEM), next=following, blockers=blockers
    )
    return LeftWork(
        checkpoint=checkpoint,
        title=clip_prose(f"Unfinished: {ended.title}", 90),
        text=_text(checkpoint, ended.outcome.why, files),
        files=files,
    )


def _own(text: str, place: int, others: OutsideWords) -> str:
    """The text in a line; empty if it is an order or repeats outside text."""
    plain = clip_prose(_INLINE_MARKUP.sub("", text), _LONGEST_ITEM)
    return (
        ""
        if is_order(plain) or is_dangerous(plain) or others.says(plain, place, LEAST_SENTENCE)
        else plain
    )


def _is_of_the_project(failed: Act) -> bool:
    """A check that will be there next time."""
    return failed.doing is ActKind.CHECK and failed.family != _SCRIPT and bool(_checked_by(failed))


def _checked_by(failed: Act) -> str:
    parts = [part for part in parts_of(failed.command) if check_family(part)]
    return (
        clip_prose(parts[0], _LONGEST_COMMAND)
        if parts and not is_throwaway(parts[0].split()[-1])
        else ""
    )


def _error(red: Mishap) -> str:
    last = red.lately or red.failed
    message = quote(last.verdict.message, _LONGEST_ERROR)
    return f"`{_checked_by(red.failed)}` fails with {last.verdict.kind}" + (
        f' (data: "{message}")' if message else ""
    )


def _make_it_pass(red: Mishap | None) -> tuple[str, ...]:
    return (f"make `{_checked_by(red.failed)}` pass",) if red is not None else ()


def _text(left: Checkpoint, why: str, files: Sequence[str]) -> str:
    parts = (
        f"Work on \u201c{left.doing}\u201d was left unfinished ({why}).",
        f"Done: {'; '.join(left.done)}." if left.done else "",
        f"Open: {'; '.join(left.next)}." if left.next else "",
        f"In the way: {'; '.join(left.blockers)}." if left.blockers else "",
        f"Files: {', '.join(files)}." if files else "",
    )
    return " ".join(part for part in parts if part)
