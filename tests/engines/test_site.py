"""The site is made from the pages without a warning, by the command that the pages show."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import REPOSITORY

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")
pytestmark = [pytest.mark.engines, pytest.mark.timeout(500)]


def test_the_site_has_no_warning(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/how-to/change-these-pages.md").read_text("utf-8")
    (options,) = re.findall(r"^\.venv/bin/sphinx-build (.*) build/site$", page, re.MULTILINE)
    command = [sys.executable, "-m", "sphinx", *shlex.split(options), str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert (tmp_path / "index.html").exists()
