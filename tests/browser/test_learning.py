"""The view of learning in a browser: curves with their tables, profiles side by side, and what a
click changes and takes back."""

from __future__ import annotations

import random
import shutil
import time

import pytest

from hotset.learn.events import (
    Change,
    ChangeDecision,
    GateVerdict,
    Measured,
    SessionFigures,
    TrialSetting,
    change_id,
)
from hotset.learn.trials import DAY
from hotset.nouns.knobs import Knobs
from hotset.nouns.turn import Event
from hotset.runtime.learned_state import learn_event
from hotset.store.sqlite import SqliteStore
from tests.browser.conftest import served
from tests.browser.test_views import violations
from tests.learn.worlds import Store as Explored
from tests.proxy.wire import call
from tests.replay.finding import keep_found

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PARTS = ("", "?part=time", "?part=compare", "?part=beliefs", "?part=evolution", "?knob=keep")
FOUND = {"history.passage": 120}
JSON = {"content-type": "application/json"}


def events(start: float) -> list[Event]:
    """Two months: sessions that explored, changes that came and went, and a control."""
    explored, chance = Explored(), random.Random(3)
    explored.explore(("regret", "patience"))
    for number in range(60):
        explored.run_session(f"s{number}", lambda _: chance.gauss(0, 0.1), start + number * DAY)
    found = [Event(name, at, detail={"data": data}) for _, name, data, at in explored.events]
    found += [
        *_adopted({"tools.Bash": {"over": 9000, "room": 4500}}, start + 8 * DAY),
        *_adopted({"keep": 9, "crowd": 30}, start + 15 * DAY),
        learn_event("TrialChanged", TrialSetting({"off": 0.1}), start + 20 * DAY),
        *_adopted({"keep": 7}, start + 33 * DAY),
        _decided("ChangeRolledBack", {"keep": 7}, start + 41 * DAY),
    ]
    for number in range(40):
        arm, whole = ("off", 100.0) if number % 2 else ("default", 50.0)
        figures = SessionFigures(f"t{number}", arm=arm, success=1.0, cost=whole, whole=100.0)
        found.append(learn_event("SessionObserved", figures, start + (21 + number) * DAY))
    return sorted(found, key=lambda each: each.time)


def _adopted(knobs: dict[str, object], at: float) -> list[Event]:
    id = change_id(knobs, "test")
    measured = Measured(30, 12, 100_000.0, 91_000.0)
    verdict = GateVerdict(id, True, 0.05, 0.01, 0.09, 12, measured=measured)
    return [
        learn_event("ChangeProposed", Change(id, knobs, {}, "test", "it was asked back"), at),
        learn_event("ChangeGated", verdict, at + 1),
        _decided("ChangeAdopted", knobs, at + 2),
    ]


def _decided(name: str, knobs: dict[str, object], at: float) -> Event:
    return learn_event(name, ChangeDecision(change_id(knobs, "test"), "so it was decided"), at)


