"""Defects of asks and of the life of applications: what ends too early, too late or twice."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import applications, asks, lifecycle, releases
from yunikorn_actors.planning import apply_fact as follow
from yunikorn_actors.state import facts as f
from yunikorn_actors.state import ledger as books
from yunikorn_actors.state.facts import allocated as allocation_facts

APPLICATIONS = (
    Mutant(
        id="M01",
        source="R-041 R-042 YUNIKORN-1993 YUNIKORN-3036",
        wrong="Completed does not wait for a release on its way: the queue is let go before it.",
        where=lifecycle.work_gone,
        old="elif app.has_placeholders:",
        new="elif any(it.may_be_released for it in app.allocations.values()):",
    ),
    Mutant(
        id="M04",
        source="R-030 YUNIKORN-1337",
        wrong="The end of the last placeholder does not complete the application.",
        where=releases._release_one,
        old="if app is not None and allocation is not None:\n",
        new="if app is not None and allocation is not None and not allocation.spec.placeholder:\n",
    ),
    Mutant(
        id="M14",
        source="R-129 YUNIKORN-677",
        wrong="A withdrawal that comes after the ask was allocated is ignored.",
        where=releases._release_ask,
        old="elif allocated_too and",
        new="elif False and",
    ),
    Mutant(
        id="M16",
        source="YUNIKORN-3380",
        wrong="Work that ends while asks of its application wait stays charged to its user.",
        where=allocation_facts._discharge,
        old="    strike(books_of(app, allocation), resource)\n",
        new=(
            "    books = books_of(app, allocation)\n"
            "    paid = 1 + len(app.queue.lineage) if any(app.pending.values()) else len(books)\n"
            "    strike(books[:paid], resource)\n"
        ),
    ),
    Mutant(
        id="M17",
        source="R-038 YUNIKORN-3084",
        wrong="A withdrawn ask stays in the order if another one of its application has its age.",
        where=follow._on_ask_removed,
        old="if view is not None:",
        new=(
            "if view is not None and not any(it is not view and it.ask.created_ns == "
            "view.ask.created_ns for it in app.asks.values()):"
        ),
    ),
    Mutant(
        id="M41",
        source="R-047 YUNIKORN-1453",
        wrong="An ask that comes while its application completes does not wake it.",
        where=asks._add_ask,
        old="if app.state in _WAKES:",
        new="if app.state is ApplicationState.NEW:",
    ),
    Mutant(
        id="M42",
        source="H-21",
        wrong="Asks are taken for an application that fails.",
        where=asks._refusal,
        old="if app.state in TAKES_NO_ASKS and not _is_of_running(app, item):",
        new="if False:",
        held_by="tests/races/test_r022_h29_placeholder_timeouts.py::test_h21_an_ask_for_an_application_that_fails",
        unseen="An ask has to come while its application fails; few runs bring that about.",
    ),
    Mutant(
        id="M43",
        source="R-052 YUNIKORN-1919",
        wrong="An application that fails is still counted as running.",
        where=f.ApplicationStateChanged.change,
        old="if counted is not counts:",
        new="if counted is not counts and self.event.name != 'FAIL':",
    ),
    Mutant(
        id="M44",
        source="H-13",
        wrong="Only the leaf forgets that an Accepted application held something.",
        where=books.count_holding,
        old="for level in app.queue.lineage:",
        new=(
            "for level in app.queue.lineage[: 1 if by_holding and not holds and serial in "
            "app.queue.allocating else None]:"
        ),
    ),
    Mutant(
        id="M45",
        kind=Kind.TIMERS,
        source="R-027 YUNIKORN-573",
        wrong="Placeholder timers outlive the last placeholder.",
        where=lifecycle.stop_placeholder_timer,
        old="        _cancel_timer(unit, app, PLACEHOLDER_TIMER)\n",
        new="",
    ),
    Mutant(
        id="M46",
        source="R-043 YUNIKORN-567",
        wrong="An application that is removed leaves its placeholders behind.",
        where=applications.remove_application,
        old="for allocation in (yield from drawn_off(app.allocations.values())):",
        new="for allocation in [it for it in app.allocations.values() if not it.spec.placeholder]:",
    ),
    Mutant(
        id="M47",
        source="H-05",
        wrong="An application that is removed leaves its swaps in flight.",
        where=applications.remove_application,
        old="if ask.is_open:",
        new="if ask.remaining:",
    ),
    Mutant(
        id="M48",
        source="R-126 YUNIKORN-2329",
        wrong="An ask that is sent again counts twice as waiting.",
        where=f.AskReplaced.change,
        old="    _wait(app, ask.spec, -ask.remaining)\n",
        new="",
    ),
    Mutant(
        id="M49",
        source="R-001 YUNIKORN-528",
        wrong="A release of something that is gone already fails.",
        where=releases._release_one,
        old="app.allocations.get(item.uuid)",
        new="app.allocations[item.uuid]",
    ),
    Mutant(
        id="M50",
        kind=Kind.NOTIFIED_WRONGLY,
        source="R-009 R-010 YUNIKORN-1077 YUNIKORN-2025",
        wrong="A confirmation is echoed as if the resource manager had released the allocation.",
        where=releases._end,
        old="    if type_ in BY_RM:\n",
        new="    if not allocation.spec.placeholder:\n",
    ),
    Mutant(
        id="M51",
        source="R-029 YUNIKORN-1205",
        wrong="A gang that stands completes when a waiting placeholder is withdrawn.",
        where=lifecycle.work_gone,
        old="(work_ended or not app.allocations)",
        new="True",
    ),
)
