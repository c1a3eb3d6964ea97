"""H-26: applications that are rejected while others of the same id live and end.

Each is remembered by itself until its time is up, and none disturbs the living one.
"""

import ranges
from support import APP, Lab, labs

from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state.dump import snapshot


@ranges.seeds(30)
def test_each_rejection_is_remembered_and_forgotten(seeds: range) -> None:
    met = 0
    for lab in labs(seeds):
        lab.submit(APP, APP, APP)
        lab.nodes(n1=10)
        lab.ask("a")
        lab.submit(APP)
        lab.remove(APP)
        lab.submit(APP, APP)
        lab.ask("b")
        lab.settle()
        rejected = [item for item in lab.state.finished.values() if item.state == "Rejected"]
        assert 4 == len(rejected)
        answers = [words for _, words in lab.rm.told("application")]
        expected = ["accepted", "", "", "", "accepted", ""]
        assert expected == [words if words == "accepted" else "" for words in answers]
        assert lab.running() == ["b"]
        met += bool(lab.rm.told("released")) or lab.races.refusals.total()
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: nothing was decided for the first one"


def test_only_so_many_ended_applications_are_remembered() -> None:
    """The oldest go early, each told as Expired and without a timer left behind."""
    lab = Lab(settings=Settings(history_max=3, rejected_max=2))
    lab.nodes(n1=10)
    for number in range(6):
        lab.submit(f"app-{number}")
        lab.ask(f"a-{number}", app=f"app-{number}")
        lab.settle()
        lab.release(f"a-{number}", app=f"app-{number}")
        lab.advance(30)
    assert ["app-3", "app-4", "app-5"] == _remembered(lab)
    assert {"ended": 3, "rejected": 0} == snapshot(lab.state)["remembered"]
    expired = [id_ for id_, state in lab.rm.told("state") if state == "Expired"]
    assert ["app-0", "app-1", "app-2"] == expired
    assert 3 == sum(name.startswith("history/") for _, name in lab.simulator.timers)
    assert lab.leftovers() == {}


def test_rejections_leave_room_for_what_has_run() -> None:
    lab = Lab(settings=Settings(history_max=3, rejected_max=2))
    lab.submit(APP)
    lab.submit("other")
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.release("a")
    lab.advance(30)
    for _ in range(9):
        lab.submit("other")
        lab.settle()
    assert [APP, "other", "other"] == _remembered(lab)
    assert {"ended": 1, "rejected": 2} == snapshot(lab.state)["remembered"]


def _remembered(lab: Lab) -> list[str]:
    return [ended.spec.application_id for ended in lab.state.finished.values()]


def test_only_so_many_rejections_are_remembered() -> None:
    """Whoever sends an application again and again costs no more memory in the end."""
    lab = Lab(settings=Settings(rejected_max=3))
    lab.submit(APP)
    for _ in range(20):
        lab.submit(APP)
        lab.settle()
    expired = len([state for _, state in lab.rm.told("state") if state == "Expired"])
    assert (3, 3, 0) == (len(lab.state.finished), len(lab.state.rejected), expired)
    assert 3 == sum(name.startswith("history/") for _, name in lab.simulator.timers)
    assert 21 == len(lab.rm.told("application"))
    assert lab.leftovers() == {}
    assert {} == lab.state.rejected
