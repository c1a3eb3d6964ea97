"""R-110, R-112, H-25: queues that placement makes, and the cleaner that takes them away.

Making the queue and adding the application are one step, so an application is never in a queue that
is gone, whichever comes first, the application or the cleaner.
"""

import ranges
from support import APP, Lab
from watching import Cleaner

RULES = (
    "placementrules: [{name: user, create: true, "
    "parent: {name: tag, value: namespace, create: true}}, {name: provided, create: true}]"
)
CONFIG = (
    f"partitions: [{{name: default, {RULES}, "
    "queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
)
CLEANING_S = 10
seeded = ranges.seeds(100)


@seeded
def test_r110_an_application_comes_with_the_cleaner(seeds: range) -> None:
    removed = stale = 0
    for seed in seeds:
        cleaner = Cleaner()
        lab = Lab(seed=seed, config=CONFIG, checkers=(cleaner,))
        lab.submit(APP, queue="root.team.leaf")
        lab.nodes(n1=10)
        lab.settle()
        lab.remove(APP)
        lab.let_timers_fire(CLEANING_S)
        lab.submit("app-2", queue="root.team.leaf")
        lab.ask("a", app="app-2")
        lab.settle()
        assert lab.running() == ["a"]
        queue = lab.state.queues["root.team.leaf"]
        assert lab.state.applications["app-2"].queue is queue
        assert {"vcore": 1} == queue.allocated
        removed += cleaner.removed
        stale += cleaner.stale
        assert lab.leftovers() == {}
        assert ["root", "root.default"] == list(lab.state.queues)
    assert removed > 0, "vacuous: the cleaner never came first"
    assert stale > 0, "vacuous: the application never came first"


@seeded
def test_h25_one_leaves_as_another_comes(seeds: range) -> None:
    """The second firing for the same queue is that of another emptiness."""
    stale = 0
    for seed in seeds:
        cleaner = Cleaner()
        lab = Lab(seed=seed, config=CONFIG, checkers=(cleaner,))
        lab.submit(APP, queue="root.team.leaf")
        lab.settle()
        lab.remove(APP)
        lab.let_timers_fire(CLEANING_S)
        lab.submit("app-2", queue="root.team.leaf")
        lab.remove("app-2")
        lab.settle()
        stale += cleaner.stale
        if not cleaner.removed:
            lab.advance(CLEANING_S - 1)
            assert "root.team.leaf" in lab.state.queues
        lab.advance(CLEANING_S)
        assert ["root", "root.default"] == list(lab.state.queues)
    assert stale > 0, "vacuous: no firing met the second emptiness"


def test_r112_the_parent_is_made_on_the_way() -> None:
    """For the first application that names it as for the next."""
    for lab in (Lab(seed=seed, config=CONFIG) for seed in range(1, 11)):
        lab.submit(APP, tags={"namespace": "dev"})
        lab.submit("app-2", tags={"namespace": "dev"}, user="alice")
        lab.submit("app-3", tags={"namespace": "ops"})
        lab.settle()
        paths = [app.queue.path for app in lab.state.applications.values()]
        assert ["root.dev.bob", "root.dev.alice", "root.ops.bob"] == paths
        assert [(id_, "accepted") for id_ in (APP, "app-2", "app-3")] == lab.rm.told("application")
        assert lab.leftovers() == {}
