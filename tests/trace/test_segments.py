"""A recording without its beginning answers what can be told of the rest, and refuses the others."""

from pathlib import Path

import pytest
from recordings import records, rewrite, simulate

from yunikorn_actors.cli import main
from yunikorn_actors.cli.trace import COMMANDS

Screen = pytest.CaptureFixture[str]
REPEATS = ("replay", "why a", "at context/9", "scrub -o OUT", "what-if --config NEW")
"""These run the messages again."""
READS = (
    "show", "draw", "chain context/9", "story app-1", "path app-1/b", "refusals", "stats",
    "diff FILE", "export --to jsonl", "export --to perfetto", "export --to otlp",
    "export --to markdown", "view -o OUT", "query 'SELECT count(*) FROM message'",
)  # fmt: skip
MISSING = "the beginning of the run is not in it"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.trace"
    head, *rest = records(simulate(path))
    middle = next(
        n for n, it in enumerate(rest) if (it.get("mailbox"), it.get("step")) == ("context", 7)
    )
    rewrite(path, [{**head, "segment": 2}, *rest[middle:]])
    return path


def asked(path: Path, command: str) -> int:
    name, *arguments = command.replace("OUT", str(path.with_name("out"))).split(" ", 1)
    if name == "query":
        return main(["trace", name, str(path), *(it.strip("'") for it in arguments)])
    words = " ".join(arguments).replace("FILE", str(path)).split()
    if "NEW" in words:
        new = path.with_name("new.yaml")
        new.write_text("partitions: [{name: default, queues: [{name: root}]}]")
        words[words.index("NEW")] = str(new)
    return main(["trace", name, str(path), *words])


def test_each_command_is_tried() -> None:
    """All but `tail`, which does not end before its run does."""
    assert COMMANDS.keys() - {"tail"} == {it.split()[0] for it in (*REPEATS, *READS)}


@pytest.mark.parametrize("command", REPEATS)
def test_what_runs_it_again_is_refused(path: Path, command: str, capsys: Screen) -> None:
    assert asked(path, command) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{path}: {MISSING}; a replay needs every message from the first one on" in told.err
    assert "show it or draw it instead" in told.err


@pytest.mark.parametrize("command", READS)
def test_what_reads_it_is_answered(path: Path, command: str, capsys: Screen) -> None:
    assert asked(path, command) in {0, 1}
    told = capsys.readouterr()
    assert told.out
    assert told.err == ""


@pytest.mark.parametrize("command", ["show", "stats", "diff FILE"])
def test_what_is_missing_is_said(path: Path, command: str, capsys: Screen) -> None:
    asked(path, command)
    assert MISSING in capsys.readouterr().out.splitlines()[-1]
