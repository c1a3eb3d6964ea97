"""Programs in the pages that need a service are run against one, and print what stands below."""

import contextlib
import io
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("grpc")
from pages import PAGES, REPOSITORY

from yunikorn_actors.service.service import Serving

ADDRESS = "127.0.0.1:3333"
_BLOCK = re.compile(r"^```(.*)\n((?:(?!^```).*\n)*)^```$", re.MULTILINE)
SERVED = [page for page in PAGES if "```python served" in page.read_text("utf-8")]


def printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "page", "exec"), {"__name__": "page"})  # noqa: S102 - our own pages
    return out.getvalue()


@pytest.mark.parametrize("page", SERVED, ids=lambda page: page.name)
def test_a_program_does_what_its_page_says(page: Path, serve: Callable[..., Serving]) -> None:
    address = serve().parts["grpc"].address
    blocks = _BLOCK.findall(page.read_text("utf-8"))
    for (info, code), (below, shown) in pairwise([*blocks, ("", "")]):
        if info == "python served":
            assert ADDRESS in code
            said = printed(code.replace(ADDRESS, address))
            assert below != "output" or shown == said


def test_the_program_of_the_readme_runs_with_one_line_changed(
    serve: Callable[..., Serving],
) -> None:
    address = serve().parts["grpc"].address
    blocks = _BLOCK.findall((REPOSITORY / "README.md").read_text("utf-8"))
    (code, shown), *_ = [
        (code, shown)
        for (info, code), (_, shown) in pairwise(blocks)
        if info == "python" and "Scheduler()" in code
    ]
    remote = code.replace("import Scheduler\n", "import connect\n")
    remote = remote.replace("with Scheduler() as s:", f'with connect("{address}") as s:')
    assert shown == printed(remote)


def test_the_lines_of_the_container_are_those_of_the_pages() -> None:
    """The image itself needs a registry; what it installs and starts is tried elsewhere."""
    lines = (REPOSITORY / "deploy/Containerfile").read_text("utf-8").splitlines()
    assert (
        'ENTRYPOINT ["yunikorn-actors", "serve", "--grpc", "0.0.0.0:3333", "--rest", "0.0.0.0:9080"]'
        in lines
    )
    assert any(
        line.startswith("RUN pip install") and '"/src[grpc,service]"' in line for line in lines
    )
