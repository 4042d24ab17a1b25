"""`hotset diff` and `hotset plan`: what went to the provider in one turn, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from hotset.errors import BadInput, NotFound
from hotset.nouns.page import Page
from hotset.nouns.turn import Session, Turn
from hotset.nouns.window import Cause
from hotset.runtime.decision import (
    Difference,
    HiddenAround,
    PageChange,
    TurnDecision,
    difference,
    read_decision,
)
from hotset.runtime.reader import Store, find_session, open_existing
from hotset.runtime.views.words import CAUSE_WORDS, FORM_WORDS
from hotset.runtime.wire import DIALECTS
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    one_line,
    plain,
    plain_line,
    shortened,
    table,
    width,
)

_FIRST_LINES = 3
_INDENT = 6
_PAGES_NAMED = 6


@click.command(
    epilog=examples(
        "hotset diff",
        "hotset diff last 12",
        "hotset diff s3f9a 12 --full",
        "hotset diff last last --json",
    )
)
@click.argument("session", default="last")
@click.argument("turn", default="last")
@project_options
@click.option("--full", is_flag=True, help="Whole contents instead of first lines.")
@as_json
def diff(chosen: ProjectOptions, session: str, turn: str, *, full: bool, as_json: bool) -> None:
    """What was sent to the provider in one turn, instead of what the client sent.

    SESSION is an id, the beginning of one, or `last`; TURN is its number, or `last`. Both are
    `last` by default.
    """
    config = chosen.config()
    with open_existing(config) as store:
        found = find_session(store, session)
        turn_diff = difference(store, find_turn(store, found, turn), DIALECTS, inject=config.inject)
        if as_json:
            emit_json(_document(store, turn_diff, full))
            return
        for line in _lines(store, turn_diff, full):
            emit(line)
    hint = next((page.id for change in turn_diff.changes for page in change.pages), None)
    if hint is not None:
        chosen.say(f"\nThe exact bytes of a page: {chosen.hint(f'recall {hint}')}")


@click.command(epilog=examples("hotset plan", "hotset plan last 12", "hotset plan s3f9a 12 --json"))
@click.argument("session", default="last")
@click.argument("turn", default="last")
@project_options
@as_json
def plan(chosen: ProjectOptions, session: str, turn: str, *, as_json: bool) -> None:
    """Why one turn was sent as it was: every page that got a form, and every offer of the sources
    with its worth, its price and the reason why it was taken or left.

    SESSION is an id, the beginning of one, or `last`; TURN is its number, or `last`. Both are
    `last` by default.
    """
    with open_existing(chosen.config()) as store:
        found = find_turn(store, find_session(store, session), turn)
        decided = read_decision(store, found)
    if as_json:
        emit_json(_plan_document(found, decided))
        return
    title = f"{found.session}  turn {found.number}  {plain_line(found.model)}"
    emit(click.style(title, bold=True))
    if not decided.forms and not decided.candidates:
        emit("nothing was decided: no new page is large, and no source had anything to offer")
    if decided.forms:
        emit("\npages that got a form in this turn")
        rows = [
            (
                each.page.id if each.page is not None else "a whole message",
                FORM_WORDS.get(each.row.form, "whole again"),
                f"{each.row.tokens:,} of {each.row.whole:,}",
                CAUSE_WORDS[each.row.cause],
                each.knob,
            )
            for each in decided.forms
        ]
        table(("page", "sent as", "tokens", "why", "knob"), rows, right={2})
    if decided.candidates:
        emit("\noffers of the sources")
        offers = [
            (
                each.source,
                each.kind,
                f"{each.worth:.2f}",
                f"{each.tokens:,}",
                each.verdict,
                each.key,
            )
            for each in decided.candidates
        ]
        headings = ("source", "kind", "worth", "tokens", "decided", "what")
        table(headings, offers, right={2, 3})
    if decided.knobs:
        emit("\nknobs of this session that differ from the defaults")
        for name, value in decided.knobs.items():
            emit(f"  {plain_line(name)} = {plain_line(msgspec.json.encode(value).decode())}")


def _plan_document(turn: Turn, decided: TurnDecision) -> dict[str, Any]:
    return {
        "session": turn.session,
        "turn": turn.number,
        "forms": [
            {
                "page": each.page.id if each.page is not None else None,
                "form": each.row.form,
                "cause": each.row.cause,
                "tokens": each.row.tokens,
                "whole": each.row.whole,
                "knob": each.knob,
            }
            for each in decided.forms
        ],
        "candidates": msgspec.to_builtins(decided.candidates),
        "knobs": decided.knobs,
        "arm": decided.arm.name,
        "offered": decided.offered,
        "asked_back": [
            {"tool": each.tool, "ids": each.ids, "refault": each.is_refault}
            for each in decided.asked_back
        ],
        "used": decided.used,
    }


def find_turn(store: Store, session: Session, typed: str) -> Turn:
    if typed != "last" and not typed.isdecimal():
        raise BadInput(f"turn {typed}: use a number, or last")
    turns = list(store.turns(session.id))
    found = turns[-1:] if typed == "last" else [turn for turn in turns if turn.number == int(typed)]
    if not found:
        upto = f"; did you mean {turns[-1].number}, its last" if turns else ""
        raise NotFound(
            f"{session.id} has no turn {typed}; it has {count(len(turns), 'turn')}{upto}"
        )
    return found[0]


def _lines(store: Store, turn_diff: Difference, full: bool) -> Iterator[str]:
    turn = turn_diff.turn
    yield click.style(f"{turn.session}  turn {turn.number}  {plain_line(turn.model)}", bold=True)
    if not turn_diff.planned:
        yield "went out as it came, byte for byte"
        return
    if not (turn_diff.changes or turn_diff.spliced or turn_diff.tools):
        yield "planned, and nothing was changed: it went out as it came"
        return
    yield _total(turn_diff)
    for change in turn_diff.changes:
        yield ""
        yield from _change_lines(store, change, full)
    for spliced in turn_diff.spliced:
        yield ""
        yield from _spliced_lines(spliced, full)
    if turn_diff.tools:
        yield ""
        yield (
            f"beside the client's tools, {len(turn_diff.tools)} of ours: "
            f"{', '.join(map(plain_line, turn_diff.tools))}"
        )
    if turn_diff.retrievals:
        yield ""
        yield (
            f"in this turn the model asked for something back "
            f"{_times(len(turn_diff.retrievals))}; the "
            f"client saw nothing of it:"
        )
        for each in turn_diff.retrievals:
            asked = " ".join(str(each.detail.get(name, "")) for name in ("tool", "id")).rstrip()
            yield f"  {plain_line(asked)}  {each.detail.get('tokens', 0):,} tokens"
    if turn_diff.uses:
        yield ""
        yield (
            f"in this turn the model used the toolbox {_times(len(turn_diff.uses))}; the client "
            f"saw nothing of it:"
        )
        for each in turn_diff.uses:
            failed = "  failed" if each.detail.get("failed") else ""
            name, size = plain_line(str(each.detail.get("tool", ""))), each.detail.get("bytes", 0)
            yield f"  {name}  {size:,} bytes{failed}"


def _total(turn_diff: Difference) -> str:
    if turn_diff.bill is None:
        spared = sum(change.whole - change.tokens for change in turn_diff.changes)
        return (
            f"{spared:,} of the provider's tokens less than everything, "
            f"as we estimate them; this "
            f"turn has no bill"
        )
    sent, whole = turn_diff.bill.sent.prompt, turn_diff.bill.whole.prompt
    share = f" ({100 * sent / whole:.0f} %)" if whole else ""
    calls = f" over {turn_diff.bill.calls} calls" if turn_diff.bill.calls > 1 else ""
    if turn_diff.bill.usage.estimated:
        count = f"{turn_diff.bill.usage.prompt:,}{calls}"
        return (
            f"instead of {whole:,} tokens we sent {sent:,}{share}; the provider reported no "
            f"usage, by our count it was {count}\n"
            "all figures are estimated, in the provider's tokens"
        )
    return (
        f"instead of {whole:,} tokens we sent {sent:,}{share}; the provider measured "
        f"{turn_diff.bill.usage.prompt:,}{calls}\n"
        "all figures but the measured one are estimated, in the provider's tokens"
    )


def _change_lines(store: Store, change: PageChange, full: bool) -> Iterator[str]:
    when = "now" if change.fresh and change.cause is not Cause.BIRTH else ""
    why = " ".join(part for part in (when, CAUSE_WORDS[change.cause]) if part)
    yield click.style(
        f"{_name(change)}  {change.whole:,} → {change.tokens:,} tokens", fg="yellow", bold=True
    )
    yield f"  {FORM_WORDS.get(change.form, change.form)}, {why}"
    if change.reference is not None:
        about = f", about {', '.join(change.reference.topics)}" if change.reference.topics else ""
        yield plain(
            f"  {change.reference.id} stands for "
            f"{count(len(change.reference.pages), 'page')}{about}: "
            f"hotset recall {change.reference.id}"
        )
    pages = (
        change.pages if full or len(change.pages) <= _PAGES_NAMED else change.pages[:_PAGES_NAMED]
    )
    for page in pages:
        if len(change.pages) > 1:
            yield f"    {page.id}  turn {page.turn}  {page.kind} {plain_line(page.tool)}".rstrip()
        yield from _text_lines(
            _text(store, page),
            "-",
            "red",
            None if full else _FIRST_LINES if len(change.pages) == 1 else 1,
        )
    if len(pages) < len(change.pages):
        yield f"    … and {count(len(change.pages) - len(pages), 'page')} more"
    yield from _text_lines(
        change.sent.decode("utf-8", "replace"), "+", "green", None if full else _FIRST_LINES
    )


def _name(change: PageChange) -> str:
    if len(change.pages) == 1:
        page = change.pages[0]
        return f"{page.id}  turn {page.turn}  {page.kind} {plain_line(page.tool)}".rstrip()
    turns: Sequence[int] = sorted({page.turn for page in change.pages})
    if change.reference is not None:
        turns = sorted({*change.reference.turns})
    span = (
        f"turns {turns[0]}-{turns[-1]}"
        if len(turns) > 1
        else f"turn {turns[0]}"
        if turns
        else "messages"
    )
    return f"{span}  {count(len(change.pages), 'page')}"


def _spliced_lines(spliced: HiddenAround, full: bool) -> Iterator[str]:
    hidden = spliced.hidden
    raws = (*hidden.before, *((hidden.instead,) if hidden.instead else ()), *hidden.after)
    yield click.style(
        f"turn {spliced.turn}  {count(len(raws), 'message')} that the client never saw",
        fg="yellow",
        bold=True,
    )
    for raw in raws:
        yield from _text_lines(
            raw.decode("utf-8", "replace"), "+", "green", None if full else _FIRST_LINES
        )


def _text_lines(text: str, mark: str, colour: str, most: int | None) -> Iterator[str]:
    """The first lines of a text, cut to the width; or all of it."""
    lines = plain(text).split("\n")
    for line in lines[:most]:
        shown = line if most is None else shortened(line, max(20, width() - _INDENT - 2))
        yield click.style(f"{'':{_INDENT - 2}}{mark} {shown}", fg=colour)
    if most is not None and len(lines) > most:
        yield f"{'':{_INDENT}}… {count(len(lines) - most, 'line')} more"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _text(store: Store, page: Page) -> str:
    if not page.media.startswith("text/") and page.media != "application/json":
        return f"[{page.media}, {page.size:,} bytes]"
    return store.content(page.digest).decode("utf-8", "replace")


def _document(store: Store, turn_diff: Difference, full: bool) -> dict[str, Any]:
    bill = turn_diff.bill

    def document_of(page: Page) -> dict[str, Any]:
        text = _text(store, page)
        return {
            **msgspec.to_builtins(page),
            "content": text if full else one_line(text.encode(), 200),
        }

    return {
        "session": turn_diff.turn.session,
        "turn": turn_diff.turn.number,
        "model": turn_diff.turn.model,
        "changed": bool(turn_diff.changes or turn_diff.spliced or turn_diff.tools),
        "estimated": {"sent": bill.sent.prompt, "whole": bill.whole.prompt} if bill else None,
        "measured": {
            "sent": bill.usage.prompt,
            "calls": bill.calls,
            "estimated": bill.usage.estimated,
        }
        if bill
        else None,
        "changes": [
            {
                "form": change.form,
                "cause": change.cause,
                "fresh": change.fresh,
                "whole": change.whole,
                "tokens": change.tokens,
                "instead_of": [document_of(page) for page in change.pages],
                "sent": change.sent.decode("utf-8", "replace"),
                "reference": msgspec.to_builtins(change.reference),
            }
            for change in turn_diff.changes
        ],
        "spliced": [
            {
                "turn": each.turn,
                "before": [raw.decode("utf-8", "replace") for raw in each.hidden.before],
                "instead": each.hidden.instead.decode("utf-8", "replace"),
                "after": [raw.decode("utf-8", "replace") for raw in each.hidden.after],
            }
            for each in turn_diff.spliced
        ],
        "tools": list(turn_diff.tools),
        "retrievals": [each.detail for each in turn_diff.retrievals],
        "uses": [each.detail for each in turn_diff.uses],
    }
