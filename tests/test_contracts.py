"""The import contracts hold, and each of them notices what it is there for.

A violation is planted in a copy of the package; the contract that has to notice it must be broken,
and no other.
"""

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "yunikorn_actors"
PATIENCE_S = 100

LAYERS = "Dependencies point inwards"
MACHINES = "Machines never import each other; the topology wires them"
PURE = "The core reads no clock, no dice, no file and starts no thread"

PLANTED = {
    "a clock in the domain": ("domain/ids.py", "import time", PURE),
    "dice in the planner": ("planning/planner.py", "from random import random", PURE),
    "a thread in a machine": ("machines/event_publisher.py", "import threading", PURE),
    "a file in a message": ("messages/queries.py", "import os.path", PURE),
    "logging in a machine": ("machines/rm_proxy/rm_proxy.py", "from loguru import logger", PURE),
    "a clock in the read side": ("service/read/side.py", "import time", PURE),
    "the runtime in a machine": (
        "machines/settings.py",
        "from yunikorn_actors.runtime.clock import Clock",
        LAYERS,
    ),
    "the runtime in the simulator": (
        "sim/choosers.py",
        "from yunikorn_actors.runtime.clock import Clock",
        LAYERS,
    ),
    "the simulator in the runtime": (
        "runtime/clock.py",
        "from yunikorn_actors.sim import choosers",
        LAYERS,
    ),
    "the service in the runtime": (
        "runtime/clock.py",
        "from yunikorn_actors.service import part",
        LAYERS,
    ),
    "messages in the planner": (
        "planning/planner.py",
        "from yunikorn_actors.messages import queries",
        LAYERS,
    ),
    "the interface in the domain": (
        "domain/ids.py",
        "from yunikorn_actors.si import enums",
        LAYERS,
    ),
    "one machine in another": (
        "machines/scheduler.py",
        "from yunikorn_actors.machines.context import Context",
        MACHINES,
    ),
}


def broken_contracts(root: Path) -> list[str]:
    """Check the package in this directory; its setup.cfg has the contracts."""
    program = (
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(no_cache=True, no_logo=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    verdict_line = r"^(.*) (KEPT|BROKEN)(?: \(\d+ ignored imports\))?$"
    verdicts = dict(re.findall(verdict_line, done.stdout, flags=re.MULTILINE))
    assert {LAYERS, MACHINES, PURE} <= verdicts.keys(), done.stdout + done.stderr
    broken = [name for name, verdict in verdicts.items() if verdict == "BROKEN"]
    assert bool(broken) == bool(done.returncode)
    return broken


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    shutil.copytree(
        ROOT / PACKAGE, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def test_the_contracts_hold() -> None:
    assert [] == broken_contracts(ROOT)


@pytest.mark.parametrize(("module", "line", "contract"), PLANTED.values(), ids=PLANTED)
def test_a_violation_breaks_its_contract(copy: Path, module: str, line: str, contract: str) -> None:
    with (copy / PACKAGE / module).open("a") as file:
        file.write(f"\n{line}\n")
    assert [contract] == broken_contracts(copy)


def test_every_part_of_the_package_has_its_place_in_the_layers() -> None:
    """One that is in no layer could import anything, and be imported by anybody."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    layers = config["importlinter:contract:layers"]["layers"].replace("|", " ").split()
    parts = (
        path.stem
        for path in (ROOT / PACKAGE).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    )
    expected = sorted(f"{PACKAGE}.{part}" for part in parts if not part.startswith("__"))
    assert expected == sorted(layers)