@pytest.fixture(scope="module")
def taught(demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("taught") / "data"
    shutil.copytree(demo, folder)
    with SqliteStore.open(folder) as store:
        store.keep(*events(time.time() - 70 * DAY)).result()
    keep_found(folder, FOUND, Knobs().with_changes({"keep": 9, "crowd": 30}))
    with served(folder) as address:
        yield address


def read(address, path: str):
    return call(address, "GET", f"/{address.token}/hotset/api/learning{path}").json()


def order(address, body: bytes) -> None:
    path = f"/{address.token}/hotset/api/learning/act"
    assert call(address, "POST", path, body, JSON).status == 200


@pytest.mark.row("X4")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_shown_without_errors_barriers_or_a_page_wider_than_a_phone(
    taught, visit, part, scheme
):
    visited = visit(taught, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    visited.open(f"learning{part}")
    for summary in visited.page.locator("main summary").all():
        summary.click()
    assert violations(visited.page) == []
    visited.page.set_viewport_size({"width": 360, "height": 740})
    visited.page.wait_for_function("() => document.documentElement.scrollWidth <= 361")
    assert visited.troubles == []


@pytest.mark.row("X4")
def test_a_keyboard_reaches_every_part_its_pictures_tables_and_what_can_be_ordered(taught, visit):
    visited = visit(taught)
    visited.open("learning?part=time")
    page = visited.page
    page.get_by_role("link", name="Learning").focus()
    seen: list[str] = []
    for _ in range(24):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent").strip())
    for each in ("Freeze all", "Beliefs", "Profiles compared", "keep", "The same as a table"):
        assert each in seen
    page.get_by_role("button", name="Beliefs").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**part=beliefs*")
    assert visited.troubles == []


@pytest.mark.row("X4")
def test_what_replay_saved_and_why_stand_beside_each_change(taught, visit):
    visited = visit(taught)
    visited.open("learning")
    text = visited.page.inner_text("main")
    assert "12 of 30 later sessions are touched: they cost 9.0% less" in text
    assert "it was asked back" in text
    assert "NaN" not in text
    assert "undefined" not in text


@pytest.mark.row("X4")
def test_curves_are_drawn_with_the_same_values_in_a_table_and_again_when_the_page_turns_dark(
    taught, visit
):
    visited = visit(taught, color_scheme="light", viewport={"width": 1280, "height": 900})
    visited.open("learning?part=time")
    page = visited.page
    told = {each["knob"]: each["steps"] for each in read(taught, "/curves/knobs")["rows"]}
    assert told.keys() == {"keep", "crowd", "tools.Bash"}
    card = page.locator(".curve").filter(has=page.get_by_role("button", name="keep", exact=True))
    card.locator("summary").click()
    assert card.locator("details tbody tr").count() == len(told["keep"]) == 3
    assert "7" in card.locator("details tbody tr").nth(1).inner_text()
    picture = "() => document.querySelector('.curve canvas').toDataURL()"
    light = page.evaluate(picture)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"light => ({picture})() !== light", arg=light)
    assert page.locator(".curve canvas").count() == 4
    page.get_by_label("How far back").select_option("7")
    page.wait_for_url("**days=7*")
    assert visited.troubles == []


@pytest.mark.row("X4")
def test_beliefs_are_drawn_over_time(taught, visit):
    visited = visit(taught)
    visited.open("learning?part=beliefs&days=0")
    assert visited.page.locator(".curve canvas").count() == 2
    visited.page.locator(".curve summary").first.click()
    points = read(taught, "/curves/beliefs?days=0")["rows"][0]["points"]
    assert (
        visited.page.locator(".curve").first.locator("details tbody tr").count() == len(points) > 30
    )
    assert visited.troubles == []


@pytest.mark.row("X4")
def test_the_control_is_compared_with_intervals_and_ended_by_a_click(taught, visit):
    visited = visit(taught)
    visited.open("learning?part=compare")
    page = visited.page
    assert page.locator("svg.interval").count() >= 3
    row = page.get_by_role("row").filter(has_text="untouched, as a control").first
    row.get_by_role("button", name="End the trial").click()
    page.locator(".notice").get_by_role("button", name="Undo").click()
    page.get_by_text("from the next session on").wait_for()
    page.locator(".notice button").wait_for(state="detached")
    assert {arm["name"]: arm["share"] for arm in read(taught, "")["status"]["arms"]}["off"] == 0.1
    assert visited.troubles == []


@pytest.mark.row("X4")
@pytest.mark.row("M12")
def test_what_a_search_found_is_adopted_by_the_keyboard_and_taken_back_by_a_click(taught, visit):
    visited = visit(taught)
    visited.open("learning?part=evolution")
    page = visited.page
    assert page.locator(".front circle").count() >= 4
    page.get_by_role("button", name="Adopt").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Yes, adopt").wait_for()
    assert "adopt" in page.evaluate("document.activeElement.textContent").lower()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Take back").wait_for()
    assert read(taught, "/knob/history.passage")["value"] == 120
    page.locator(".notice").get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Adopt").wait_for()
    assert read(taught, "/knob/history.passage")["value"] == 300
    assert visited.troubles == []


@pytest.mark.row("X4")
@pytest.mark.row("M12")
def test_a_refusal_is_a_sentence_on_the_page(taught, visit):
    visited = visit(taught)
    visited.open("learning?part=evolution")
    page = visited.page
    page.get_by_role("button", name="Adopt").click()
    order(taught, b'{"act": "freeze", "knobs": ["history"]}')  # meanwhile, in another place
    page.get_by_role("button", name="Yes, adopt").click()
    page.get_by_text("history.passage is frozen, so nothing learned changes it").wait_for()
    assert {each.split()[0] for each in visited.troubles} == {"400", "error:"}
    page.reload()
    page.get_by_text("unfreeze it with: hotset learn unfreeze history").wait_for()
    assert page.get_by_role("button", name="Adopt").count() == 0
    order(taught, b'{"act": "unfreeze", "knobs": ["history"]}')


@pytest.mark.row("X4")
def test_a_knob_is_given_a_value_frozen_and_both_are_undone_by_clicks(taught, visit):
    visited = visit(taught)
    visited.open("learning?knob=keep")
    page = visited.page
    page.get_by_label("Your own value").fill("5")
    page.get_by_role("button", name="Set", exact=True).click()
    page.get_by_role("button", name="Yes, set").click()
    page.get_by_text("keep is 5 from now on").wait_for()
    assert read(taught, "/knob/keep")["value"] == 5
    page.get_by_role("button", name="Unfreeze", exact=True).click()
    page.get_by_text("no longer frozen: keep").wait_for()
    assert read(taught, "/knob/keep")["value"] == 9
    page.locator(".notice").get_by_role("button", name="Undo").click()
    page.get_by_text("keep is 5 from now on").wait_for()
    assert read(taught, "/knob/keep")["value"] == 5
    page.get_by_role("button", name="Unfreeze", exact=True).click()
    page.get_by_text("no longer frozen: keep").wait_for()
    assert visited.troubles == []


@pytest.mark.row("X4")
def test_a_change_is_taken_back_and_allowed_again_by_clicks(taught, visit):
    visited = visit(taught)
    visited.open("learning")
    page = visited.page
    card = page.locator("article").filter(has=page.get_by_role("button", name="tools.Bash"))
    card.get_by_role("button", name="Undo").click()
    card.get_by_role("button", name="Yes, undo").click()
    page.get_by_text("new sessions have the defaults").wait_for()
    page.get_by_text("changes that are not in force").click()
    card.get_by_role("button", name="Allow it again").click()
    page.get_by_text("may be learned again").wait_for()
    assert read(taught, "/knob/tools.Bash")["source"] == "default"
    assert visited.troubles == []
