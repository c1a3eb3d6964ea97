"""One file of HTML with a recorded run in it, or two: it needs no network and no other file.

What comes from outside is data: it is packed, and the page writes it as text alone.
"""

import base64
import html
import zlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import Struct

from yunikorn_actors.pages.html_page import Document
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.read import silent
from yunikorn_actors.trace.view.aligned import Aligned, aligned
from yunikorn_actors.trace.view.objects import Objects, WhyOf, objects_of
from yunikorn_actors.trace.view.run_data import Run, Shown, Tell, drawn
from yunikorn_actors.values.garbage import without_collections

ASSETS: Final = files("yunikorn_actors.trace.view") / "assets"
SCRIPTS: Final = ("run.js", "axis.js", "strip.js", "lanes.js", "panels.js", "page.js")

LEVEL: Final = 4
"""Of compression: the usual one takes more than twice as long, for a tenth less."""


class _Pictured(Struct, kw_only=True):
    run: Run
    about: Objects


class _Data(Struct, kw_only=True):
    runs: list[_Pictured]
    comparison: Aligned | None


class Page(Struct, kw_only=True):
    text: str
    messages: list[int]
    """How many of each recording are in it."""


def page(
    recordings: Sequence[Shown], wanted: FilterOptions, why_of: WhyOf, tell: Tell = silent
) -> Page:
    """Make the page of one recording, or of two above each other."""
    with without_collections():
        return _page(recordings, wanted, why_of, tell)


def _page(recordings: Sequence[Shown], wanted: FilterOptions, why_of: WhyOf, tell: Tell) -> Page:
    pictures = [drawn(it, wanted, tell) for it in recordings]
    runs = [
        _Pictured(run=it.run, about=objects_of(shown, it, why_of, tell))
        for shown, it in zip(recordings, pictures, strict=True)
    ]
    blocks = {"data": msgspec.json.encode(_Data(runs=runs, comparison=_compared(recordings, runs)))}
    for number, picture in enumerate(pictures):
        blocks[f"payloads-{number}"] = b"\n".join(picture.payloads)
    names = " and ".join(it.name for it in recordings)
    return Page(text=_text(names, blocks), messages=[len(it.deliveries) for it in pictures])


def _compared(recordings: Sequence[Shown], runs: Sequence[_Pictured]) -> Aligned | None:
    if len(recordings) == 1:
        return None
    one, other = recordings
    return aligned(one, other, (runs[0].run.messages.record, runs[1].run.messages.record))


# -- HTML


def _text(title: str, blocks: dict[str, bytes]) -> str:
    document = Document(ASSETS, SCRIPTS)
    return document.text(
        title=html.escape(printable(title)),
        policy=html.escape("; ".join(document.policy), quote=False),
        data="\n".join(_packed(name, data) for name, data in blocks.items()),
    )


def _packed(name: str, data: bytes) -> str:
    packed = base64.b64encode(zlib.compress(data, LEVEL)).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>'
