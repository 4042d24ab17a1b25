"""Every view with what a demonstration kept: it opens, it says something, nothing goes wrong, and
people who use a keyboard, a screen reader or a phone can use it."""

from __future__ import annotations

import pytest

from tests.browser.conftest import served

pytestmark = [pytest.mark.slow, pytest.mark.browser]

VIEWS = (
    "now",
    "findings",
    "savings",
    "sessions",
    "session?session=last",
    "tools",
    "memory",
    "code",
    "learning",
    "health",
)
_GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def shown(demo):
    with served(demo) as address:
        yield address


def violations(page) -> list[str]:
    """Barriers that axe finds on a page."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - comes with make test-browser

    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']} ({node['html'][:120]})"
        for each in found
        if each["impact"] in _GRAVE
        for node in each["nodes"][:3]
    ]


@pytest.mark.row("X4")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_opens_without_errors_and_without_barriers(shown, visit, view, scheme):
    visited = visit(shown, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    visited.open(view)
    assert len(visited.page.inner_text("main")) > 60
    assert violations(visited.page) == []
    assert visited.troubles == []


@pytest.mark.row("X4")
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_a_phone(shown, visit, view):
    visited = visit(shown, viewport={"width": 360, "height": 740})
    visited.open(view)
    wide = visited.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 361
    assert visited.troubles == []


@pytest.mark.row("X4")
def test_a_keyboard_reaches_every_view_and_the_last_one_is_remembered(shown, visit):
    visited = visit(shown)
    visited.open("now")
    page = visited.page
    seen: set[str] = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.textContent").strip())
    assert {"Now", "Savings", "Sessions", "Tools", "Memory", "Code", "Learning", "Health"} <= seen
    page.get_by_role("link", name="Savings").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/savings")
    visited.open("")
    assert "Savings" in page.inner_text("main h1")
    assert visited.troubles == []


@pytest.mark.row("X4")
def test_a_link_to_a_state_opens_that_state(shown, visit):
    visited = visit(shown)
    visited.open("now?session=last&turn=3")
    address = visited.page.url
    assert "turn=3" in address
    assert "3" in visited.page.inner_text("main")
    visited.page.reload()
    visited.settle()
    assert visited.page.url == address


@pytest.mark.row("X4")
def test_all_scripts_and_styles_together_are_light(shown, visit):
    visited = visit(shown)
    sizes: dict[str, int] = {}
    visited.page.on(
        "response",
        lambda answer: (
            sizes.update({answer.url: int(answer.headers.get("content-length", 0))})
            if answer.request.resource_type in ("script", "stylesheet")
            else None
        ),
    )
    for view in VIEWS:
        visited.open(view)
    assert 20_000 < sum(sizes.values()) < 300_000


@pytest.mark.row("X4")
def test_opening_a_view_asks_for_nothing_twice(shown, visit):
    visited = visit(shown)
    visited.page.clock.install()
    asked: list[str] = []
    visited.page.on(
        "request",
        lambda request: asked.append(request.url) if "/api/" in request.url else None,
    )
    for view in VIEWS:
        asked.clear()
        visited.open(view)
        visited.page.locator(".live.on").wait_for()
        visited.page.clock.run_for(2000)  # what is gathered for a moment is asked now
        visited.settle()
        assert asked
        assert sorted(set(asked)) == sorted(asked)
