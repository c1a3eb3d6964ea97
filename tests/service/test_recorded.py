"""What is served is recorded like any other run: followers and questions are part of it."""

from pathlib import Path

import pytest
from served import live, serving

from yunikorn_actors.cli import main


def test_a_recording_of_a_served_core_is_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.trace"
    with serving(trace=path) as it:
        live(it)
        assert it.get("/ws/v1/scheduler/healthcheck")["Healthy"]
        assert "obstacle" in it.get("/ws/v1/x/why?application=app-need&key=need-0")
    assert 0 == main(["trace", "replay", str(path)]), capsys.readouterr().out
