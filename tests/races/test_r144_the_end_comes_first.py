"""R-144: once a resource manager has left, nothing that was under way for it happens any more.

Decisions, timers, announcements, and the configuration of a group that it was in.
"""

import ranges
from support import APP, CONFIG, RM, labs

from yunikorn_actors import si

seeded = ranges.seeds(80)
OTHER = CONFIG.replace("{name: default}", "{name: default}, {name: q}")


@seeded
def test_nothing_happens_after_the_end(seeds: range) -> None:
    silenced = 0
    for lab in labs(seeds):
        lab.submit(APP, "app-2")
        lab.nodes(n1=10)
        lab.ask("a")
        lab.settle()
        lab.release("a")
        lab.let_timers_fire(30)
        lab.ask("b", "c", app="app-2")
        lab.simulator.unregister_resource_manager(RM)
        for _ in range(lab.seed % 12):
            lab.simulator.step()
        dump = lab.simulator.state_dump()
        heard = list(lab.rm.heard) if not dump["managers"] else None
        lab.simulator.advance(10**9 * 3600 * 24 * 4)
        assert ({}, []) == (lab.context.partitions, list(lab.simulator.timers))
        assert ["context", "event_publisher", "rm_proxy"] == sorted(lab.simulator.machines)
        silenced += ("new", "b", "n1") not in lab.rm.heard
        assert heard in (None, lab.rm.heard)
    assert silenced > 0, "vacuous: everything had been announced before the end"


@seeded
def test_a_configuration_of_the_group_comes_too_late(seeds: range) -> None:
    """The other member goes on under it; the one that has left does not come back."""
    for lab in labs(seeds):
        other = si.RegisterResourceManagerRequest(rm_id="rm-2", config=CONFIG)
        lab.simulator.register_resource_manager(other, si.ResourceManagerCallback())
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.ask("a")
        lab.simulator.unregister_resource_manager(RM)
        reload = si.UpdateConfigurationRequest(rm_id="rm-2", config=OTHER)
        lab.simulator.update_configuration(reload)
        lab.settle()
        assert ["[rm-2]default"] == list(lab.context.partitions)
        assert "root.q" in lab.context.partitions["[rm-2]default"].state.queues
        dump = lab.simulator.state_dump()
        assert ["rm-2"] == list(dump["managers"])
