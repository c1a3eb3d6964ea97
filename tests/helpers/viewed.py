"""What is in a page of `trace view`: its data unpacked, and its policy."""

import base64
import html
import json
import re
import shutil
import subprocess
import zlib
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors.pages.html_page import SCRIPT, SHARED
from yunikorn_actors.trace.view.run_page import ASSETS

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


def speaking(page: Path, thing: dict[str, Any], side: int = 0) -> list[int]:
    """The messages that speak of an object, as the page finds them."""
    if thing["messages"] is not None:
        given: list[int] = thing["messages"]
        return given

    def says(payload: str, names: list[str]) -> bool:
        return any(f'"{name}"' in payload for name in names)

    owner = thing["application"]
    lines = blocks(page)[f"payloads-{side}"].split("\n")
    return [
        message
        for message, it in enumerate(lines)
        if says(it, thing["names"]) and (not owner or says(it, [owner, *thing["uuids"]]))
    ]


def answered(page: Path, script: str, asked: Any) -> Any:
    """What the page's own script says of the run that is shown, asked without a browser."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js here")
    parts = [(SHARED / SCRIPT).read_text("utf-8"), (ASSETS / "run.js").read_text("utf-8"), _READ]
    found = blocks(page)
    question = {"run": json.loads(found["data"])["runs"][0], "payloads": found["payloads-0"]}
    program, file = page.with_suffix(".js"), page.with_suffix(".json")
    program.write_text("\n".join((*parts, script)), "utf-8")
    file.write_text(json.dumps(question | {"asked": asked}), "utf-8")
    command = [node, str(program), str(file)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


_READ = """
const {run, payloads, asked} = JSON.parse(require("fs").readFileSync(process.argv[2]));
const read = new Run(run, payloads, 0);
const answer = (found) => process.stdout.write(JSON.stringify(found));
"""


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
