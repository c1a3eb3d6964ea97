"""A recording as a Python object says what the commands say."""

import json
from pathlib import Path

import pytest
from recordings import in_service, simulate

import yunikorn_actors.trace
from yunikorn_actors.cli import main
from yunikorn_actors.trace.read import TraceError
from yunikorn_actors.trace.recording import Recording

Screen = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def test_its_messages_and_its_ends(path: Path) -> None:
    simulate(path)
    recording = yunikorn_actors.trace.open(path)
    assert isinstance(recording, Recording)
    assert (recording.header.driver, recording.header.seed) == ("sim", 0)
    assert recording.footer is not None
    assert recording.footer.states
    assert len(list(recording)) == len(list(recording)) > 50


@pytest.mark.parametrize(
    ("command", "method", "arguments"),
    [
        ("story", "story", ["a"]),
        ("refusals", "refusals", []),
        ("chain", "chain", ["context/9"]),
    ],
)
def test_it_answers_as_the_commands_do(
    path: Path, capsys: Screen, command: str, method: str, arguments: list[str]
) -> None:
    simulate(path)
    assert main(["trace", command, str(path), *arguments, "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    answer = getattr(yunikorn_actors.trace.open(path), method)(*arguments)
    assert len(told) == len(answer) > 0


def test_ways_waits_states_and_replays(path: Path) -> None:
    in_service(path)
    recording = yunikorn_actors.trace.open(path)
    way = recording.path("app-1/app-1-9")
    assert way.took_ns == sum(part.took_ns for part in way.parts)
    (waits,) = recording.why("app-1-9", "app-1")
    assert waits.key == "app-1-9"
    state = recording.at("context/9")
    assert state is not None
    assert "partitions" in state
    assert recording.at(10**9) is None
    assert recording.replay().difference is None
    assert recording.stats().messages == len(list(recording))
    assert recording.chain("rm_proxy/1", down=True)


def test_it_is_told_apart_from_another(tmp_path: Path, path: Path) -> None:
    simulate(path)
    other = in_service(tmp_path / "b.trace")
    recording = yunikorn_actors.trace.open(path)
    assert recording.diff(recording).is_same
    found = recording.diff(other)
    assert not found.is_same
    assert found == recording.diff(yunikorn_actors.trace.open(other))


def test_rows_are_flat(path: Path) -> None:
    in_service(path)
    rows = list(yunikorn_actors.trace.open(path).rows())
    assert {"mailbox", "type", "at_ms", "waited_ms"} <= rows[0].keys()
    assert all(
        isinstance(value, str | int | float | None) for row in rows for value in row.values()
    )
    assert any((row["waited_ms"] or 0) > 0 for row in rows)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be opened"):
        yunikorn_actors.trace.open(tmp_path / "nothing")
    with pytest.raises(AttributeError, match="has no attribute 'shut'"):
        yunikorn_actors.trace.shut  # type: ignore[attr-defined]  # noqa: B018
