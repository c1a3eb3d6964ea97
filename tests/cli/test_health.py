"""The health command judges a dump and says clearly what it cannot read."""

import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology


@pytest.fixture
def dump() -> dict[str, object]:
    return Simulator(Topology("fused", settings=Settings(), instance="t")).state_dump()


def test_a_fresh_core_is_healthy(
    dump: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))

    status = main(["health", str(file)])

    assert 0 == status
    assert capsys.readouterr().out.endswith("\nhealthy\n")


def test_a_sick_core_is_not(
    dump: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump | {"failed_nodes": ["n9"]}))

    status = main(["health", str(file), "--json"])

    result = json.loads(capsys.readouterr().out)
    assert (1, False) == (status, result["healthy"])


@pytest.mark.parametrize("text", ["no json", "[]", "{}", '{"partitions": 3}'])
def test_what_is_no_dump_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dump.json"
    file.write_text(text)

    status = main(["health", str(file)])

    assert 2 == status
    assert "core.state_dump()" in capsys.readouterr().err


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["health", "/nowhere/dump.json"])

    assert 2 == status
    assert "/nowhere/dump.json: No such file" in capsys.readouterr().err
