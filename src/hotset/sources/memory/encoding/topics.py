"""What a memory is about, in a few words that stay the same from session to session. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from hotset.text.sentences import without_fences
from hotset.text.terms import topic_words
from hotset.text.words import word_set

MOST = 4
_OF_FILES = 2
_LOOKED_AT = 4000
_HEAD = 240  # characters at the beginning, where a text says what it is about: each word there counts more
_HEAD_WEIGHT = 3
_LONGEST = 24
_COMMON_FOLDERS = word_set("""
    src lib libs app apps packages package tests test spec specs docs doc main index home users user code workspace workspaces
    projects project repos repo tmp var opt usr internal pkg cmd source sources components component utils util helpers common
    shared core modules module testbed dist build public static scripts bin init mod types config configs frontend backend server
    client api services service pages views features node_modules readme changelog package-lock tsconfig
    """)
_DULL = word_set("""
    new old good bad big small many day days week year time times today tomorrow yesterday people person someone everything
    something question questions answer option options example sentence word words line lines step steps section number list
    name names value values type types text user users model agent agents message messages session case cases part point result
    results output input version current latest different same possible sure thing stuff bit idea ideas order start end begin
    based including specific recent really please thank interested looking wondering thinking recommend recommendation suggestion
    tip advice information detail helpful definitely feature branch repository pull request path line error errors warning
    support handle provide include ensure return run running call called want need use using work working read write look
    fail failed found find command always never again remember remembered note somewhere better best second third ids info mention
    ask decide save main misleading correct python python3 node bash sudo home localhost unrecognized quickest potential hoping
    hope later open close detect detected introduce introduced require confident inconsistent approach direct default custom
    purpose investigate align clarify modify
    src tsx jsx json yaml toml january february march april may june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday upcoming understand concerned there tool tools description statu source
    http https www com org github html true false null none
    """)
_ADVERB = re.compile(r"(?!assembly|anomaly|monopoly|butterfly)[a-z]{5,}ly")
_WORDY = re.compile(r"[a-z][a-z0-9_.+-]*[a-z0-9+]|[a-z]{3,}")


def topics_of(text: str, files: Sequence[str] = ()) -> tuple[str, ...]:
    """At most four: where the work was done, then what the text says most, and first."""
    found = [*_from_files(files)]
    told = without_fences(text[:_LOOKED_AT])
    taken = {part for topic in found for part in re.split(r"[/ _.-]", topic)}
    for word in _from_words(told):
        if len(found) >= MOST:
            break
        if word not in taken and not any(word in part or part in word for part in taken if len(part) > 3):  # stems
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
            counted[f"{folder}/{stem}" if folder and len(folder) + len(stem) < _LONGEST else stem] += 1
        elif folder:
            counted[folder] += 1
    return [name for name, _ in sorted(counted.items(), key=lambda each: (-each[1], list(counted).index(each[0])))][:_OF_FILES]


def _is_telling(part: str) -> bool:
    return (
        part not in _COMMON_FOLDERS
        and len(part) > 2  # `a`, `x1`
        and len(part) <= _LONGEST
        and not part.startswith((".", "agents-eval-"))
        and re.fullmatch(r"[a-z][a-z_-]*[a-z0-9]*", part) is not None
    )


def _from_words(text: str) -> list[str]:
    counted: Counter[str] = Counter()
    for word in topic_words(text):
        if word not in _DULL and len(word) <= _LONGEST and _WORDY.fullmatch(word) and not _ADVERB.fullmatch(word):
            counted[word] += 1
    head = {word for word in topic_words(text[:_HEAD]) if word in counted}
    order = {word: number for number, word in enumerate(counted)}
    return sorted(counted, key=lambda word: (-(counted[word] + _HEAD_WEIGHT * (word in head)), order[word]))
