"""What pages are made of: nothing in them can become markup, and the package holds all of it."""

import re
from configparser import ConfigParser
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest
from pages import REPOSITORY

from yunikorn_actors.pages.html_page import SCRIPT, SHARED
from yunikorn_actors.service.rest import own_routes as live
from yunikorn_actors.trace.view import run_page as of_a_run

PARTS: list[tuple[Traversable, str]] = [
    (SHARED, SCRIPT),
    (SHARED, "base.css"),
    *(
        (page.ASSETS, name)
        for page in (of_a_run, live)
        for name in ("page.html", "page.css", *page.SCRIPTS)
    ),
]
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|XMLHttpRequest|import\("
)


@pytest.mark.parametrize(
    ("assets", "name"), PARTS, ids=[f"{Path(str(it[0])).parent.name}/{it[1]}" for it in PARTS]
)
def test_nothing_in_a_page_becomes_markup(assets: Traversable, name: str) -> None:
    text = (assets / name).read_text("utf-8")
    assert not MARKUP.search(text)
    # A script or a style that ended its element would go on as markup.
    assert name.endswith(".html") or "</" not in text


def test_a_page_of_a_run_asks_nobody() -> None:
    for name in (SCRIPT, *of_a_run.SCRIPTS):
        assets = SHARED if name == SCRIPT else of_a_run.ASSETS
        assert "fetch(" not in (assets / name).read_text("utf-8")


def test_the_package_holds_all_parts() -> None:
    config = ConfigParser()
    config.read(REPOSITORY / "setup.cfg")
    patterns = config["options.package_data"]["yunikorn_actors"].split(", ")
    held = {file for pattern in patterns for file in (REPOSITORY / "yunikorn_actors").glob(pattern)}
    assert {Path(str(assets / name)) for assets, name in PARTS} <= held
