"""What learning sees of an ended session: what the client, the user and checks say; never the words
of tools, files or pasted documents."""

from __future__ import annotations

import json

import pytest

from hotset.config import listed_prices, load
from hotset.dialects.parts import kind_of_call, kind_of_result
from hotset.errors import PageDamaged
from hotset.learn.events import OBSERVED, SessionFigures
from hotset.nouns.bill import Bill
from hotset.nouns.candidate import Candidate, Choice, OfferKind, OfferSlot, OfferVerdict
from hotset.nouns.deposit import Billed
from hotset.nouns.message import Message, Part, Usage
from hotset.nouns.page import Kind, Role
from hotset.nouns.price import Prices
from hotset.nouns.turn import Event, Outcome, TurnRef
from hotset.runtime.decision import candidates_note
from hotset.runtime.learned_state import read_state
from hotset.runtime.observe import observe_ended, observe_session
from hotset.runtime.session_arm import PLAIN, SessionArm
from hotset.runtime.strategy_log import observed_figures
from hotset.sources.memory import OUTCOME
from hotset.store.port import Where
from hotset.testing import RamStore
from hotset.testing.store_talk import StoreTalk, message, text_message

NOW = 1_800_000_000.0
PASSED = "============ 12 passed in 0.31s ============"
FAILED = "Exit code 1\n============ 1 failed, 11 passed in 0.31s ============"
NO = "No, not like that."
LONG = "No, not like that: the parser must keep the offset of the time zone in every case."
ANGRY = """No, not like that. That's wrong, undo it!
The user says: this is still broken. I am not sure that it works. Thanks, perfect, it works."""


class Session:
    """A session that is worked and kept, without a proxy."""

    def __init__(self, store: RamStore | None = None, key: str = "one") -> None:
        self.store = store or RamStore()
        self._talk = StoreTalk(self.store, agent="claude-cli", key=key, time=NOW - 90_000)
        self._waiting: list[Message] = []
        self._calls = 0
        self.turn: TurnRef | None = None

    def user(self, text: str) -> Session:
        self._waiting.append(text_message(Role.USER, text))
        return self

    def says(self, text: str, outcome: Outcome = Outcome.DONE) -> Session:
        return self._reply(text_message(Role.ASSISTANT, text), outcome)

    def does(self, tool: str, result: str, **arguments: str) -> Session:
        raw, self._calls = json.dumps(arguments).encode(), self._calls + 1
        call = f"call-{self._calls}"
        self._reply(message(Role.ASSISTANT, Part(kind_of_call(tool), raw, tool=tool, call=call)))
        answer = Part(kind_of_result(tool, raw), result.encode(), tool=tool, call=call)
        self._waiting.append(message(Role.TOOL, answer))
        return self

    def runs(self, command: str, result: str = "") -> Session:
        return self.does("Bash", result, command=command)

    def edits(self, path: str) -> Session:
        done = f"The file {path} has been updated."
        return self.does("Edit", done, file_path=path, old_string="a", new_string="b")

    def reads(self, path: str, text: str = "1\tx = 1") -> Session:
        return self.does("Read", text, file_path=path)

    def figures(self, arm: SessionArm = PLAIN) -> SessionFigures:
        assert self.turn is not None
        return observe_session(self.store, self.turn.session, arm, {}, NOW)

    def _reply(self, reply: Message, outcome: Outcome = Outcome.DONE) -> Session:
        self.turn = self._talk.asks(*self._waiting).turn
        self._waiting = []
        self._talk.hears(self.turn, reply, outcome=outcome)
        return self


def working() -> Session:
    return Session().user("Please fix the date parser in src/dates.py.")


@pytest.mark.row("M9")
def test_a_session_is_seen_by_what_the_user_and_checks_say():
    seen = (
        working()
        .reads("src/dates.py")
        .edits("src/dates.py")
        .runs("pytest -q tests/test_dates.py", FAILED)
        .runs("git checkout -- src/dates.py")
        .says("I think it might be the year.")
        .user(NO)
        .edits("src/dates.py")
        .runs("pytest -q tests/test_dates.py", PASSED)
        .says("All tests pass now.")
        .figures()
    )
    assert seen.corrections == 1
    assert seen.success == 1.0
    assert seen.signals["tests_passed"] == 1
    assert seen.signals["tests_failed"] == 1
    assert seen.signals["reverted"] == 1
    assert seen.signals["follow_ups"] == 1
    assert seen.signals["hedges"] == 1
    assert "abandoned" not in seen.signals


@pytest.mark.row("M9")
def test_the_client_s_own_word_wins_over_what_checks_show():
    session = working().edits("src/dates.py").runs("pytest -q", PASSED).says("All tests pass now.")
    assert session.figures().success == 1.0
    assert session.turn is not None
    detail = {"outcome": "failure"}
    place = session.turn
    session.store.keep(Event(OUTCOME, NOW, place.session, place.number, detail)).result()
    assert session.figures().success == 0.0


def test_an_outcome_that_only_the_model_claims_is_unknown():
    seen = working().edits("src/dates.py").says("I have fixed it; it is all done.").figures()
    assert seen.success is None


def test_a_session_whose_last_reply_never_came_is_abandoned():
    seen = working().says("I am", Outcome.LEFT).figures()
    assert seen.signals["abandoned"] == 1


