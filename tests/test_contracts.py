"""The import contracts hold, and each of them notices what it is there for.

Violations are planted in a copy of the package, all of one contract at once: it must be broken, and
each of them named.
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


Check = Callable[[Path], tuple[list[str], str]]
"""Returns the contracts that are broken, and what is printed."""


@pytest.fixture
def broken_contracts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Check the package in a directory, whose setup.cfg has the contracts."""

    def check(root: Path) -> tuple[list[str], str]:
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
        return broken, out

    return check


def test_the_contracts_hold(broken_contracts: Check) -> None:
    assert [] == broken_contracts(ROOT)[0]


@pytest.mark.parametrize("contract", [LAYERS, MACHINES, PLANNING, PURE])
def test_a_violation_breaks_its_contract(
    tmp_path: Path, broken_contracts: Check, contract: str
) -> None:
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    package = tmp_path / PACKAGE
    shutil.copytree(ROOT / PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    planted = {what: it for what, it in PLANTED.items() if it[2] == contract}
    for module, line, _ in planted.values():
        with (package / module).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    broken, out = broken_contracts(tmp_path)
    assert contract in broken
    named = set(re.findall(r"(\S+)\s+->\s+(\S+)\s+\(l\.\d+", out))
    assert [] == [
        what
        for what, (module, line, _) in planted.items()
        if named.isdisjoint(_imports(module, line))
    ]


def _imports(module: str, line: str) -> list[tuple[str, str]]:
    """Return how the linter may write what a line of a module imports."""
    importer = f"{PACKAGE}.{module.removesuffix('.py').replace('/', '.')}"
    _, first, *rest = line.split()
    names = [first, *(f"{first}.{it}" for it in rest[1:])]
    return [(importer, it) for it in (*names, first.partition(".")[0])]


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
