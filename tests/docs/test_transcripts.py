"""Every transcript in the pages is run, and what it shows is what is printed.

The blocks of a page are run in their order, in one empty folder (`transcripts` says how). Pages that
`docs/generate.py` writes have their transcripts from there, and a test that they are fresh; blocks
that need a service are run where there is one.
"""

import re
import runpy
from pathlib import Path

import pytest
from pages import PAGES, REPOSITORY
from transcripts import transcript_faults

GENERATED = runpy.run_path(str(REPOSITORY / "docs/generate.py"))["PAGES"]
SLOW = (
    "README.md",
    "docs/explanation/strategies.md",
    "docs/how-to/check-against-the-model.md",
    "docs/how-to/compare-two-policies.md",
    "docs/how-to/explore-overnight.md",
    "docs/tutorial/replay-a-cluster.md",
)
"""What they show takes seconds, or minutes of both cores."""


def shown_on(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


TRANSCRIBED = [
    page
    for page in PAGES
    if "```console\n" in page.read_text("utf-8")
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
    text = page.read_text("utf-8")
    assert [] == transcript_faults(text)
    for block in re.findall(r"^```python after\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, str(page), "exec"), {"__name__": "page"})  # noqa: S102 - our own pages


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
