"""The pages of this repository."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted((*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")))

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
