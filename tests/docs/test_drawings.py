"""Drawings and transcripts in pages are those of real runs, and a stale one is noticed."""

import runpy
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs"
GENERATE = runpy.run_path(str(PAGES / "generate.py"))
PAGE = """\
```yaml
name: one ask
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: job, queue: root.default}
- ask: {app: job, key: task, resource: {vcore: 1}}
```

Drawn by hand:

```text drawn --about task --mailbox context
task appears
```
"""


def test_a_drawing_is_that_of_the_scenario_above() -> None:
    fresh = GENERATE["redrawn"](PAGE)
    assert fresh == PAGE.replace(
        "task appears\n",
        """\
rm_proxy   context   scheduler
    |         |          |
    |-------->|          |       RMUpdateAllocation asks task
    |         |<---------|       ProposeAllocations as of 8: task -> n1
""",
    )
    assert GENERATE["redrawn"](fresh) == fresh


def test_every_drawing_in_the_pages_is_kept_fresh() -> None:
    drawn = [page for page in PAGES.rglob("*.md") if "```text drawn" in page.read_text("utf-8")]
    assert drawn == [PAGES / GENERATE["GANGS"]]


def test_the_swap_is_in_the_drawings() -> None:
    page = (PAGES / GENERATE["GANGS"]).read_text("utf-8")
    for words in ("parked for scenario-1 on n1", "parked for scenario-1 on n2"):
        assert page.count(words) == 1
    assert page.count("SwapCompleted job task swapped for hold") == 2
    assert page.count("AllocationsRequested gives back hold") == 2


def test_the_transcripts_show_the_race_that_they_are_about() -> None:
    """If not, another seed has to be chosen, in the page and where its commands are run.

    That the page is what is printed, `test_generated_pages_are_fresh` shows.
    """
    page = (PAGES / "how-to/reproduce-a-race.md").read_text("utf-8")
    assert f"--seed {GENERATE['RACE_SEED']} --trace" in page
    assert page.count("ASK_GONE") == 1


def test_a_stale_transcript_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cancel.yaml").write_text("name: x\nsteps:\n- advance: 1s\n", "utf-8")
    command = "$ yunikorn-actors scenario run cancel.yaml --seed 3"
    stale = f"```console\n{command}\nonce this was printed\n```"
    fresh = GENERATE["_CONSOLE"].sub(GENERATE["_transcript"], stale)
    assert fresh.startswith(f"```console\n{command}\nok    x (")
    assert fresh.endswith(", 7.2 ms)\n1 files, 1 runs, 0 failures\n```")
