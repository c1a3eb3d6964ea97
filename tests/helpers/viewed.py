"""What is in a page of `trace view`: its data unpacked, and its policy."""

import base64
import html
import json
import re
import zlib
from bisect import bisect_right
from pathlib import Path
from typing import Any

BLOCK = re.compile(r'<script type="text/plain" id="([\w-]+)">([^<]*)</script>')
POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')


def blocks(page: Path) -> dict[str, str]:
    found = BLOCK.findall(page.read_text("utf-8"))
    return {name: zlib.decompress(base64.b64decode(packed)).decode() for name, packed in found}


def data(page: Path) -> dict[str, Any]:
    unpacked: dict[str, Any] = json.loads(blocks(page)["data"])
    return unpacked


def payloads(page: Path, side: int = 0) -> list[Any]:
    return [json.loads(line) for line in blocks(page)[f"payloads-{side}"].splitlines()]


def policy(page: Path) -> list[str]:
    (found,) = POLICY.findall(page.read_text("utf-8"))
    return html.unescape(found).split("; ")


def texts(run: dict[str, Any], column: str) -> list[str]:
    """What a column of numbers of texts says of each message."""
    return [run["texts"][number] for number in run["messages"][column]]


def way(run: dict[str, Any], message: int, place: int) -> list[int]:
    """The messages on the way of one of the items of a message, back from there, in the picture."""
    ways, found = run["ways"], list[int]()
    first, own = ways["first"], ways["first"][-1]
    stage = first[message] + place
    while stage >= 0:
        is_own = stage < own
        found.append(bisect_right(first, stage) - 1 if is_own else ways["message"][stage - own])
        stage = ways["before"][stage]
    return [it for it in found if it >= 0]
