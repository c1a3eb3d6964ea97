"""A page put together from its assets, and the policy under which it is shown."""

import base64
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Final

SHARED: Final = files("yunikorn_actors.pages") / "assets"
SCRIPT: Final = "parts.js"
"""What the scripts of every page use."""


class Document:
    def __init__(self, assets: Traversable, scripts: Sequence[str]) -> None:
        """`assets` holds `page.html`, `page.css` and these scripts, in their order."""
        self._template = Template((assets / "page.html").read_text("utf-8"))
        self._style = _text(SHARED / "base.css") + _text(assets / "page.css")
        self._scripts = [_text(SHARED / SCRIPT), *(_text(assets / name) for name in scripts)]

    @property
    def policy(self) -> tuple[str, ...]:
        """Nothing is loaded or sent; a page that needs more adds it."""
        return tuple(_policy(self._style, self._scripts))

    def text(self, **holes: str) -> str:
        """Write the page; what is put into the holes of its own is markup."""
        return self._template.substitute(
            style=f"<style>{self._style}</style>",
            scripts="\n".join(f"<script>{script}</script>" for script in self._scripts),
            **holes,
        )


def _policy(style: str, scripts: Sequence[str]) -> Iterator[str]:
    yield "default-src 'none'"
    yield f"style-src {_hash(style)}"
    yield f"script-src {' '.join(map(_hash, scripts))}"
    yield "base-uri 'none'"
    yield "form-action 'none'"
    # A text can become markup nowhere: the browser refuses to take it for that.
    yield "require-trusted-types-for 'script'"
    yield "trusted-types 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _text(asset: Traversable) -> str:
    return asset.read_text("utf-8")
