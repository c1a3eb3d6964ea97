# ruff: noqa: INP001 - read by Sphinx, imported by nobody
"""The site: `sphinx-build -W -n docs build/site`, without the network.

The pages are plain Markdown whose links work in a browser of the repository. What the site needs
beside them is made here while they are read, so that no page says anything twice: the navigation
comes from the links of `index.md`, and links that lead out of `docs` are bent to pages of the site.
"""

import re
import sys
from pathlib import Path
from textwrap import indent
from typing import Any, get_type_hints

import msgspec
from docutils import nodes
from pygments.lexers.special import OutputLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode

import yunikorn_actors

REPOSITORY = Path(__file__).parent.parent

project = "yunikorn_actors"
author = "the yunikorn_actors developers"
copyright = f"{author}. Apache License 2.0"  # noqa: A001 - the name that Sphinx looks for
version = release = yunikorn_actors.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!yunikorn_actors\b)[a-z]\w*\..*|[A-Za-z]\w*"),
    ("py:.*", r".*\.[A-Z]"),
    ("py:.*", r".*\._[A-Z]\w*"),
]
"""Types of others have no page here, nor have type variables. Each other type needs an entry."""

default_role = "code"
"""Docstrings are read by people as well: `this` is code there."""
autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 120
toc_object_entries_show_parents = "hide"

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
MADE_BY_THE_CORE = (
    "Application",
    "AsyncApplication",
    "AsyncEventStream",
    "AsyncEvents",
    "AsyncLease",
    "EventStream",
    "Events",
    "Lease",
    "Responses",
)
"""A program gets these and makes none."""

FENCED = re.compile(r"^```python\n((?:.*\n)*?)```$", re.MULTILINE)
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


def _public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, words: nodes.Element
) -> nodes.Element | None:
    """Find a class by the name under which it is public, wherever it is written."""
    known = env.domains.python_domain.objects
    name = node["reftarget"].rpartition(".")[2]
    for package in ("yunikorn_actors", "yunikorn_actors.si"):
        found = known.get(f"{package}.{name}")
        if found is not None:
            return make_refnode(
                app.builder, node["refdoc"], found.docname, found.node_id, words, name
            )
    return None


def _plain_types() -> None:
    """Show the fields of messages with the types that a program gives them, without bounds.

    The package imports its parts when they are first used, and some read these types then.
    """
    for name in yunikorn_actors.__all__:
        getattr(yunikorn_actors, name)
    for kind in vars(yunikorn_actors.si).values():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            types = get_type_hints(kind)
            kind.__annotations__ = {name: types[name] for name in kind.__annotations__}


def _signature(_app: Sphinx, _what: str, name: str, *told: Any) -> tuple[str, str] | None:  # noqa: ANN401 - as Sphinx passes them
    """Leave out how to make what only the core makes.

    A default that is made anew for each message is an empty mapping: write it as one.
    """
    *_, signature, returns = told
    if name.rpartition(".")[2] in MADE_BY_THE_CORE:
        return "", ""
    return signature and (signature.replace("<factory>", "{}"), returns)


def _docstring(_app: Sphinx, what: str, name: str, *told: Any) -> None:  # noqa: ANN401 - as Sphinx passes them
    """Put in the words of a value, which Python does not keep; write fenced code as a directive."""
    lines: list[str] = told[-1]
    if what == "data":
        lines[:] = _words_of(name.rpartition(".")[2])
    text = "\n".join(line for line in lines if not line.startswith("Create new instance of "))
    lines[:] = re.sub(FENCED, _block, text).split("\n")


def _words_of(name: str) -> list[str]:
    """Find the text below the assignment, in whichever module makes it."""
    modules = [module for module in tuple(sys.modules) if module.startswith("yunikorn_actors.")]
    said = (ModuleAnalyzer.for_module(module).find_attr_docs() for module in modules)
    return next(docs["", name] for docs in said if ("", name) in docs)


def _block(fenced: re.Match[str]) -> str:
    return ".. code-block:: python\n\n" + indent(fenced[1], "   ")


def setup(app: Sphinx) -> dict[str, Any]:
    _plain_types()
    app.connect("source-read", _read)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("missing-reference", _public)
    app.add_lexer("output", OutputLexer)
    return {"parallel_read_safe": True}
