"""R-064, R-037, H-17: whatever a reservation stands on leaves while reservations are on their way.

The node, the ask or the application goes; no reservation outlives it, and the count follows.
"""

from collections.abc import Callable

import pytest
import ranges
from support import APP, Lab
from watching import Kept

from yunikorn_actors import si

seeded = ranges.seeds(120)
OLD = {si.constants.TAG_CREATION_TIME: "1"}
LEAVES: dict[str, Callable[[Lab], None]] = {
    "node": lambda lab: lab.decommission("n1"),
    "drained node": lambda lab: lab.node("n1", si.ActionFromRM.DRAIN_NODE),
    "ask": lambda lab: lab.withdraw("large"),
    "application": lambda lab: lab.remove(APP),
}


@seeded
@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_nothing_is_reserved_for_what_has_left(seeds: range, leaves: Callable[[Lab], None]) -> None:
    refused = dropped = 0
    for seed in seeds:
        kept = Kept()
        lab = Lab(seed=seed, checkers=(kept,))
        lab.nodes(n1=4, spare=3)
        lab.submit(APP, "other")
        lab.ask("fills", vcore=3, app="other", tags={si.constants.TAG_REQUIRED_NODE: "n1"})
        lab.settle()
        lab.ask("large", vcore=4, tags=OLD)
        leaves(lab)
        lab.settle()
        assert lab.state.reservation_count == 0
        assert kept.made == kept.dropped.total()
        refused += lab.races.refusals.total()
        dropped += kept.made
        assert lab.leftovers() == {}
    assert refused > 0, "vacuous: no reservation was on its way"
    assert dropped > 0, "vacuous: nothing was ever reserved"
