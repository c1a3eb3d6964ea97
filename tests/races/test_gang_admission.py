"""An admission is on its way, and what it was based on changes."""

from collections.abc import Callable

import pytest
import ranges
from ganging import application, ask_placeholders, placeholders, submit_gang
from support import Lab, labs

seeded = ranges.seeds(150)


def _config(leaf: str) -> str:
    return (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', "
        f"queues: [{{name: default, {leaf}}}]}}]}}]"
    )


def _quota(vcore: int) -> str:
    return _config(f"resources: {{max: {{vcore: {vcore}m}}}}")


def _user_limit(vcore: int) -> str:
    return _config(f"limits: [{{limit: '', users: [bob], maxresources: {{vcore: {vcore}m}}}}]")


def _group_limit(vcore: int) -> str:
    named = "{limit: '', groups: [others], maxapplications: 9}"
    anybody = f"{{limit: '', groups: ['*'], maxresources: {{vcore: {vcore}m}}}}"
    return _config(f"limits: [{named}, {anybody}]")


Bound = Callable[[int], str]
BOUNDS = pytest.mark.parametrize("bound", [_quota, _user_limit, _group_limit])


def _gang(lab: Lab) -> None:
    lab.nodes(n1=10)
    submit_gang(lab, 4)
    lab.settle()
    ask_placeholders(lab, *placeholders(4))


@seeded
@BOUNDS
def test_a_bound_is_lowered_while_a_gang_is_admitted(seeds: range, bound: Bound) -> None:
    """All of it is placed or nothing; its placeholders are refused with their admission."""
    lost = 0
    for lab in labs(seeds, config=bound(4)):
        _gang(lab)
        lab.configure(bound(3))
        lab.settle()
        assert lab.running() in ([], placeholders(4))
        assert application(lab).is_admitted is bool(lab.running())
        refusals = lab.races.refusals["GANG_HELD"]
        assert refusals in ({0, 5} if not lab.running() else {0})
        lost += refusals
        lab.configure(bound(4))
        lab.settle()
        assert lab.running() == placeholders(4)
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no admission was on its way"


@seeded
@pytest.mark.parametrize("bound", [_user_limit, _group_limit])
def test_a_limit_is_raised_while_a_gang_comes(seeds: range, bound: Bound) -> None:
    """A gang that is larger than a quota is refused at once, so that is no bound here."""
    held = 0
    for lab in labs(seeds, config=bound(3)):
        _gang(lab)
        for _ in range(lab.seed % 12):
            lab.simulator.step()
        held += application(lab).waiting_placeholders > 0
        lab.configure(bound(4))
        lab.settle()
        assert lab.running() == placeholders(4)
    assert held > 0, "vacuous: it was never held"
