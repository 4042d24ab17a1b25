"""A real browser over a real proxy that serves what the demo kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hotset.surfaces.proxy.address import Address
from tests.proxy.test_killed import Up
from tests.proxy.wire import call

try:
    from playwright import sync_api as playwright
except ImportError:  # make test-browser installs it
    playwright = None  # type: ignore[assignment]

_PLACES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP evil.test 127.0.0.1",
)
_PATIENCE = 120_000  # milliseconds, on a busy machine


def _browser_file() -> str:
    found = os.environ.get("HOTSET_BROWSER") or next(filter(None, map(shutil.which, _PLACES)), "")
    if not found:
        pytest.skip("no chromium here: make test-browser installs one")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    if playwright is None:
        pytest.skip("no playwright here: make test-browser installs it")
    file = _browser_file()
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=file, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a demonstration that was played."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "demo"
    environment = {**os.environ, "HOME": str(home), "HOTSET_HOME": str(home / "hotset")}
    command = [sys.executable, "-m", "hotset", "demo", "--once", "--fast", "--data", str(folder)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return folder / "demo"


@contextmanager
def served(folder: Path, upstream: str = "http://127.0.0.1:9") -> Iterator[Address]:
    up = Up(folder, upstream, environment={"HOME": str(folder.parent)})
    try:
        yield up.start()
    finally:
        up.stop()


@dataclass
class Visit:
    """A page of the dashboard in the browser, and what went wrong on it."""

    page: playwright.Page
    address: Address
    troubles: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> None:
        self.page.goto(f"http://127.0.0.1:{self.address.port}/hotset/{path}")
        self.page.wait_for_selector("main h1", timeout=_PATIENCE)
        self.settle()

    def settle(self) -> None:
        """Returns when nothing loads any more."""
        self.page.wait_for_function(
            "() => !document.querySelector('main .loading')", timeout=_PATIENCE
        )


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Visit]]:
    """Opens the dashboard of a proxy by a link that works once."""
    contexts: list[playwright.BrowserContext] = []

    def begin(address: Address, **options: object) -> Visit:
        context = browser.new_context(**options)
        context.set_default_timeout(_PATIENCE)
        contexts.append(context)
        page = context.new_page()
        made = Visit(page, address)
        page.on("pageerror", lambda error: made.troubles.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: (
                message.type in ("error", "warning")
                and made.troubles.append(f"{message.type}: {message.text}")
            ),
        )
        page.on(
            "response",
            lambda answer: (
                answer.status >= 400 and made.troubles.append(f"{answer.status} {answer.url}")
            ),
        )
        link = call(address, "POST", f"/{address.token}/hotset/open", b"").json()["path"]
        page.goto(f"http://127.0.0.1:{address.port}{link}")
        return made

    yield begin
    for context in contexts:
        context.close()
