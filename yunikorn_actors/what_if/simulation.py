"""From a state and changes to an answer."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.answer import Answer, Course, differences_of
from yunikorn_actors.what_if.change_checks import check_seconds, checked, in_order
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request, asks_in
from yunikorn_actors.what_if.core_state import Copy, CoreState, Twin, machines_of
from yunikorn_actors.what_if.run import Fits, Manager, Run

Beside = Callable[[Callable[[], Course]], Course]
"""Has a copy of this process do the work; raises TimeoutError where it did not end in time."""


def simulate(
    state: CoreState,
    *changes: Change | Request | Reconfigure,
    until: float | None = None,
    compare: bool = True,
    fits: Fits | None = None,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    policies: Mapping[str, Policy] | None = None,
    origin: Simulator | None = None,
    digest: bool = True,
    beside: Beside | None = None,
    ready: Callable[[], Copy] | None = None,
) -> Answer:
    """Say what would happen if these changes were made in this state.

    - `until`: seconds from its beginning; without it the run ends when nothing happens any more.
    - `compare`: run it without the changes as well, and say what is different.
    - `fits`: answers predicates, with the key of an ask and a node; without it each is a yes.
    - `groups`, `policies`: what `VirtualCore` takes under these names.
    - `origin`: the simulated core whose state it is; then its machines are copied as they are.
    - `digest`: say the digest of the state at the end, for which all of it is looked at.
    - `beside`: does all runs but the last in another process.
    - `ready`: returns a core in this state, for one run in each process; without it one is made.
    """
    _check_given(until, fits, state)
    ordered, notes = checked(in_order(changes), state, Policies(policies), until_s=until)
    begin = ready or beginning(state, origin, groups, policies)

    def ran(made: list[Change], until_s: float | None) -> Course:
        return course_of(state, begin(), made, until_s, digest=digest, fits=fits)

    changed, compares = partial(ran, ordered, until), compare and bool(ordered)
    if compares and beside is not None and ready is not None:
        # Before there is another process, so that both have it.
        ready()
        course = beside(changed)
    else:
        course = changed()
    without = ran([], course.until_s) if compares else None
    return Answer(
        revisions=state.revisions,
        at_ns=state.at_ns,
        course=course,
        without=without,
        differences=() if without is None else differences_of(course, without),
        assumptions=(*course.failures, *assumptions(state, course.assumed), *notes),
        lacks=state.lacks,
    )


def _check_given(until: object, fits: object, state: CoreState) -> None:
    """Refuse what is no time, and a function that nobody would ask."""
    if until is not None:
        check_seconds("until", until)
    if fits is None:
        return
    if not callable(fits):
        raise InvalidRequest(f"fits: must be a function of a key and a node, not {fits!r:.80}")
    if not any(it.registration.capabilities.has_predicates for it in state.registered.managers):
        raise InvalidRequest(
            "fits: no resource manager of this state answers predicates, so the core asks none: "
            "leave it out, or register one whose callback has `predicates`"
        )


def course_of(
    state: CoreState,
    copy: Copy | Twin,
    changes: list[Change],
    until_s: float | None,
    *,
    digest: bool = False,
    **bounds: Any,  # noqa: ANN401 - of a run
) -> Course:
    """Run a copy to its end, with resource managers that make these changes."""
    asks = asks_in(it.request for it in changes)
    watched = [(partition, it.application_id, it.allocation_key) for partition, it in asks]
    run = Run(
        copy, changes, watched=watched, asked_back=copy.asked_back,
        let_decide=copy.let_decide, **bounds,
    )  # fmt: skip
    for known in state.registered.managers:
        if not state.is_away(known):
            rm = known.registration
            copy.go_on_with(known, Manager(rm.rm_id, rm.capabilities, run))
    copy.settle()
    until_ns = None if until_s is None else state.at_ns + round(until_s * SECOND)
    return run.go(until_ns, digest=digest)


def beginning(
    state: CoreState,
    origin: Simulator | None = None,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    policies: Mapping[str, Policy] | None = None,
) -> Callable[[], Copy | Twin]:
    """Return what makes a simulated core in this state, each time anew."""
    if origin is None:
        return partial(Copy, state, groups=groups, policies=policies)
    return partial(Twin, origin, machines_of(origin))


WORDS: Final = {
    "declared": "1 run time is as declared|{} run times are as declared",
    "together": "{} ends come in one moment with others: the core decides by all of them at once",
    "undeclared": (
        "of 1 allocation no run time is known: it does not end|"
        "of {} allocations no run time is known: they do not end"
    ),
    "overdue": (
        "1 allocation has run longer than declared: it does not end|"
        "{} allocations have run longer than declared: they do not end"
    ),
    "limited": (
        "1 allocation that no run time ends runs to its time limit|"
        "{} allocations that no run time ends run to their time limits"
    ),
    "confirmed": (
        "1 release under way is confirmed at once|{} releases under way are confirmed at once"
    ),
    "predicates": "1 predicate is answered with yes|{} predicates are answered with yes",
    "away": (
        "1 end or release of a manager that is away does not come|"
        "{} ends and releases of managers that are away do not come"
    ),
    "further": (
        "what comes later than {} s from the beginning is not looked at: the core tries again and "
        "again, and for long nothing has come of it"
    ),
    "unexplained": (
        "what waits besides what was asked for is explained until {} s, and at the end: these are "
        "many asks on many nodes"
    ),
    "members": (
        "1 member of a complete gang asks at once, as large as its placeholder|"
        "{} members of complete gangs ask at once, as large as their placeholders"
    ),
}
"""Of one, and of several."""


def counted(words: str, count: int) -> str:
    one, _, several = words.partition("|")
    return (several if several and count != 1 else one).format(count)


def assumptions(state: CoreState, assumed: Mapping[str, int]) -> Iterator[str]:
    """Say what the answer rests on beside the state."""
    for name, words in WORDS.items():
        if name in assumed:
            yield counted(words, assumed[name])
    for known in state.registered.managers:
        for name in known.epochs:
            if state.is_away(known):
                yield f"the resource manager of {name} stays away"
            elif state.images[name]["behind"]:
                yield f"the resource manager of {name} takes its messages again at once"
    yield "requests arrive in the order that is given, and no others come"
    if not all(map(state.is_away, state.registered.managers)):
        yield "the resource manager confirms what is asked back at once"
