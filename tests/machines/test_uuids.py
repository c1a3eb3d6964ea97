"""A UUID stands for one allocation; several allocations may share a key."""

from support import APP, Lab, report

from yunikorn_actors import si

CREATE = si.ActionFromRM.CREATE


def test_a_recovered_uuid_is_not_issued_again() -> None:
    """After a restart the counter begins again; a UUID that is alive is passed over."""
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n2=5)
    lab.settle()
    lab.node("n1", CREATE, 5, existing_allocations=(report("old", "", uuid="core-1"),))
    lab.settle()
    lab.ask("new")
    lab.settle()
    assert sorted(a.spec.key for a in lab.state.applications[APP].allocations.values()) == [
        "new",
        "old",
    ]


def test_a_report_of_a_running_repeat_is_not_another_repeat() -> None:
    """Two of three repeats run, the third waits; a report of one that runs changes nothing."""
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n1=1, n2=1)
    lab.ask("k", max_allocations=3)
    lab.settle()
    (uuid, *_) = sorted(lab.rm.running)
    node_id = lab.state.applications[APP].allocations[uuid].node_id
    lab.report(report("k", node_id, uuid=uuid))
    lab.settle()
    assert (lab.running(), lab.waiting()) == (["k", "k"], ["k"])


def test_all_repeats_of_one_key_are_recovered() -> None:
    """Running work that nobody charges would over-commit its node."""
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n2=5)
    lab.settle()
    existing = (report("k", "", uuid="x1"), report("k", "", uuid="x2"))
    lab.node("n1", CREATE, 5, existing_allocations=existing)
    lab.report(report("k", "n2", uuid="x3"))
    lab.settle()
    assert sorted(lab.state.applications[APP].allocations) == ["x1", "x2", "x3"]


def test_a_node_ends_what_its_manager_reports_elsewhere_meanwhile() -> None:
    """The end is on its way when the report is made, so both are right."""
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n2=5)
    lab.ask("k")
    lab.settle()
    (uuid,) = lab.rm.running
    lab.nodes(n1=5)
    lab.settle()
    lab.decommission("n2")
    lab.report(report("k", "n1", uuid=uuid))
    assert [] == lab.rm.told("released")
    lab.settle()
    assert ["k"] == [key for key, _ in lab.rm.told("released")]
    assert "n1" == lab.state.applications[APP].allocations[uuid].node_id
