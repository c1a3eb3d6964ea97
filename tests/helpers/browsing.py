"""A page in a headless Chromium that finds no name but the loopback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("there is no Chromium here")


@contextmanager
def blank_page() -> Iterator[Any]:
    browsers = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with browsers.sync_playwright() as players:
        # Without a sandbox of its own: a container for tests has no rights to make one.
        only_here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        browser = players.chromium.launch(executable_path=path, args=["--no-sandbox", only_here])
        try:
            yield browser.new_page()
        finally:
            browser.close()
