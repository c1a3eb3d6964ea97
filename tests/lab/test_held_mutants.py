"""What the search does not find, a test of the suite does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from yunikorn_actors.lab.mutants.corpus import CORPUS
from yunikorn_actors.lab.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
HELD = [mutant for mutant in CORPUS if mutant.held_by]
IDS = [mutant.id for mutant in HELD]
WITH_MUTANT = """
import sys, pytest
class Planted:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session):
        from yunikorn_actors.lab.mutants.corpus import BY_ID
        with BY_ID[sys.argv[1]].applied():
            return (yield)
options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-m", "slow or not slow", "-v"]
sys.exit(pytest.main([*options, sys.argv[2]], plugins=[Planted()]))
"""


@pytest.mark.parametrize("mutant", HELD, ids=IDS)
def test_the_test_that_is_named_exists(mutant: Mutant) -> None:
    file, name = mutant.held_by.split("::")
    function, _, parameter = name.partition("[")
    assert f"def {function}(" in (ROOT / file).read_text()
    # Other names of parameters change with the ranges of their test.
    assert parameter in {"", f"{mutant.id}]"}
    assert mutant.unseen
    assert mutant.unseen[0].isupper()
    assert mutant.unseen.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", HELD, ids=IDS)
def test_it_fails_with_the_mutant(mutant: Mutant) -> None:
    command = (sys.executable, "-c", WITH_MUTANT, mutant.id, mutant.held_by)
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # A process that fails before its tests ends with the same status.
    assert re.search(r"= .*\b\d+ failed", told.stdout), told.stdout + told.stderr
