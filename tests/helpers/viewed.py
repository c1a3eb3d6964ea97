"""What is in a page of `trace view`: its data unpacked, and its policy."""

import base64
import html
import json
import re
import zlib
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
