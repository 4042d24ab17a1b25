"""A function, class, section or setting by its name, with its whole body: by brackets and
indentation, in any language."""

from __future__ import annotations

from difflib import get_close_matches

from hotset.text.outline import defined_names, find_definitions, headings, split_name
from hotset.text.words import once
from hotset.window.slice import markup
from hotset.window.slice.fit import Count, Cut
from hotset.window.slice.lines import Text, merged, show, show_parts
from hotset.window.slice.units import told

_NAMES_LOOKED_AT = 200_000  # characters that are searched for names to propose
_MOST_PLACES = 50  # definitions of one name


def by_symbol(text: str, name: str, room: int, count: Count) -> Cut:
    by_line = Text(text)
    spans = merged(find_definitions(by_line.bare, name), within=0)
    several = f"{len(spans)} places define it: " if len(spans) > 1 else ""
    if spans:
        return show(by_line, spans, room, count, what=several)
    if parts := markup.sections(text, name)[:_MOST_PLACES]:
        return show_parts(
            text, parts, room, count, what=f"{len(parts)} sections: " if len(parts) > 1 else ""
        )
    return Cut("", whole=False, note=_nothing(by_line, name))


def _nothing(text: Text, name: str) -> str:
    lines = text.bare
    joined = "\n".join(lines)[:_NAMES_LOOKED_AT]
    known = once((*defined_names(joined), *headings(lines), *markup.headings(joined)))
    wanted = split_name(name)[1]
    close = get_close_matches(wanted, known, 8, 0.5) or known[:12]
    mentions = [told(at, at) for at, line in enumerate(lines, 1) if wanted and wanted in line][:8]
    said = [f"no definition of {name[:80]}"]
    if mentions:
        said.append(f"lines that name it: {', '.join(mentions)}")
    if close:
        said.append(f"defined here: {', '.join(each[:80] for each in close)}")
    return (
        "; ".join(said) if len(said) > 1 else f"{said[0]} and none of anything else; ask with lines"
    )
