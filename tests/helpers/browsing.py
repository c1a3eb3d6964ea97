"""Pages in a headless Chromium that finds no name but the loopback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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


CONTRAST_MIN = 4.5
"""Of what is read, as the guidelines for the web have it."""
EDGE_CONTRAST_MIN = 3.0
"""Of what is only seen."""
_CONTRASTS = """(names) => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const hex = style.getPropertyValue(`--${name}`).trim().slice(1);
    const part = (at) => {
      const value = parseInt(hex.slice(at, at + 2), 16) / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4);
  };
  return names.map(([one, other]) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return [one, other, (high + 0.05) / (low + 0.05)];
  });
}"""
_NAMELESS = """() =>
  [...document.querySelectorAll('input, select, button, canvas, nav, section, aside, dialog')]
    .filter((it) => it.getAttribute('aria-hidden') !== 'true' && it.type !== 'hidden' && !it.hidden)
    .filter((it) => !(it.labels?.length || it.getAttribute('aria-label') ||
      it.getAttribute('aria-labelledby') || it.textContent.trim()))
    .map((it) => it.id || it.outerHTML)"""


class Opened:
    """A page of ours, and what came of it that nobody saw."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1400, "height": 900}, **options)
        self.page.set_default_timeout(READY_MS)
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = url
        self.page.goto(self.url)

    def ready(self) -> "Opened":
        self.page.wait_for_selector("html[data-ready]")
        return self

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

    def weak(self, *pairs: tuple[str, str], least: float = CONTRAST_MIN) -> list[Any]:
        """Return the pairs of colours, by their names, that cannot be told apart well."""
        return [it for it in self.page.evaluate(_CONTRASTS, pairs) if it[2] < least]

    def nameless(self) -> list[str]:
        """Return what does not say what it is to somebody who does not see it."""
        found: list[str] = self.page.evaluate(_NAMELESS)
        return found

    @property
    def selected(self) -> list[int]:
        """Of a page of a run: the side and the number of the message that is selected."""
        found: list[int] = self.page.evaluate(
            "() => app.selected ? [app.selected.run.side, app.selected.message] : []"
        )
        return found
