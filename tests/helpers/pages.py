"""The pages of this repository."""

from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted((*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")))

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
"""A test for each page; where a page takes next to nothing, see `faulty`."""


def faulty(faults: Callable[[Path], list[str]]) -> dict[str, list[str]]:
    """Go through all pages in one test; return what is wrong by the page where it is."""
    found = ((page.relative_to(REPOSITORY).as_posix(), faults(page)) for page in PAGES)
    return {page: its for page, its in found if its}
