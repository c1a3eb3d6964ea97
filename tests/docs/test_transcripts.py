"""Every transcript in the pages is run, and what it shows is what is printed.

The blocks of a page are run in their order, in one empty folder. A `yaml` block below a text that
ends with the name of a file is saved under that name; "Change the last `A` to `B`" changes that
file, "Change it back" takes this back. In what is shown a line `...` stands for any lines, and `...`
within a line for any text; times in milliseconds are not compared, and below a text that ends with
"numbers will differ:" no number is. Pages that `docs/generate.py` writes have their transcripts from
there, and a test that they are fresh.
"""

import contextlib
import io
import re
import runpy
import shlex
from pathlib import Path

import pytest
from differential.__main__ import main as differential
from pages import PAGES, REPOSITORY

from yunikorn_actors.cli import main as yunikorn_actors

GENERATED = runpy.run_path(str(REPOSITORY / "docs/generate.py"))["PAGES"]
PROGRAMS = {"yunikorn-actors": yunikorn_actors, "python -m tests.differential": differential}
SLOW = ("README.md", "docs/how-to/check-against-the-model.md")
"""What they show takes seconds, or minutes of both cores."""

_STEP = re.compile(
    r"`(?P<file>[\w.-]+\.yaml)`[^`\n]*:\n\n```yaml\n(?P<text>(?:(?!```).*\n)*)```$"
    r"|Change the last `(?P<old>[^`]+)` to `(?P<new>[^`]+)`"
    r"|(?P<back>Change it back)"
    r"|(?P<loose>numbers will differ:\n\n)?^```console\n(?P<console>(?:(?!```).*\n)*)```$",
    re.MULTILINE,
)


def transcript_faults(text: str) -> list[str]:
    """Follow a page in the present folder; tell what is printed otherwise than shown."""
    faults: list[str] = []
    file, before = Path(), ""
    for step in _STEP.finditer(text):
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


def shown_on(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


TRANSCRIBED = [
    page
    for page in PAGES
    if "```console" in page.read_text("utf-8")
    and shown_on(page).removeprefix("docs/") not in GENERATED
]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if shown_on(page) in SLOW else ())
        for page in TRANSCRIBED
    ],
    ids=shown_on,
)
def test_a_transcript_is_what_is_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [] == transcript_faults(page.read_text("utf-8"))


STORY = """\
Save this as `one.yaml`:

```yaml
name: x
steps:
- advance: 1s
```

Change the last `1s` to `2s`.

```console
$ yunikorn-actors scenario run one.yaml
ok    x (... messages, 5 ms)
...
```
"""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (STORY, 0),
        (STORY.replace("ok  ", "FAIL"), 1),
        (STORY.replace("...\n```", "```"), 1),
        (STORY.replace("...\n```", "1 files, 1 runs, 0 failures\n```"), 0),
        (STORY.replace("ok    x", "ok    y"), 1),
        (
            STORY.replace("`2s`.", "`2s`; numbers will differ:").replace(
                "...\n```", "7 files, 8 runs, 9 failures\n```"
            ),
            0,
        ),
        (STORY.replace("to `2s`", "to `nothing`"), 1),
        (STORY.replace("Change the last `1s`", "Change the last `9s`"), 1),
    ],
)
def test_a_wrong_transcript_is_noticed(
    text: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert number == len(transcript_faults(text))
