"""Whoever names an application that is not there is counted, whichever way the work came."""

from collections.abc import Callable

import pytest
from support import Lab, report

from yunikorn_actors import si

WAYS: dict[str, Callable[[Lab], None]] = {
    "asked for": lambda lab: lab.ask("work", app="nobody"),
    "reported": lambda lab: lab.report(report("work", "n1", app="nobody")),
    "came with its node": lambda lab: lab.node(
        "n2", si.ActionFromRM.CREATE, 10, existing_allocations=(report("work", "n2", app="nobody"),)
    ),
}


@pytest.mark.parametrize("come", WAYS.values(), ids=WAYS)
def test_work_of_nobody_is_rejected_and_counted(come: Callable[[Lab], None]) -> None:
    lab = Lab()
    lab.nodes(n1=10)
    come(lab)
    lab.settle()
    assert 1 == lab.simulator.state_dump()["scheduling_errors"]
    assert [("work", "failed to find application nobody")] == lab.rm.told("rejected")
