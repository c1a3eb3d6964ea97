"""Draws the order of the steps of a `together`.

Steps about the same application, allocation key or node keep their order, because one resource
manager would not let them overtake each other. Every other order is possible under some seed; seed
0 is the order as written.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from yunikorn_actors.scenario import step_structs as w

Subject = tuple[str, str]


def ordered(
    steps: Sequence[w.WrittenStep], draw: Callable[[], float] | None
) -> tuple[w.WrittenStep, ...]:
    """Repeatedly take one of the steps that share no subject with a step before them."""
    if draw is None:
        return tuple(steps)
    waiting = [(step, frozenset(subjects_of(step.step))) for step in steps]
    taken: list[w.WrittenStep] = []
    while waiting:
        free = [
            index
            for index, (_, subjects) in enumerate(waiting)
            if all(subjects.isdisjoint(earlier) for _, earlier in waiting[:index])
        ]
        step, _ = waiting.pop(free[int(draw() * len(free))])
        taken.append(step)
    return tuple(taken)


def subjects_of(step: w.Step) -> tuple[Subject, ...]:
    """Return the application, keys and nodes of a step; a step without any moves freely."""
    subjects = _SUBJECTS.get(type(step))
    return () if subjects is None else subjects(step)


def _of(kind: str, *names: str) -> tuple[Subject, ...]:
    return tuple((kind, name) for name in names if name)


def _of_created_nodes(step: w.CreateNode) -> tuple[Subject, ...]:
    running = tuple(
        subject
        for item in step.allocations
        for subject in (*_of("app", item.app), *_of("key", item.key))
    )
    return (*_of("node", *step.names()), *running)


def _of_node(step: w.NamedStep) -> tuple[Subject, ...]:
    return _of("node", step.id)


def _of_application(step: w.NamedStep) -> tuple[Subject, ...]:
    return _of("app", step.id)


def _of_key(step: w.ReleaseAsk | w.Release | w.Confirm) -> tuple[Subject, ...]:
    return (*_of("app", step.app), *_of("key", step.key))


_SUBJECTS: Final[dict[type[w.Step], Callable[[Any], tuple[Subject, ...]]]] = {
    w.CreateNode: _of_created_nodes,
    w.UpdateNode: _of_node,
    w.DrainNode: _of_node,
    w.UndrainNode: _of_node,
    w.RemoveNode: _of_node,
    w.AddApp: _of_application,
    w.RemoveApp: _of_application,
    w.AddAsk: lambda step: (*_of("app", step.app), *_of("key", *step.all_keys())),
    w.Bind: lambda step: (*_of_key(step), *_of("node", step.node)),
    w.ReleaseAsk: _of_key,
    w.Release: _of_key,
    w.Confirm: _of_key,
}
