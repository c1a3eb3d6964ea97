"""Performs steps on the core and the resource managers.

A step returns the differences between expected and actual values. A refusal of the core is such a
difference too, unless the step expects it. All other exceptions go to the runner.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.errors import ConfigError, InvalidRequest, Refused, UnknownResourceManager
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.actual_values import Seen, Views
from yunikorn_actors.scenario.document import Scenario
from yunikorn_actors.scenario.drivers import Played
from yunikorn_actors.scenario.expectations import EXPECTATION
from yunikorn_actors.scenario.expected_values import Difference
from yunikorn_actors.scenario.resource_manager import (
    ChoosyResourceManager,
    DemandingResourceManager,
    SimulatedResourceManager,
)
from yunikorn_actors.scenario.steps import request_of

# Draws the order of the steps of a `together`.
#
# Steps about the same application, allocation key or node keep their order, because one resource
# manager would not let them overtake each other. Every other order is possible under some seed;
# seed 0 is the order as written.

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


DEFAULT_RM: Final = "rm-1"
REFUSALS: Final = (ConfigError, InvalidRequest, Refused, UnknownResourceManager, si.SiDecodeError)
"""Exceptions that refuse a call; the core goes on as before."""

Differences = Iterable[Difference]


class Stage:
    def __init__(
        self, scenario: Scenario, driver: Played, draw: Callable[[], float] | None
    ) -> None:
        self._scenario = scenario
        self._driver = driver
        self._core = driver.core
        self._draw = draw
        self._managers: dict[str, SimulatedResourceManager] = {}

    def perform(self, written: w.WrittenStep) -> tuple[Difference, ...]:
        """Carry out one step and let the system settle."""
        differences = self.act(written)
        if not isinstance(written.step, w.Expect):
            self._driver.settle()
        return differences

    def act(self, written: w.WrittenStep) -> tuple[Difference, ...]:
        """Carry out one step; what it leads to is still to be handled."""
        return tuple(self._perform(written))

    def managers(self) -> tuple[SimulatedResourceManager, ...]:
        """Return the resource managers, each in its last registration."""
        return tuple(self._managers.values())

    def manager(self, rm_id: str) -> si.ResourceManagerCallback | None:
        """Return the resource manager that registered last under this id."""
        return self._managers.get(rm_id)

    def _perform(self, written: w.WrittenStep) -> Differences:
        name, step = written.name, self._named(written.step)
        request = request_of(step, self._rm_id(step))
        if request is not None:
            return _attempt(name, None, lambda: self._send(request))
        return _PERFORM[type(step)](self, name, step)

    def _named(self, step: w.Step) -> w.Step:
        """Add the UUID of a running allocation to its report: else it would be another repeat."""
        if not isinstance(step, w.Bind) or step.uuid:
            return step
        manager = self._managers.get(self._rm_id(step))
        return step if manager is None else replace(step, uuid=manager.uuid_of(step.key))

    # -- steps

    def _on_register(self, name: str, step: w.Register) -> Differences:
        """Register in a policy group of its own, so that managers may have different queues."""
        rm_id = step.rm or DEFAULT_RM
        request = si.RegisterResourceManagerRequest(
            rm_id=rm_id,
            policy_group=rm_id,
            config=step.config or self._scenario.queues,
            extra_config=step.extra,
        )
        return _attempt(name, step.expect_error, lambda: self._send(request))

    def _on_config(self, name: str, step: w.Config) -> Differences:
        rm_id = self._rm_id(step)
        request = si.UpdateConfigurationRequest(
            rm_id=rm_id, policy_group=rm_id, config=step.queues, extra_config=step.extra
        )
        return _attempt(name, step.expect_error, lambda: self._send(request))

    def _on_raw(self, name: str, step: w.Raw) -> Differences:
        kind = w.RAW_CALLS[step.call]
        return _attempt(
            name, step.expect_error, lambda: self._send(si.from_json(kind, step.request))
        )

    def _on_confirm(self, name: str, step: w.Confirm) -> Differences:
        return _attempt(
            name, None,
            lambda: self._manager(step).confirm(step.app, step.key, step.type, step.partition),
        )  # fmt: skip

    def _on_confirm_all(self, name: str, step: w.ConfirmAll) -> Differences:
        return _attempt(name, None, lambda: self._manager(step).confirm_all())

    def _on_lose_rm(self, name: str, step: w.LoseRm) -> Differences:
        return _attempt(name, None, lambda: self._core.resource_manager_lost(step.id))

    def _on_unregister(self, name: str, step: w.Unregister) -> Differences:
        return _attempt(name, None, lambda: self._core.unregister_resource_manager(step.id))

    def _on_predicate(self, name: str, step: w.Predicate) -> Differences:
        return _attempt(name, None, lambda: self._choosy(step).deny(step.deny, step.victims))

    def _on_advance(self, _: str, step: w.Advance) -> Differences:
        self._driver.advance(step.duration_ns)
        return ()

    def _on_together(self, _: str, step: w.Together) -> Differences:
        return [
            difference
            for written in ordered(step.steps, self._draw)
            for difference in self._perform(written)
        ]

    def _on_expect(self, _: str, step: w.Expect) -> Differences:
        return EXPECTATION.differences(step.expected, self.views(self._core))

    def views(self, seen: Seen) -> Views:
        """Return what there is to see, of the resource manager that registered first."""
        first = next(iter(self._managers.values()), None)
        return Views(seen, first or self._new_manager(DEFAULT_RM))

    # -- parts of steps

    def _rm_id(self, step: w.Step) -> str:
        """Return the resource manager that the step names, else the first one registered."""
        named = step.rm if isinstance(step, w.ManagerStep) else ""
        return named or next(iter(self._managers), DEFAULT_RM)

    def _manager(self, step: w.ManagerStep) -> SimulatedResourceManager:
        rm_id = self._rm_id(step)
        if rm_id not in self._managers:
            raise UnknownResourceManager(f"{rm_id!r} is not registered: register it first")
        return self._managers[rm_id]

    def _choosy(self, step: w.Predicate) -> ChoosyResourceManager:
        manager = self._manager(step)
        assert isinstance(manager, ChoosyResourceManager), "read_scenario saw the step"
        return manager

    def _new_manager(self, rm_id: str) -> SimulatedResourceManager:
        """Make a resource manager, with predicates if the scenario has a `predicate` step."""
        predicates = tuple(self._scenario.predicates())
        kind = ChoosyResourceManager if predicates else SimulatedResourceManager
        if any(step.victims is not None for step in predicates):
            kind = DemandingResourceManager
        return kind(self._core, rm_id, self._scenario.confirmation)

    def _send(self, request: si.SiMessage) -> None:
        """Let the resource manager note its request, then send it."""
        if isinstance(request, si.RegisterResourceManagerRequest):
            manager, before = self._new_manager(request.rm_id), self._managers.get(request.rm_id)
            self._core.register_resource_manager(request, manager)
            # One that registered while this one waited for its answer came later, and counts.
            if self._managers.get(request.rm_id) is before:
                self._managers[request.rm_id] = manager
        elif isinstance(request, si.UpdateConfigurationRequest):
            self._core.update_configuration(request)
        elif isinstance(request, si.AllocationRequest | si.ApplicationRequest | si.NodeRequest):
            if request.rm_id in self._managers:
                self._managers[request.rm_id].note(request)
            _UPDATES[type(request)](self._core, request)


def _attempt(name: str, wanted: str | None, act: Callable[[], None]) -> Differences:
    """Do what the core may refuse; if `wanted` is given it must refuse, with this in the reason."""
    try:
        act()
    except REFUSALS as error:
        if wanted is None:
            return (Difference(name, "accepted", str(error)),)
        if wanted not in str(error):
            return (Difference(f"{name}.expect_error", wanted, str(error)),)
    else:
        if wanted is not None:
            return (Difference(f"{name}.expect_error", wanted, "accepted"),)
    return ()


_UPDATES: Final[dict[type, Callable[[Gateway, Any], None]]] = {
    si.AllocationRequest: lambda core, request: core.update_allocation(request),
    si.ApplicationRequest: lambda core, request: core.update_application(request),
    si.NodeRequest: lambda core, request: core.update_node(request),
}
_PERFORM: Final[dict[type[w.Step], Callable[[Stage, str, Any], Differences]]] = {
    w.Register: Stage._on_register,
    w.Config: Stage._on_config,
    w.LoseRm: Stage._on_lose_rm,
    w.Unregister: Stage._on_unregister,
    w.Raw: Stage._on_raw,
    w.Confirm: Stage._on_confirm,
    w.ConfirmAll: Stage._on_confirm_all,
    w.Predicate: Stage._on_predicate,
    w.Advance: Stage._on_advance,
    w.Together: Stage._on_together,
    w.Expect: Stage._on_expect,
}
