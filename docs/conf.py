# ruff: noqa: INP001 - read by Sphinx, imported by nobody
"""The site: `sphinx-build -W -n docs build/site`, without the network.

The pages are plain Markdown whose links work in a browser of the repository. What the site needs
beside them is made here while they are read, so that no page says anything twice: the navigation
comes from the links of `index.md`, and links that lead out of `docs` are bent to pages of the site.
"""

import re
from pathlib import Path
from typing import Any

from pygments.lexers.special import OutputLexer
from sphinx.application import Sphinx

import yunikorn_actors

REPOSITORY = Path(__file__).parent.parent

project = "yunikorn_actors"
author = "the yunikorn_actors developers"
copyright = f"{author}. Apache License 2.0"  # noqa: A001 - the name that Sphinx looks for
version = release = yunikorn_actors.__version__

extensions = ["myst_parser"]
root_doc = "index"
nitpicky = True

myst_heading_anchors = 4
"""Headings are linked to by their words, as a browser of the repository does."""

html_theme = "furo"
html_title = f"yunikorn_actors {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False

LISTS = ("index", "adr/README")
"""Pages that list others: each part of them is a part of the bar at the side."""
_HEADING = re.compile(r"^##? (.*)$", re.MULTILINE)
_ITEM = re.compile(r"^(?:-|\d+\.) \[.*\]\(([\w./-]+)\.md\)", re.MULTILINE)


def _navigation(text: str) -> str:
    _, *parts = _HEADING.split(text)
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""])
        for title, part in zip(parts[::2], parts[1::2], strict=True)
        if (pages := _ITEM.findall(part))
    ]
    return "\n".join([text, *trees])


def _inside(text: str) -> str:
    """Bend links that lead out of `docs` to what the site has instead.

    A diagram is left out: drawing it would need a program from the network, and a table says the
    same.
    """
    text = re.sub(r"^```mermaid\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\((?:\.\./)*README\.md(#[\w-]+)?\)", "](/index.md)", text)
    return re.sub(r"\]\((?:\.\./)*CHANGELOG\.md(#[\w-]+)?\)", "](/changelog.md)", text)


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == "changelog":
        text = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
        source[0] = re.sub(r"\]\((?:docs/)?(?=[\w-]+/)", "](", text).replace(
            "](examples/", "](../examples/"
        )
    else:
        source[0] = _inside(_navigation(source[0]) if page in LISTS else source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _read)
    app.add_lexer("output", OutputLexer)
    return {"parallel_read_safe": True}
