"""R-102, R-103: a queue leaves the configuration, and perhaps comes back.

It drains: what it has runs on, nothing new comes in, and it goes when it has been empty for a
while. If it is described again before that it is active again, whatever its cleaner had in mind.
"""

import ranges
from support import APP, CONFIG, Lab
from watching import Cleaner

BOTH = CONFIG.replace("{name: default}", "{name: default}, {name: q}")
CLEANING_S = 10
seeded = ranges.seeds(100)


@seeded
def test_r102_removed_and_described_again_while_the_cleaner_comes(seeds: range) -> None:
    removed = stale = 0
    for seed in seeds:
        cleaner = Cleaner()
        lab = Lab(seed=seed, config=BOTH, checkers=(cleaner,))
        lab.configure(CONFIG)
        assert lab.state.queues["root.q"].state == "Draining"
        lab.let_timers_fire(CLEANING_S)
        lab.configure(BOTH)
        lab.settle()
        assert lab.state.queues["root.q"].state == "Active"
        lab.advance(3 * CLEANING_S)
        lab.submit(APP, queue="root.q")
        lab.nodes(n1=10)
        lab.ask("a")
        lab.settle()
        assert lab.running() == ["a"]
        assert "root.q" == lab.state.applications[APP].queue.path
        removed += cleaner.removed
        stale += cleaner.stale
        assert lab.leftovers() == {}
    assert removed > 0, "vacuous: the cleaner never came first"
    assert stale > 0, "vacuous: the new configuration never came first"


@seeded
def test_r103_nothing_new_gets_into_a_draining_queue(seeds: range) -> None:
    """What it has is scheduled to the end, and then it goes."""
    drained = 0
    for seed in seeds:
        cleaner = Cleaner()
        lab = Lab(seed=seed, config=BOTH, checkers=(cleaner,))
        lab.submit(APP, queue="root.q")
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a")
        lab.configure(CONFIG)
        drained += lab.state.queues["root.q"].state == "Draining"
        lab.ask("b")
        lab.submit("app-2", queue="root.q")
        lab.settle()
        assert lab.running() == ["a", "b"]
        assert "root.default" == lab.state.applications["app-2"].queue.path
        lab.advance(CLEANING_S)
        assert "root.q" in lab.state.queues
        lab.remove(APP)
        lab.settle()
        lab.advance(CLEANING_S)
        assert ["root", "root.default"] == list(lab.state.queues)
        assert 1 == cleaner.removed
        assert lab.leftovers() == {}
    assert len(seeds) == drained


@ranges.seeds(100, usual=50)
def test_r103_an_application_races_with_the_end_of_its_queue(seeds: range) -> None:
    """The last one leaves, its cleaner comes, and another asks for the queue by name."""
    removed = stale = 0
    for seed in seeds:
        cleaner = Cleaner()
        lab = Lab(seed=seed, config=BOTH, checkers=(cleaner,))
        lab.submit(APP, queue="root.q")
        lab.settle()
        lab.configure(CONFIG)
        lab.remove(APP)
        lab.let_timers_fire(CLEANING_S)
        lab.submit("app-2", queue="root.q")
        lab.configure(BOTH)
        lab.submit("app-3", queue="root.q")
        lab.settle()
        queues = {id_: app.queue.path for id_, app in lab.state.applications.items()}
        assert {"app-2": "root.default", "app-3": "root.q"} == queues
        removed += cleaner.removed
        stale += cleaner.stale
    assert removed > 0, "vacuous: the cleaner never came first"
    assert stale > 0, "vacuous: the cleaner never came last"
