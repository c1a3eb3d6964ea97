"""The import contracts hold, and each of them notices what it is there for.

A violation is planted in a copy of the package; the contract that has to notice it must be broken,
and no other.
"""

import re
import shutil
import sys
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
PACKAGE = "yunikorn_actors"

LAYERS = "Dependencies point inwards"
MACHINES = "Machines never import each other; the topology wires them"
PLANNING = "Inside planning: model, victims, decisions, planner, why"
PURE = "The core reads no clock, no dice, no file and starts no thread"

PLANTED = {
    "a clock in the domain": ("values/ids.py", "import time", PURE),
    "dice in the planner": ("planning/planner.py", "from random import random", PURE),
    "a thread in a machine": ("machines/events/publisher.py", "import threading", PURE),
    "a file in a message": ("messages/queries.py", "import os.path", PURE),
    "a path in the configuration": ("config/names.py", "from pathlib import Path", PURE),
    "a process in the interface": ("si/enums.py", "import subprocess", PURE),
    "logging in a machine": ("machines/rm_proxy/rm_proxy.py", "from loguru import logger", PURE),
    "a clock in the read side": ("service/read/read_model.py", "import time", PURE),
    "the runtime in a machine": (
        "machines/settings.py",
        "from yunikorn_actors.drivers.live.clock import Clock",
        LAYERS,
    ),
    "the runtime in the simulator": (
        "drivers/simulator/choosers.py",
        "from yunikorn_actors.drivers.live.clock import Clock",
        LAYERS,
    ),
    "the simulator in the runtime": (
        "drivers/live/clock.py",
        "from yunikorn_actors.drivers.simulator import choosers",
        LAYERS,
    ),
    "the service in the runtime": (
        "drivers/live/clock.py",
        "from yunikorn_actors.service import listener",
        LAYERS,
    ),
    "messages in the planner": (
        "planning/planner.py",
        "from yunikorn_actors.messages import queries",
        LAYERS,
    ),
    "a machine in the checks": (
        "checks/rm_record.py",
        "from yunikorn_actors.machines import machine",
        LAYERS,
    ),
    "a clock in the checks": ("checks/owed.py", "import time", PURE),
    "the interface in the domain": (
        "values/ids.py",
        "from yunikorn_actors.si import enums",
        LAYERS,
    ),
    "a decision in the model": (
        "planning/model/views.py",
        "from yunikorn_actors.planning.stages import stage",
        PLANNING,
    ),
    "a decision in the search for victims": (
        "planning/preemption/victim_search.py",
        "from yunikorn_actors.planning.stages import stage",
        PLANNING,
    ),
    "one machine in another": (
        "machines/scheduler.py",
        "from yunikorn_actors.machines.context import Context",
        MACHINES,
    ),
}


Check = Callable[[Path], list[str]]


@pytest.fixture
def broken_contracts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Check the package in a directory, whose setup.cfg has the contracts."""

    def check(root: Path) -> list[str]:
        # The linter asks Python where the package is, which is the one that is imported already.
        monkeypatch.delitem(sys.modules, PACKAGE)
        monkeypatch.syspath_prepend(root)
        monkeypatch.chdir(root)
        status = lint_imports(no_cache=True, no_logo=True)
        out = capsys.readouterr().out
        verdict_line = r"^(.*) (KEPT|BROKEN)(?: \(\d+ ignored imports\))?$"
        verdicts = dict(re.findall(verdict_line, out, flags=re.MULTILINE))
        assert {LAYERS, MACHINES, PURE} <= verdicts.keys(), out
        broken = [name for name, verdict in verdicts.items() if verdict == "BROKEN"]
        assert bool(broken) == bool(status)
        return broken

    return check


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "setup.cfg", copy)
    shutil.copytree(ROOT / PACKAGE, copy / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_the_contracts_hold(broken_contracts: Check) -> None:
    assert [] == broken_contracts(ROOT)


@pytest.mark.parametrize(("module", "line", "contract"), PLANTED.values(), ids=PLANTED)
def test_a_violation_breaks_its_contract(
    copy: Path, broken_contracts: Check, module: str, line: str, contract: str
) -> None:
    path = copy / PACKAGE / module
    sound = path.read_text("utf-8")
    path.write_text(f"{sound}\n{line}\n", "utf-8")
    try:
        assert [contract] == broken_contracts(copy)
    finally:
        path.write_text(sound, "utf-8")


def test_every_part_of_the_package_has_its_place_in_the_layers() -> None:
    """One that is in no layer could import anything, and be imported by anybody."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    layers = config["importlinter:contract:layers"]["layers"].replace("|", " ").split()
    parts = _parts(ROOT / PACKAGE)
    whole = [part for part in parts if f"{PACKAGE}.{part}" in layers]
    split = [
        f"{part}.{of}"
        for part in parts
        if part not in whole
        for of in _parts(ROOT / PACKAGE / part)
    ]
    assert sorted(f"{PACKAGE}.{part}" for part in (*whole, *split)) == sorted(layers)


def _parts(folder: Path) -> list[str]:
    return [
        path.stem
        for path in folder.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists())
        and not path.stem.startswith("__")
    ]
