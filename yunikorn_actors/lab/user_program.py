"""One run of a user's own code: their resource manager, and a function that drives it.

Each call that the function makes to the core is a step of the case. After it the function goes on
only when the schedule begins the next step: left alone, when all is quiet. Calls that a callback
makes go out at once, as everywhere.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping
from math import inf
from typing import Any, TypeVar

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.errors import WouldBlock
from yunikorn_actors.lab.case import Case, CaseStep
from yunikorn_actors.lab.harness import Redundant, Schedule, StageDriver, World
from yunikorn_actors.lab.nondeterminism_guard import inside
from yunikorn_actors.lab.oracles.promises import Believed, Holds, fault_of
from yunikorn_actors.lab.tapes.tape import Verb
from yunikorn_actors.lab.tapes.tape_names import RETURN, numbered, request_label, step_label
from yunikorn_actors.lab.watchdog import Stuck, Watchdog
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.planning.reasons import Why
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.document import Scenario
from yunikorn_actors.scenario.expected_values import Difference
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.scenario.step_structs import Advance
from yunikorn_actors.values.durations import SECOND

_T = TypeVar("_T")


class Looping(Exception):
    """A program computes, waits or makes calls for ever."""


class Exits(Exception):
    """A program raises what would end the whole process; that is its cause."""


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
        self._world.advance(Advance(duration_ns=round(seconds * SECOND)))

    def compare(self, believed: Believed, rm_id: str = "") -> None:
        """At rest, compare what a resource manager believes to run with what the core knows.

        `believed` returns the UUID of each running allocation with its node. With one resource
        manager it needs no id.
        """
        _check_function("compare", believed)
        self._world.promises.believed.append((rm_id, believed))

    def always(self, name: str, holds: Holds) -> None:
        """Promise something that holds after every message; it may look at your own code only."""
        _check_promise(self._world.promises.always, name, holds)
        self._world.promises.always[name] = fault_of(holds)

    def sometimes(self, name: str, holds: Holds) -> None:
        """Promise something that holds in at least one run, after some message."""
        _check_promise(self._world.promises.sometimes, name, holds)
        self._world.promises.sometimes[name] = holds

    def eventually(self, name: str, holds: Holds) -> None:
        """Promise something that holds at the end of each run, when all is quiet."""
        _check_promise(self._world.promises.eventually, name, holds)
        self._world.promises.eventually[name] = fault_of(holds)


def _check_promise(known: Container[str], name: str, holds: object) -> None:
    _check_function(f"promise {name!r}", holds)
    if name in known:
        raise ValueError(
            f"two promises are called {name!r}, and the second would take the place of the first: "
            "give each a name of its own"
        )


def _check_function(what: str, given: object) -> None:
    if not callable(given):
        raise TypeError(f"{what}: give a function that is called again and again, not {given!r}")


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
        made = self._world.make(step_label("register", request.rm_id), step, register)
        return made or si.RegisterResourceManagerResponse()

    def update_allocation(self, request: si.AllocationRequest) -> None:
        self._world.make(
            request_label(rm.AllocationsRequested(request=request)),
            w.Raw(call="update_allocation", request=b""),
            lambda: self._core.update_allocation(request),
        )

    def update_application(self, request: si.ApplicationRequest) -> None:
        self._world.make(
            request_label(rm.ApplicationsRequested(request=request)),
            _application(request),
            lambda: self._core.update_application(request),
        )  # fmt: skip

    def update_node(self, request: si.NodeRequest) -> None:
        self._world.make(
            request_label(rm.NodesRequested(request=request)),
            _node(request),
            lambda: self._core.update_node(request),
        )

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        self._world.make(
            step_label("configure", request.rm_id),
            w.Config(rm=request.rm_id, queues=request.config),
            lambda: self._core.update_configuration(request),
        )

    def resource_manager_lost(self, rm_id: str) -> None:
        self._world.make(
            step_label("lose", rm_id),
            w.LoseRm(id=rm_id),
            lambda: self._core.resource_manager_lost(rm_id),
        )

    def unregister_resource_manager(self, rm_id: str) -> None:
        self._world.make(
            step_label("unregister", rm_id),
            w.Unregister(id=rm_id),
            lambda: self._core.unregister_resource_manager(rm_id),
        )

    def state_dump(self) -> dict[str, Any]:
        return self._core.state_dump()

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        return self._core.explain(application_id, key, partition=partition)


def _node(request: si.NodeRequest) -> w.Step:
    """Write down a new node as a step of a scenario, so that faults know what may happen to it."""
    for info in request.nodes:
        if info.action is si.ActionFromRM.CREATE and info.schedulable_resource is not None:
            return w.CreateNode(
                rm=request.rm_id,
                partition=info.attributes.get(si.constants.NODE_PARTITION, ""),
                id=info.node_id,
                ids=tuple(node.node_id for node in request.nodes),
                capacity=info.schedulable_resource.amounts(),
                attributes=info.attributes,
            )
    return w.Raw(call="update_node", request=b"")


def _application(request: si.ApplicationRequest) -> w.Step:
    for new in request.new:
        return w.AddApp(rm=request.rm_id, id=new.application_id, partition=new.partition_name)
    return w.Raw(call="update_application", request=b"")


class _Begin(w.Step, frozen=True):
    """A step of which it is not known yet what it does."""


class TrialWorld(World):
    """A world whose case is a program: it stops before each of its calls until that may begin.

    A call that the tape leaves out takes no time: the program goes on as if it were not written.
    """

    def __init__(
        self,
        case: Case,
        schedule: Schedule,
        left_out: frozenset[str],
        acts: Mapping[Verb, Callable[[World, str], bool]],
        checkers: tuple[Checker, ...] = (),
    ) -> None:
        super().__init__(case, schedule, (), acts, checkers)
        self.made: list[CaseStep] = []
        """The calls of the program in their order, those that are left out as well."""
        self.begun: list[tuple[str, str]] = []
        """The steps that were to begin, each with the one that the program began."""
        self.callbacks: dict[str, si.ResourceManagerCallback] = {}
        self.stage: _TrialStage = _TrialStage(case.scenario, self)
        self._left_out = left_out
        self._counts: Counter[str] = Counter()
        self._wanted = ""
        """The step that is to begin now; the program may begin another one."""

    def run(self) -> None:
        watchdog = Watchdog(lambda: self.turns)
        with watchdog.watching(), inside(watches_c=not self.case.steps) as guard:
            try:
                self._run()
            except Stuck:
                raise Looping(f"{watchdog.place} does not go on, and makes no call") from None
            except BaseException as error:
                if watchdog.is_interrupted or not _is_failure(error):
                    raise
                raise Exits from error
            finally:
                self._note(f"step {RETURN}")
                first = self.simulator.failure or guard.first
                if first is not None:
                    raise first

    def _run(self) -> None:
        workload = self.case.workload
        assert workload is not None
        self._wait()
        workload(Trial(self))
        self._begin(f"step {RETURN}")
        super().run()

    def _wait(self) -> None:
        """Wait until the program may go on; what it does then shows only then."""
        label = str(len(self.made) + 1)
        self._play(CaseStep(label, w.WrittenStep(number=0, line=0, name=label, step=_Begin())))

    def _play(self, step: CaseStep) -> None:
        self.script.append(step)
        while self.script:
            if self.turns >= self.case.events_max:
                last = f": the last step is {self.made[-1].label}" if self.made else ""
                raise Looping(f"the program is not over after {self.turns} events{last}")
            self.turn()

    def do(self, name: str) -> bool:
        """Have the program go on, or its time pass, whatever the name: there is no other step."""
        if not self.script:
            return False
        self._wanted = name
        step = self.script[0]
        if isinstance(step.step, Advance):
            self._note(step.name)
            super().do(step.name)
        else:
            self.script.clear()
        return True

    def _begin(self, name: str) -> None:
        self._note(name)
        self._schedule.happened(name)

    def _note(self, name: str) -> None:
        if self._wanted:
            self.begun.append((self._wanted, name))
            self._wanted = ""

    def make(self, about: str, step: w.Step, call: Callable[[], _T]) -> _T | None:
        """Make a call as a step of the case; one from inside of the core is made at once."""
        if self.is_inside:
            return call()
        made = self._made(about, step)
        if made.label in self._left_out:
            return None
        self._begin(made.name)
        returned: list[_T] = []
        self.stage.calls[made.label] = lambda: returned.append(call())
        self.perform(made, made.name)
        self._wait()
        return returned[0]

    def advance(self, step: Advance) -> None:
        if self.is_inside:
            raise WouldBlock("time passes between the calls of a program, not in a callback")
        seconds = f"{step.duration_ns / SECOND:g}s"
        made = self._made(f"advance {seconds}", step)
        if made.label in self._left_out:
            return
        self._begin(made.name)
        passing = numbered(f"pass {seconds}", self._counts[f"advance {seconds}"])
        self._play(CaseStep(passing, made.written))
        self._wait()

    def _made(self, about: str, step: w.Step) -> CaseStep:
        self._counts[about] += 1
        label = numbered(about, self._counts[about])
        written = w.WrittenStep(number=len(self.made) + 1, line=0, name=label, step=step)
        self.made.append(CaseStep(label, written))
        return self.made[-1]

    def again(self, name: str) -> bool:
        return any(step.name == name for step in self.done()) and super().again(name)

    @property
    def steps(self) -> tuple[CaseStep, ...]:
        """Those of the first run, and those that have come in this one."""
        return tuple({step.label: step for step in (*self.case.steps, *self.made)}.values())

    @property
    def is_inside(self) -> bool:
        """Whether a call comes from a callback, or from a step that is being made."""
        return self._blocked > 0 or self.simulator.is_handling

    def done(self) -> tuple[CaseStep, ...]:
        return tuple(step for step in self.made if step.label not in self._left_out)

    def _drain(self) -> None:
        """Leave everything as it is: a resource manager may not like its work to be removed."""


def _is_failure(error: BaseException) -> bool:
    """Whether it is the fault of a program that it raises this, and nobody's wish to end a test."""
    if any(kind.__name__ == "OutcomeException" for kind in type(error).__mro__):
        # Of pytest, which need not be there.
        return type(error).__name__ == "Failed"
    return not isinstance(error, Exception | Redundant)


class _TrialStage(Stage):
    """Makes the calls of a workload; what a tape adds is performed as steps of scenarios are."""

    def __init__(self, scenario: Scenario, world: TrialWorld) -> None:
        super().__init__(scenario, StageDriver(world.simulator), None)
        self.calls: dict[str, Callable[[], None]] = {}
        self._world = world

    def act(self, written: w.WrittenStep) -> tuple[Difference, ...]:
        call = self.calls.get(written.name)
        if call is not None:
            call()
            return ()
        return super().act(written)

    def manager(self, rm_id: str) -> si.ResourceManagerCallback | None:
        return self._world.callbacks.get(rm_id)
