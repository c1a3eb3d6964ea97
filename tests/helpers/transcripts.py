"""Transcripts in pages: followed step by step, and compared with what is printed.

A `yaml` or `python` block below a text that ends with the name of a file is saved under that name;
"Change the last `A` to `B`" changes that file, "Change it back" takes this back. In what is shown a
line `...` stands for any lines, and `...` within a line for any text; times in milliseconds are not
compared, and below a text that ends with "numbers will differ:" no number is.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

from yunikorn_actors.cli import main as yunikorn_actors

PROGRAMS = {"yunikorn-actors": yunikorn_actors}


_FILE = (
    r"`(?P<file>[\w.-]+\.(?:yaml|py))`[^`\n]*:\n\n"
    r"```(?:yaml|python)\n(?P<text>(?:(?!```).*\n)*)```$"
)
_STEP = (
    _FILE + r"|Change the last `(?P<old>[^`]+)` to `(?P<new>[^`]+)`"
    r"|(?P<back>Change it back)"
    r"|(?P<loose>numbers will differ:\n\n)?^```{fence}\n(?P<console>(?:(?!```).*\n)*)```$"
)


def save_modules(text: str) -> None:
    """Save the Python files of a page in the present folder."""
    for found in re.finditer(_FILE, text, re.MULTILINE):
        if found["file"].endswith(".py"):
            Path(found["file"]).write_text(found["text"], "utf-8")


def transcript_faults(text: str, fence: str = "console") -> list[str]:
    """Follow a page in the present folder; tell what is printed otherwise than shown."""
    faults: list[str] = []
    file, before = Path(), ""
    for step in re.finditer(_STEP.replace("{fence}", fence), text, re.MULTILINE):
        if step["file"]:
            file = Path(step["file"])
            file.write_text(step["text"], "utf-8")
        elif step["old"]:
            before = file.read_text("utf-8")
            head, found, tail = before.rpartition(step["old"])
            if found:
                file.write_text(head + step["new"] + tail, "utf-8")
            else:
                faults.append(f"{file} has no {step['old']}")
        elif step["back"]:
            file.write_text(before, "utf-8")
        else:
            numbers = r"\d+(\.\d+)? ms\b" if step["loose"] is None else r" *\d+(\.\d+)?"
            faults += _console_faults(step["console"], numbers)
    return faults


def _console_faults(console: str, numbers: str) -> list[str]:
    """Compare what each command prints, but for what these `numbers` match."""
    _, *parts = re.split(r"^\$ (.*)\n", console, flags=re.MULTILINE)
    faults = []
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        printed = _printed(command)
        if not _pattern(re.sub(numbers, "#", shown)).fullmatch(re.sub(numbers, "#", printed)):
            faults.append(f"$ {command}\n{printed}\nis printed, and shown is\n{shown}")
    return faults


def _printed(command: str) -> str:
    """Both streams, as a terminal shows them."""
    name = next(name for name in PROGRAMS if command.startswith(f"{name} "))
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        PROGRAMS[name](shlex.split(command.removeprefix(name)))
    return out.getvalue()


def _pattern(shown: str) -> re.Pattern[str]:
    lines = (
        "(?:.*\n)*" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
        for line in shown.splitlines()
    )
    return re.compile("".join(lines))
