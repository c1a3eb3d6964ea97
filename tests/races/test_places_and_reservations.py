"""Who may run is decided anew while a reservation, which takes a place as well, is on its way."""

from collections import Counter
from collections.abc import Callable

import pytest
import ranges
from support import APP, RM, Lab, report
from watching import Kept

from yunikorn_actors import si
from yunikorn_actors.state.reserved_nodes import WAIT_NS
from yunikorn_actors.values.durations import SECOND

seeded = ranges.seeds(120)
OLD = {si.constants.TAG_CREATION_TIME: "1"}
LIMITS = {
    "of a queue": "maxapplications: 1",
    "of a user": "limits: [{limit: one, users: [bob], maxapplications: 1}]",
    "of a group": "limits: [{limit: one, groups: [ops], maxapplications: 1}]",
}
ASKED_BY = {"large": APP, "small": "second"}
of_each = pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)


def config_with(limit: str) -> str:
    """A leaf with the limit, beside one that fills the nodes."""
    leaf = f"{{name: tight, {limit}}}"
    return (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', "
        f"queues: [{{name: default}}, {leaf}]}}]}}]"
    )


def lab_of(seed: int, limit: str) -> tuple[Lab, Kept]:
    """n1 has room for `large` when `fills` ends, the others are too small for it."""
    kept = Kept()
    lab = Lab(seed=seed, config=config_with(limit), checkers=(kept,))
    lab.submit("filler", user="ann")
    ops = si.UserGroupInformation(user="bob", groups=("ops",))
    new = tuple(
        si.AddApplicationRequest(application_id=name, queue_name="root.tight", ugi=ops)
        for name in (APP, "second")
    )
    lab.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=new))
    lab.nodes(n1=8, n2=6, n3=6)
    lab.report(report("fills", "n1", 7, app="filler"))
    lab.settle()
    return lab, kept


def is_reserving(lab: Lab) -> bool:
    return lab.state.reservation_count > 0


@seeded
@of_each
def test_one_place_for_a_reservation_or_an_allocation(seeds: range, limit: str) -> None:
    """Both applications are Accepted and ask at once: one of them gets the place, for good."""
    won = Counter[bool]()
    for seed in seeds:
        lab, kept = lab_of(seed, limit)
        lab.ask("large", vcore=8, tags=OLD)
        for _ in range(seed % 9):
            lab.simulator.step()
        lab.ask("small", app="second")
        lab.settle()
        won[is_reserving(lab)] += 1
        assert ("small" in lab.running()) is not is_reserving(lab)
        assert kept.dropped.total() == 0
        lab.release("fills", app="filler")
        lab.settle()
        (first,) = lab.running()
        lab.release(first, app=ASKED_BY[first])
        lab.advance(31)
        (then,) = lab.running()
        assert {"large", "small"} == {first, then}, "its end lets the other one go"
        assert lab.leftovers() == {}
    assert 2 == len(won), f"vacuous: one of them always won: {won}"


COMES: dict[str, Callable[[Lab, str], None]] = {
    "recovery": lambda lab, _: lab.report(report("forced", "n2", 1, app="second")),
    "reload": lambda lab, limit: lab.configure(config_with(limit)),
}


@seeded
@of_each
@pytest.mark.parametrize("comes", COMES)
def test_the_place_goes_while_the_reservation_is_on_its_way(
    seeds: range, comes: str, limit: str
) -> None:
    """It is refused, or ends after an hour; either way the node is free for others then."""
    refused = given_up = 0
    for seed in seeds:
        is_reload = comes == "reload"
        lab, kept = lab_of(
            seed, limit.replace("applications: 1", "applications: 2") if is_reload else limit
        )
        if is_reload:
            lab.report(report("forced", "n2", 1, app="second"))
            lab.settle()
        lab.ask("large", vcore=8, tags=OLD)
        for _ in range(seed % 9):
            lab.simulator.step()
        COMES[comes](lab, limit)
        lab.settle()
        refused += lab.races.refusals["APP_LIMIT"]
        lab.release("fills", app="filler")
        lab.settle()
        assert "large" in lab.waiting(), "one application runs, and no more may"
        assert kept.made <= 1
        was_kept = is_reserving(lab)
        lab.ask("other", vcore=8, app="filler")
        lab.settle()
        assert ("other" in lab.waiting()) is was_kept
        lab.advance(WAIT_NS / SECOND + 1)
        given_up += kept.dropped["its application could not start for too long"]
        assert not is_reserving(lab)
        assert "other" in lab.running()
        assert lab.leftovers() == {}
    assert refused > 0, "vacuous: no reservation was refused for its place"
    assert given_up > 0, "vacuous: no reservation was made before its place went"
