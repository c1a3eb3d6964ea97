"""The package as the README installs it from a clone, seen from a program elsewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import REPOSITORY

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]
NOT_CLONED = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "runtime-data"
)
PLAIN = {key: it for key, it in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
"""What a shell has in which no environment of Python is active."""
STRICT = """\
from yunikorn_actors import Lease, Scheduler


def place(s: Scheduler, keys: list[str]) -> list[Lease]:
    app = s.application("job", user="ann")
    asked = [app.ask(key, vcore=1) for key in keys]
    return [it.result(timeout=10) for it in asked]


with Scheduler() as s:
    s.add_node("node-1", vcore=4)
    for lease in place(s, ["one", "two"]):
        print(lease.key, lease.node_id, lease.fly())
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the first command of the README has been run."""
    folder = tmp_path_factory.mktemp("clone") / "repository"
    shutil.copytree(REPOSITORY, folder, ignore=NOT_CLONED)
    readme = (folder / "README.md").read_text("utf-8")
    command, *_ = re.findall(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert "pip install -q -e . " in command
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=PLAIN, capture_output=True, text=True, check=False
    )
    if "demo" not in done.stdout + done.stderr and done.returncode:
        pytest.skip(f"it cannot be installed here: {done.stderr[-300:]}")
    assert 0 == done.returncode, done.stderr
    return folder


def test_type_checkers_see_the_package_of_a_clone(clone: Path) -> None:
    """Mypy and pyright, on the examples and on the programs of the README and of tests/typed."""
    environment = {**PLAIN, "MYPY": f"{sys.executable} -m mypy"}
    done = subprocess.run(
        [REPOSITORY / ".ci/types", clone / ".venv/bin/python"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "Success: no issues found" in done.stdout


def test_a_mistake_is_noticed_from_elsewhere(clone: Path, tmp_path: Path) -> None:
    """What a checker cannot see it takes for anything, so one that sees has to find this one."""
    program = tmp_path / "program.py"
    program.write_text(STRICT)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        clone / ".venv/bin/python",
    ]
    done = subprocess.run(
        [*command, program], cwd=tmp_path, env=PLAIN, capture_output=True, text=True, check=False
    )
    errors = [it for it in done.stdout.splitlines() if ": error:" in it]
    assert 1 == len(errors), done.stdout
    assert '"Lease" has no attribute "fly"' in errors[0]
    if shutil.which("npm") is None:
        pytest.skip("there is no npm here, so no pyright")
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--omit=optional"]
    subprocess.run([*npm, "--prefix", tmp_path / "npm", "pyright"], check=True, capture_output=True)
    config = tmp_path / "pyrightconfig.json"
    config.write_text('{"include": ["program.py"], "typeCheckingMode": "strict"}')
    pyright = tmp_path / "npm/node_modules/.bin/pyright"
    done = subprocess.run(
        [pyright, "--pythonpath", clone / ".venv/bin/python", "--project", config],
        env=PLAIN, capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = [it for it in done.stdout.splitlines() if " - error: " in it]
    assert any('Cannot access attribute "fly" for class "Lease"' in it for it in errors)
    assert all("program.py:13:" in it for it in errors), done.stdout


def test_a_new_module_is_seen_without_another_install(clone: Path) -> None:
    (clone / "yunikorn_actors/new_module.py").write_text("print('seen')\n")
    command = [clone / ".venv/bin/python", "-c", "import yunikorn_actors.new_module"]
    done = subprocess.run(command, cwd="/", env=PLAIN, capture_output=True, text=True, check=True)
    assert "seen\n" == done.stdout
