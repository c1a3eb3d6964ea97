"""One run of a user's own code: their resource manager, and a function that drives it.

Each call that the function makes to the core is a step of the case. After it the function goes on
only when the schedule begins the next step: left alone, when all is quiet. Calls that a callback
makes go out at once, as everywhere.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.domain.why import Why
from yunikorn_actors.lab.case import Case, CaseStep
from yunikorn_actors.lab.escapes import inside
from yunikorn_actors.lab.names import subject
from yunikorn_actors.lab.promises import Believed, Holds
from yunikorn_actors.lab.tape import Verb
from yunikorn_actors.lab.world import Endless, Schedule, StageDriver, World
from yunikorn_actors.machines.settings import SECOND
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.scenario import written as w
from yunikorn_actors.scenario.document import Scenario
from yunikorn_actors.scenario.expected import Difference
from yunikorn_actors.scenario.stage import Stage
from yunikorn_actors.sim.simulator import Checker

_T = TypeVar("_T")


class Trial:
    """One run, as the function that drives it sees it."""

    def __init__(self, world: "TrialWorld") -> None:
        self.core = TrialCore(world)
        """The core: give it to your resource manager."""
        self._world = world

    @property
    def now(self) -> float:
        """The time of the run in seconds since 1970; only `advance` lets it pass."""
        return self._world.simulator.now_ns / SECOND

    def advance(self, seconds: float) -> None:
        """Let time pass, from timer to timer."""
        if not 0 <= seconds < inf:
            raise ValueError(f"time does not pass by {seconds} s: give a number from 0 on")
        step = w.Advance(duration_ns=round(seconds * SECOND))
        self._world.make(f"let {seconds:g} s pass", step, None)

    def compare(self, believed: Believed, rm_id: str = "") -> None:
        """At rest, compare what a resource manager believes to run with what the core knows.

        `believed` returns the UUID of each running allocation with its node. With one resource
        manager it needs no id.
        """
        self._world.promises.believed.append((rm_id, believed))

    def always(self, name: str, holds: Holds) -> None:
        """Promise something that holds after every message; it may look at your own code only."""
        self._world.promises.always[name] = holds

    def sometimes(self, name: str, holds: Holds) -> None:
        """Promise something that holds in at least one run, after some message."""
        self._world.promises.sometimes[name] = holds

    def eventually(self, name: str, holds: Holds) -> None:
        """Promise something that holds at the end of each run, when all is quiet."""
        self._world.promises.eventually[name] = holds


class TrialCore:
    """The scheduler interface, and questions; as `SchedulerCore` has them."""

    def __init__(self, world: "TrialWorld") -> None:
        self._world = world
        self._core = world.simulator

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        def register() -> si.RegisterResourceManagerResponse:
            response = self._core.register_resource_manager(request, callback)
            self._world.callbacks[request.rm_id] = callback
            return response

        step = w.Register(rm=request.rm_id, config=request.config)
        made = self._world.make(f"register {request.rm_id}", step, register)
        return made or si.RegisterResourceManagerResponse()

    def update_allocation(self, request: si.AllocationRequest) -> None:
        about = subject(rm.AllocationsRequested(request=request))
        self._world.make(
            about or "ask nothing",
            w.Raw(call="update_allocation", request=b""),
            lambda: self._core.update_allocation(request),
        )

    def update_application(self, request: si.ApplicationRequest) -> None:
        about = subject(rm.ApplicationsRequested(request=request))
        self._world.make(
            *_application(request, about),
            lambda: self._core.update_application(request),
        )  # fmt: skip

    def update_node(self, request: si.NodeRequest) -> None:
        about = subject(rm.NodesRequested(request=request))
        self._world.make(*_node(request, about), lambda: self._core.update_node(request))

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        self._world.make(
            "change the queues",
            w.Config(rm=request.rm_id, queues=request.config),
            lambda: self._core.update_configuration(request),
        )

    def resource_manager_lost(self, rm_id: str) -> None:
        self._world.make(
            f"lose {rm_id}", w.LoseRm(id=rm_id), lambda: self._core.resource_manager_lost(rm_id)
        )

    def unregister_resource_manager(self, rm_id: str) -> None:
        self._world.make(
            f"unregister {rm_id}",
            w.Unregister(id=rm_id),
            lambda: self._core.unregister_resource_manager(rm_id),
        )

    def state_dump(self) -> dict[str, Any]:
        return self._core.state_dump()

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        return self._core.explain(application_id, key, partition=partition)


def _node(request: si.NodeRequest, about: str) -> tuple[str, w.Step]:
    """Write down a new node as a step of a scenario, so that faults know what may happen to it."""
    for info in request.nodes:
        if info.action is si.ActionFromRM.CREATE and info.schedulable_resource is not None:
            return "create node", w.CreateNode(
                rm=request.rm_id,
                partition=info.attributes.get(si.constants.NODE_PARTITION, ""),
                id=info.node_id,
                ids=tuple(node.node_id for node in request.nodes),
                capacity=info.schedulable_resource.amounts(),
                attributes=info.attributes,
            )
    return f"node: {about}", w.Raw(call="update_node", request=b"")


def _application(request: si.ApplicationRequest, about: str) -> tuple[str, w.Step]:
    for new in request.new:
        return "add application", w.AddApp(
            rm=request.rm_id, id=new.application_id, partition=new.partition_name
        )
    return f"application: {about}", w.Raw(call="update_application", request=b"")


class _Begin(w.Step, frozen=True):
    """A step of which it is not known yet what it does."""


class TrialWorld(World):
    """A world whose case is a function: it stops before each of its calls until that may begin."""

    def __init__(
        self,
        case: Case,
        schedule: Schedule,
        steps: tuple[CaseStep, ...],
        acts: Mapping[Verb, Callable[[World, str], None]],
        checkers: tuple[Checker, ...] = (),
    ) -> None:
        super().__init__(case, schedule, (), acts, checkers)
        self.made: list[CaseStep] = []
        self.callbacks: dict[str, si.ResourceManagerCallback] = {}
        self.stage: _TrialStage = _TrialStage(case.scenario, self)
        kept = {step.number for step in steps}
        self._left_out = {step.number for step in case.steps if step.number not in kept}

    def run(self) -> None:
        workload = self.case.workload
        assert workload is not None
        with inside(watches_c=not self.case.steps) as guard:
            try:
                self._reach()
                workload(Trial(self))
                super().run()
            finally:
                first = self.simulator.failure or guard.first
                if first is not None:
                    raise first

    def _reach(self) -> None:
        """Wait until the next step may begin; only the function knows what it will be."""
        number = len(self.made) + 1
        written = w.WrittenStep(number=number, line=0, name="return", step=_Begin())
        self.made.append(CaseStep(str(number), written))
        self._play(self.made[-1])

    def _play(self, step: CaseStep) -> None:
        self.script.append(step)
        for _ in range(self.case.events_max):
            if not self.script:
                return
            self.turn()
        raise Endless(f"{step.name} does not end after {self.case.events_max} events")

    def make(self, about: str, step: w.Step, call: Callable[[], _T] | None) -> _T | None:
        """Make a call as a step of the case; one from inside of the core is made at once."""
        if self.is_inside and call is not None:
            return call()
        begun = self.made[-1]
        self.made[-1] = replace(begun, written=replace(begun.written, name=about, step=step))
        returned = self._make(self.made[-1], call) if begun.number not in self._left_out else None
        self._reach()
        return returned

    def _make(self, step: CaseStep, call: Callable[[], _T] | None) -> _T | None:
        if call is None:
            self._play(step)
            return None
        returned: list[_T] = []
        self.stage.calls[step.written.number] = lambda: returned.append(call())
        self.perform(step, step.name)
        return returned[0]

    @property
    def is_inside(self) -> bool:
        """Whether a call comes from a callback, or from a step that is being made."""
        return self._blocked > 0 or self.simulator.is_handling

    def done(self) -> tuple[CaseStep, ...]:
        return tuple(step for step in self.made[:-1] if step.number not in self._left_out)

    def _drain(self) -> None:
        """Leave everything as it is: a resource manager may not like its work to be removed."""


class _TrialStage(Stage):
    """Makes the calls of a workload; what a tape adds is performed as steps of scenarios are."""

    def __init__(self, scenario: Scenario, world: TrialWorld) -> None:
        super().__init__(scenario, StageDriver(world.simulator), None)
        self.calls: dict[int, Callable[[], None]] = {}
        self._world = world

    def act(self, written: w.WrittenStep) -> tuple[Difference, ...]:
        call = self.calls.get(written.number)
        if call is not None:
            call()
            return ()
        return () if isinstance(written.step, _Begin) else super().act(written)

    def manager(self, rm_id: str) -> si.ResourceManagerCallback | None:
        return self._world.callbacks.get(rm_id)
