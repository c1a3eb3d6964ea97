"""What the planner finds of shortages, against what has been told of them."""

from written import APP, LEAF, Written

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.gates import GateKind


def _told(written: Written, old: GateKind, new: GateKind) -> None:
    written.record(
        f.AskShortageChanged(
            application_id=APP,
            key="k",
            queue=LEAF,
            resource={"vcore": 3},
            old_shortage=old,
            shortage=new,
            available={},
            at_ns=written.now_ns,
        )
    )


def _found(written: Written) -> set[GateKind | None]:
    return {found.shortage for found in written.planner.findings.take()}


def test_what_is_left_of_an_ask_is_short_again_when_it_was_told_to_fit() -> None:
    """The refusal of the rest is found before the news that the first repeat fits are told."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 4})
    written.node("n1", vcore=10)
    written.add(APP)
    written.ask("k", vcore=3, repeats=2)
    written.plan()
    assert {GateKind.QUEUE} == _found(written), "vacuous: nothing is short"
    _told(written, GateKind.NONE, GateKind.QUEUE)
    written.plan()
    assert set() == _found(written)
    _told(written, GateKind.QUEUE, GateKind.NONE)
    written.plan()
    assert {GateKind.QUEUE} == _found(written)


def test_what_two_parts_of_a_plan_find_is_told_once() -> None:
    """The lane is refused while it is tried, and the asks in it are looked at in the end."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 4})
    written.node("n1", vcore=10)
    written.add(APP)
    written.ask("j", vcore=3)
    written.ask("k", vcore=3)
    written.ask("l", vcore=3)
    written.plan()
    found = [(it.ask.spec.key, it.state, it.reason) for it in written.planner.findings.take()]
    assert {"k", "l"} == {key for key, _, _ in found}
    assert sorted(set(found)) == sorted(found)
