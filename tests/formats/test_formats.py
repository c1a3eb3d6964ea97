"""A file of each format is kept, and each is read: this version's, and that of the one before.

The files are never changed. A new number brings a new file, and the number before it stays.
"""

import json
from pathlib import Path

import msgspec
import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.config import parse_config, warnings_in
from yunikorn_actors.lab.tapes.tape import TAPE_FORMAT
from yunikorn_actors.messages.codec import FORMAT_VERSION
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.scenario.document import SCENARIO_FORMAT
from yunikorn_actors.state.dump import DUMP_FORMAT
from yunikorn_actors.state.facts import AllocationCommitted, AllocationsCommitted
from yunikorn_actors.trace.read import TraceReader

KEPT = Path(__file__).parent
ENDINGS = {
    "trace": "msgpack",
    "dump": "json",
    "scenario": "yaml",
    "configuration": "yaml",
    "tapes": "json",
}
NUMBERS = {
    "trace": FORMAT_VERSION,
    "dump": DUMP_FORMAT,
    "scenario": SCENARIO_FORMAT,
    "configuration": 1,
    "tapes": TAPE_FORMAT,
}
FILES = {
    f"{kind}-{number}": KEPT / f"{kind}-{number}.{ENDINGS[kind]}"
    for kind, now in NUMBERS.items()
    for number in (now - 1, now)
    if number
}
"""What has to be there."""


def of_kind(kind: str) -> list[Path]:
    return [path for name, path in FILES.items() if name.startswith(kind)]


def test_there_is_a_file_of_each_number() -> None:
    assert [] == [name for name, path in FILES.items() if not path.exists()]


@pytest.mark.parametrize("path", of_kind("trace"), ids=lambda path: path.stem)
def test_a_trace_is_read_and_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TraceReader(path) as trace:
        deliveries = list(trace)
    assert len(deliveries) > 50
    for command in ("show", "draw"):
        assert main(["trace", command, str(path)]) == 0
        assert "complete" in capsys.readouterr().out or command == "draw"


@pytest.mark.parametrize("path", of_kind("trace"), ids=lambda path: path.stem)
def test_a_trace_replays(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "replay", str(path)]) == 0
    assert "identical" in capsys.readouterr().out


def test_a_trace_tells_how_long_things_took() -> None:
    with TraceReader(FILES["trace-2"]) as trace:
        assert sum(it.previous_took_ns is not None for it in trace) > 50


def test_a_trace_without_runs_replays(capsys: pytest.CaptureFixture[str]) -> None:
    """It was recorded when each allocation was committed and announced by itself."""
    path = FILES["trace-1"]
    with TraceReader(path) as trace:
        appended = [it.message for it in trace if isinstance(it.message, FactsAppended)]
    kinds = [type(fact) for message in appended for fact in message.facts]
    assert AllocationCommitted in kinds
    assert AllocationsCommitted not in kinds
    assert main(["trace", "replay", str(path)]) == 0
    assert "identical" in capsys.readouterr().out


@pytest.mark.parametrize("path", of_kind("dump"), ids=lambda path: path.stem)
def test_a_state_dump_is_judged_and_explained(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["health", str(path)]) < 2, "two: it cannot be read"
    waiting = json.loads(path.read_text("utf-8"))["waiting"]
    (first,) = [asks["asks"][0] for asks in waiting.values() if asks["asks"]]
    assert main(["why", first["application_id"], first["key"], "--dump", str(path)]) == 0
    assert first["key"] in capsys.readouterr().out


@pytest.mark.parametrize("path", of_kind("scenario"), ids=lambda path: path.stem)
@pytest.mark.parametrize("driver", ["sim", "threads"])
def test_a_scenario_holds(path: Path, driver: str) -> None:
    assert main(["scenario", "run", str(path), "--driver", driver]) == 0


@pytest.mark.parametrize("path", of_kind("configuration"), ids=lambda path: path.stem)
def test_a_configuration_means_what_it_meant(path: Path) -> None:
    text = path.read_text("utf-8")
    assert () == warnings_in(text)
    meant = json.loads(path.with_suffix(".json").read_text("utf-8"))
    read = json.loads(msgspec.json.encode(parse_config(text)))
    assert meant == read


def test_a_later_number_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = SCENARIO_FORMAT + 1
    (tmp_path / "x.yaml").write_text(f"format: {later}\nname: x\nsteps: [{{advance: 1s}}]\n")
    assert main(["scenario", "run", str(tmp_path / "x.yaml")]) == 2
    assert f"format {later}" in capsys.readouterr().out
    (tmp_path / "x.json").write_text(json.dumps({"format": DUMP_FORMAT + 1}))
    assert main(["health", str(tmp_path / "x.json")]) == 2
    assert f"format {DUMP_FORMAT + 1}" in capsys.readouterr().err
