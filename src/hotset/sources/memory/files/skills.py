"""A procedure as a Markdown file, the way loki-mode writes skills, and such a file as a procedure. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hotset.nouns.memory import Memory, MemoryKind, Procedure
from hotset.sources.memory.files.kinds import MARK, embedded_memory, item_of, memory_of
from hotset.sources.memory.files.loki_items import Item

_OURS = re.compile(r"\n<!-- hotset (\{[^\n]*\}) -->\s*\Z")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")
_SECTIONS = {
    "prerequisites": "prerequisites",
    "steps": "steps",
    "common errors & fixes": "common_errors",
    "common errors and fixes": "common_errors",
    "exit criteria": "exit_criteria",
}


def skill_text(memory: Memory) -> str:
    """Ends with a comment that holds the whole memory: see `kinds`."""
    fields = msgspec.json.encode(item_of(memory)[MARK]).decode().replace(">", "\\u003e")  # so that it cannot end the comment
    return f"{_visible(memory)}\n<!-- hotset {fields} -->\n"


def skill_of(kind: MemoryKind, text: str, place: str, changed: float) -> Memory | None:
    """`text` has line feeds alone for line ends."""
    ours = _OURS.search(text)
    fields = _fields(ours[1]) if ours else {}
    visible = text[: ours.start()] if ours else text
    item: Item = {**_sections(visible), "id": fields.get("id"), MARK: fields}
    own = embedded_memory(kind, item)
    if own is not None and visible == _visible(own).replace("\r\n", "\n"):
        return own
    return memory_of(kind, item, place, changed)


def _visible(memory: Memory) -> str:
    detail = memory.detail if isinstance(memory.detail, Procedure) else Procedure()
    needs = f"\n## Prerequisites\n- {detail.when}\n" if detail.when else ""
    steps = "".join(f"{number}. {step}\n" for number, step in enumerate(detail.steps, 1))
    return f"# Skill: {memory.title}\n\n{memory.text}\n{needs}" + (f"\n## Steps\n{steps}" if steps else "")


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _sections(text: str) -> Item:
    """A heading, words below it, and lists under headings of their own."""
    item: Item = {"name": "", "prerequisites": [], "steps": [], "common_errors": [], "exit_criteria": []}
    described: list[str] = []
    into: list[str] | None = None
    for line in text.split("\n"):
        if line.startswith("# ") and not item["name"]:
            item["name"] = line[2:].strip().removeprefix("Skill:").strip()
        elif line.startswith("## "):
            known = _SECTIONS.get(line[3:].strip().lower())
            into = item[known] if known else None
            described += [] if known else [line]
        elif into is None:
            described.append(line)
        elif bullet := _BULLET.fullmatch(line):
            into.append(bullet[1])
        elif line.strip() and into:
            into[-1] += f"\n{line.strip()}"
        elif line.strip():
            into.append(line.strip())
    return {**item, "description": "\n".join(described).strip()}
