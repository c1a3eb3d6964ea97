"""H-26: applications that are rejected while others of the same id live and end.

Each is remembered by itself until its time is up, and none disturbs the living one.
"""

from support import APP, labs

SEEDS = 30


def test_each_rejection_is_remembered_and_forgotten() -> None:
    met = 0
    for lab in labs(SEEDS):
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