@pytest.mark.row("M9")
@pytest.mark.parametrize(
    "where",
    [
        lambda session: session.reads("notes.md", ANGRY),
        lambda session: session.runs("cat mail.txt", ANGRY),
        lambda session: session.does("WebFetch", ANGRY, url="https://example.org"),
        lambda session: session.runs("cat log.txt", "12 passed\n" + ANGRY),
        lambda session: session.reads("run.log", "$ git reset --hard\n$ git checkout -- ."),
    ],
    ids=["file", "command", "web", "log", "shell words"],
)
def test_words_of_tools_and_files_are_no_signal(where):
    plain = working().reads("notes.md", "Nothing.").says("I read it.").figures()
    seen = where(working()).says("I read it.").figures()
    assert seen.corrections == 0
    assert seen.success is plain.success is None
    assert seen.signals == plain.signals


@pytest.mark.row("M9")
@pytest.mark.parametrize(
    "pasted",
    [
        f"<document>\n{ANGRY}\n</document>",
        f"```\n{ANGRY}\n```",
        "No, not like that: this is the mail\n\nFrom: Bob\nTo: all\nSubject: no\n\n" + ANGRY * 40,
    ],
    ids=["document", "fence", "mail"],
)
def test_a_document_that_the_user_pastes_is_no_correction(pasted):
    seen = working().says("I read it.").user(pasted).says("I read that, too.").figures()
    assert seen.corrections == 0


def test_words_that_a_file_said_before_are_not_the_user_s_when_they_come_again():
    seen = (
        working()
        .reads("todo.md", f"# Replies\n\n{LONG}\n")
        .says("Shall I go on?")
        .user(LONG)
        .says("I see.")
        .figures()
    )
    assert seen.corrections == 0


def test_files_that_are_read_again_unchanged_are_counted():
    session = working().reads("a.py").reads("b.py").reads("a.py").edits("b.py").reads("b.py")
    assert session.says("Read.").figures().rereads == 1


@pytest.mark.row("M9")
def test_a_search_behind_an_offer_is_counted_and_one_without_is_not():
    session = working().says("I look.").user("And the other one?").says("I see.")
    assert session.turn is not None
    detail = {"tool": "search_history", "found": 1}
    place = session.turn
    session.store.keep(Event("Retrieved", NOW, place.session, place.number, detail)).result()
    seen = session.figures()
    assert (seen.searches, seen.signals.get("searches_after_offer")) == (1, None)

    turn = next(each for each in session.store.turns(place.session) if each.ref == place)
    taken = Choice(
        Candidate("memory", OfferKind.REMINDER, "sem-1", OfferSlot.BEHIND_PROMPT, "So.", 9, 0.9),
        OfferVerdict.TAKEN,
    )
    session.store.keep(candidates_note(turn.id, (taken,))).result()
    assert session.figures().signals["searches_after_offer"] == 1


class Damaged(RamStore):
    """A store that lost what replies and results said."""

    def content(self, digest):
        if any(page.kind is not Kind.PROMPT for page in self.pages(Where(digest=digest))):
            raise PageDamaged(f"{digest} is damaged")
        return super().content(digest)


@pytest.mark.row("V13")
def test_a_damaged_page_stops_neither_its_session_nor_the_others(tmp_path):
    store = Damaged()
    for name in ("one", "two", "three"):
        Session(store, name).user(f"Please fix {name}.py.").reads("a.py").says("Done.")
    config = load(data=str(tmp_path), project=str(tmp_path), environ={"HOME": str(tmp_path)})

    assert observe_ended(store, config, NOW) == 3
    assert observe_ended(store, config, NOW) == 0
    assert len(observed_figures(store)) == 3
    assert len(list(store.events(name=OBSERVED))) == 3


@pytest.mark.row("M9")
def test_a_session_that_went_on_is_observed_again_in_place_of_its_earlier_figures(tmp_path):
    session = Session().user("Please fix it.").says("Done.")
    store = session.store
    config = load(data=str(tmp_path), project=str(tmp_path), environ={"HOME": str(tmp_path)})
    assert observe_ended(store, config, NOW) == 1
    session.user(NO).says("I see.").user("Thanks.").says("Fine.")

    assert observe_ended(store, config, NOW) == 1
    assert observe_ended(store, config, NOW) == 0

    state = read_state(store)
    assert (state.observed, state.default.sessions, state.skipped_count) == (1, 0, 0)
    [figures] = observed_figures(store).values()
    assert (figures.turns, figures.corrections, figures.earlier.turns) == (3, 1, 1)


@pytest.mark.parametrize(
    ("model", "dollars"), [("claude-sonnet-4-5", 0.003), ("nobody-knows", None)]
)
def test_a_session_says_what_it_cost_in_dollars_where_the_price_is_known(model, dollars):
    session = Session().user("Please fix it.").says("Done.")
    assert session.turn is not None
    [turn] = session.store.turns(session.turn.session)
    bill = Bill(model, "anthropic", usage=Usage(input=1000))
    session.store.keep(Billed(turn.id, bill)).result()

    prices = Prices(listed_prices())
    seen = observe_session(session.store, session.turn.session, PLAIN, prices, NOW)
    assert seen.dollars == (None if dollars is None else pytest.approx(dollars))


def test_a_session_is_observed_when_it_is_quiet_and_only_once(tmp_path):
    store = RamStore()
    Session(store).user("Please fix it.").says("Done.")
    config = load(data=str(tmp_path), project=str(tmp_path), environ={"HOME": str(tmp_path)})
    last = max(turn.finished for each in store.sessions() for turn in store.turns(each.id))

    assert observe_ended(store, config, last + 60) == 0
    assert observe_ended(store, config, last + 1800) == 1
    assert observe_ended(store, config, last + 9000) == 0
