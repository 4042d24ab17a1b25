"""What each knob is, in half a sentence: the beginning of its docstring."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache

from hotset.learn.state import own_and_groups
from hotset.nouns import knobs
from hotset.nouns.knobs import Knobs

_HALF = re.compile(r"[.:;](?:\s|$)")


def knob_text(name: str) -> str:
    """What a knob, a group or an entry of a table is; empty where nothing says it."""
    texts = _texts()
    return next((texts[each] for each in reversed(own_and_groups(name)) if each in texts), "")


@cache
def _texts() -> Mapping[str, str]:
    with suppress(OSError):  # hotset without its source
        tree = ast.parse(inspect.getsource(knobs))
        groups = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
        return dict(_of_group(groups[Knobs.__name__], groups, ""))
    return {}


def _of_group(
    group: ast.ClassDef, groups: Mapping[str, ast.ClassDef], prefix: str
) -> Iterator[tuple[str, str]]:
    for at, field in enumerate(group.body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        name, kind = f"{prefix}{field.target.id}", ast.unparse(field.annotation)
        text = _string(group.body[at + 1]) if at + 1 < len(group.body) else ""
        if kind in groups and kind != "Limit":
            yield name, _half(ast.get_docstring(groups[kind]) or text)
            yield from _of_group(groups[kind], groups, f"{name}.")
        elif text:
            yield name, _half(text)


def _string(line: ast.stmt) -> str:
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
        return str(line.value.value)
    return ""


def _half(text: str) -> str:
    return _HALF.split(" ".join(text.split()), maxsplit=1)[0]
