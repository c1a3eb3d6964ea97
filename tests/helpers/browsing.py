"""Pages in a headless Chromium that finds no name but the loopback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

READY_MS = 100_000


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("there is no Chromium here")


@contextmanager
def browser() -> Iterator[Any]:
    browsers = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with browsers.sync_playwright() as players:
        # Without a sandbox of its own: a container for tests has no rights to make one.
        only_here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        options = ["--no-sandbox", only_here]
        started = players.chromium.launch(executable_path=path, args=options)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def blank_page() -> Iterator[Any]:
    with browser() as started:
        yield started.new_page()


class Opened:
    """A page of `trace view`, and what came of it that nobody saw."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1400, "height": 900}, **options)
        self.page.set_default_timeout(READY_MS)
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = file.absolute().as_uri()
        self.page.goto(self.url)
        self.page.wait_for_selector("html[data-ready]")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, selector: str) -> str:
        found: str = self.page.inner_text(selector)
        return found

    def drawn(self) -> None:
        """Wait until what was changed is drawn."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    @property
    def selected(self) -> list[int]:
        """The side and the number of the message that is selected."""
        found: list[int] = self.page.evaluate(
            "() => app.selected ? [app.selected.run.side, app.selected.message] : []"
        )
        return found
