"""The pytest plugin: the fixtures `lab` and `check_policy`, and their options.

pytest loads it wherever the package is installed, so it imports the laboratory only when a test
asks for a fixture.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from yunikorn_actors.lab.hunt import Lab
    from yunikorn_actors.lab.policy_check import Report


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lab", "the race laboratory of yunikorn-actors")
    group.addoption("--lab-runs", type=int, metavar="N", help="how many schedules of each workload")
    group.addoption("--lab-seed", type=int, metavar="N", help="another seed, other schedules")
    group.addoption(
        "--lab-tape",
        metavar="TAPE_OR_FILE_OR_FOLDER",
        help="play this tape, or of a folder those of each test, and nothing else",
    )
    group.addoption("--lab-save", type=Path, metavar="DIR", help="keep the tapes that fail here")


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> "Lab":
    """Explore a workload: `lab.explore(workload)`."""
    from yunikorn_actors.lab.hunt import Lab, Wishes  # noqa: PLC0415 - heavy, and seldom wanted

    option = request.config.getoption
    return Lab(
        request.node.nodeid,
        Wishes(
            runs=option("lab_runs"),
            seed=option("lab_seed"),
            tape=option("lab_tape"),
            save=option("lab_save"),
        ),
    )


@pytest.fixture
def check_policy() -> "Callable[..., Report]":
    """Check a policy: `check_policy(Mine)`; the test fails with what is wrong with it."""
    from yunikorn_actors.lab.policy_check import check_policy  # noqa: PLC0415 - as above

    def check(policy: object, **wishes: Any) -> "Report":  # noqa: ANN401 - as it has them
        report = check_policy(policy, **wishes)
        assert report.is_good, report.text
        return report

    return check
