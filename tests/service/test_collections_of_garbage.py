"""The service's collections of garbage look at what is new, and forget nothing for ever."""

import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[1] / "helpers"


def run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, cwd=HELPERS)


@pytest.mark.parametrize("what", ["until_doubled", "as_it_was"])
def test_what_survived_a_full_collection_is_passed_over(what: str) -> None:
    run(f"import collected; collected.{what}()")


def test_a_core_leaves_the_collector_of_its_program_alone() -> None:
    run(
        "import gc; before = gc.get_threshold(), list(gc.callbacks), gc.isenabled()\n"
        "from yunikorn_actors import SchedulerCore\n"
        "with SchedulerCore(): pass\n"
        "assert before == (gc.get_threshold(), gc.callbacks, gc.isenabled())\n"
        "assert gc.get_freeze_count() == 0\n"
    )
