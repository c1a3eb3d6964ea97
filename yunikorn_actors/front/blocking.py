"""The front door for programs on threads."""

from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import overrides
from yunikorn_actors.errors import CoreStopped, InvalidRequest, SchedulerClosed
from yunikorn_actors.front import arguments
from yunikorn_actors.front.application import (
    ASYNC_FITS,
    Application,
    Made,
    Submission,
    add_application,
)
from yunikorn_actors.front.arguments import (
    Options,
    Queues,
    WrittenNode,
    read_queues,
    simulating,
)
from yunikorn_actors.front.asks import AskStatus
from yunikorn_actors.front.base_scheduler import BaseScheduler
from yunikorn_actors.front.executor import LeasedCalls, LeasedExecutor, executor_name, executor_size
from yunikorn_actors.front.futures import FuturePromise
from yunikorn_actors.front.lease import Lease
from yunikorn_actors.front.operations import Operations
from yunikorn_actors.front.records import ApplicationRecord, Fits
from yunikorn_actors.front.session import undone
from yunikorn_actors.front.subscriptions import Event, Events, Kind
from yunikorn_actors.front.workers import DaskClient, dask_workers, workers_of
from yunikorn_actors.front.workers import Kind as WorkerKind
from yunikorn_actors.planning.reasons import WaitingSum
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.runtime.core_api import Core
from yunikorn_actors.runtime.core_arguments import read_timeout
from yunikorn_actors.runtime.scheduler_core import STOP_TIMEOUT_S, SchedulerCore
from yunikorn_actors.what_if.answer import Answer
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request


class Scheduler(BaseScheduler[Lease, Application, Application, list[Lease]]):
    """A scheduler inside this process: nodes and applications go in, leases come out.

    ```python
    with Scheduler(queues="queues.yaml") as s:
        s.add_node("node-1", vcore=16, memory="64Gi")
        app = s.application("etl-1", queue="root.batch", user="ann")
        with app.ask("task-1", vcore="500m", memory="2Gi").result(timeout=10) as lease:
            print(f"run it on {lease.node_id}")
    ```

    Every call may be made from any thread. Those that wait for the core (`application`, `add_node`,
    `explain`, `waiting`, `configure`, and `result` of a future that is not done) raise `WouldBlock`
    inside `fits` and inside a callback.
    """

    def __init__(
        self,
        queues: Queues | None = None,
        *,
        grace: float = arguments.GRACE_S,
        callback: si.ResourceManagerCallback | None = None,
        core: Core | None = None,
        policies: Mapping[str, Policy] | None = None,
        rm_id: str = "rm-1",
        partition: str = "",
    ) -> None:
        """Make a scheduler; it starts with its `with` block, or with `start`.

        - `queues`: the configuration: a file, its text, or the same as a mapping. Without it there
          is one queue, `root.default`, open to everybody. An empty one has no queue of its own: as
          in YuniKorn, there is one for each `namespace` in the tags of applications.
        - `grace`: for so many seconds a lease that is wanted back may still be held.
        - `callback`: answers predicates, hears events and so on, as `SchedulerCore` has it; what it
          hears the scheduler has heard before.
        - `core`: a core with settings, a trace or hooks of its own, not started yet, and for this
          scheduler alone. `fits` has the time that its settings give (`predicate_timeout_ns`).
        - `policies`: your own, by the names that `queues` may use; a core of yours has its own.
        - `rm_id`, `partition`: by which names the core knows this scheduler and its nodes.
        """
        if callback is not None and not isinstance(callback, si.ResourceManagerCallback):
            raise InvalidRequest(
                f"callback: must be a ResourceManagerCallback, not {type(callback).__name__}; "
                "subclass it and override what you care about"
            )
        self._policies = arguments.policies_of(core, policies)
        self._options = Options.read(queues, rm_id, partition, grace, self._policies)
        given: object = core
        if given is not None and not isinstance(given, Core):
            wrong = f"must be a SchedulerCore or a RemoteCore, not {type(given).__name__}"
            raise InvalidRequest(f"core: {wrong}")
        self.core: Final[Core] = core or SchedulerCore(
            settings=arguments.patient_settings(), policies=policies
        )
        """The core below, for whatever the front does not offer."""
        self._operations: Operations[Lease] = Operations(self.core, self._options, Lease)
        self._operations.callback.program = _ThreadCalls(self._operations.fits_of, callback)
        self._futures: Final = (self._operations.threads, self._operations.session)
        self.core.when_over.append(self._operations.core_is_over)

    # -- life

    def start(self) -> Self:
        """Start the core and register with it."""
        try:
            self.core.start()
        except CoreStopped:
            self._operations.refused_by_core()
            raise
        try:
            self._operations.open()
            self.core.register_resource_manager(
                self._options.registration, self._operations.callback
            )
        except BaseException:
            # Whatever went wrong, nothing of it stays behind.
            self.close()
            raise
        return self

    def close(self, timeout: float = STOP_TIMEOUT_S) -> None:
        """End everything: futures raise `SchedulerClosed`, leases are lost, the core is stopped.

        Call it from anywhere, as often as you like.
        """
        timeout = read_timeout("close", timeout)
        # First the records, so that nothing waits for a core that stops.
        self._operations.end(SchedulerClosed("the scheduler was closed"))
        if self._operations.owns_core:
            self.core.stop(timeout)
        self._operations.join(timeout)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        # Of an error in the block the program hears anyway.
        if error is None:
            self.core.check_sound()

    # -- nodes

    def _add_node(self, written: WrittenNode) -> list[Lease]:
        session = self._operations.session
        session.check_may_wait("add_node")
        accepted: FuturePromise[list[Lease]] = FuturePromise(*self._futures)
        self._operations.add_node(*arguments.node(self._options, written), accepted)
        # If the program gives up the wait, the node is taken back.
        with undone(self._operations.node(written.node_id).remove):
            return session.wait(accepted.future, "add_node")

    def drain(self, node_id: str) -> None:
        """Place nothing new on a node; what runs there goes on."""
        self._operations.node(node_id).drain()

    def resume(self, node_id: str) -> None:
        """Place work on a drained node again."""
        self._operations.node(node_id).resume()

    def remove_node(self, node_id: str) -> None:
        """Take a node away; the leases there are lost."""
        self._operations.node(node_id).remove()

    # -- applications

    def _submit(self, submission: Submission) -> Application:
        session = self._operations.session
        session.check_may_wait("application")
        accepted: FuturePromise[ApplicationRecord[Lease]] = FuturePromise(*self._futures)
        app = add_application(self._operations, submission, accepted)
        with undone(partial(self._operations.close_application, app)):
            session.wait(accepted.future, "application")
        # Only now: a refused application has no handle, and is not listed.
        made = app.handle = Application(self._operations, app, submission.user, self._make)
        return made

    def executor(
        self,
        kind: WorkerKind = "threads",
        *,
        queue: str = "root.default",
        user: str,
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
        name: str = "",
        workers: DaskClient | None = None,
    ) -> LeasedExecutor:
        """Make an executor, as those of `concurrent.futures`: each function runs under a lease.

        ```python
        with s.executor(user="ann", vcore=1) as pool:
            print(pool.submit(pow, 2, 10).result())
        ```

        - `kind`: `"threads"`, or `"processes"` of this computer. A process can be ended when its
          lease is wanted back, a thread cannot.
        - `queue`, `user`: of its application, whose id is `name`.
        - `vcore`, `memory`, `resources`: what one function needs; one vcore if nothing is given.
        - `workers`: a client of Dask, where the functions run then. Each worker of the cluster is
          added as a node, by its address, if it is none yet.
        """
        size = executor_size(vcore, memory, resources)
        places = workers_of(kind, workers)
        fits: Fits | None = None
        if workers is not None:
            cluster = dask_workers(workers)
            for address in cluster.keys() - {*self.nodes}:
                self.add_node(address, resources=cluster[address])
            fits = cluster.__contains__
        app = self.application(executor_name(name), queue=queue, user=user, stays=True)
        return LeasedExecutor(app, LeasedCalls(self._operations, app, places, size, fits))

    def _make(self) -> Made[Future[Lease], Lease]:
        promise: FuturePromise[Lease] = FuturePromise(*self._futures)
        return Made(promise.future, promise, promise.future.attach)

    # -- what there is to see

    def events(self, *kinds: Kind) -> Events[Event]:
        """Hear what happens from now on: all of it, or the kinds that are named.

        Iterate over it in a `with` block. `event.kind` tells the classes apart; type checkers know
        the fields of each.
        """
        reader: Events[Event] = Events(
            kinds, self._operations.leave, self._operations.session.check_may_wait
        )
        self._operations.subscribe(reader)
        return reader

    def explain(self, application_id: str, key: str) -> AskStatus:
        """Say why an ask waits, where it runs, or what became of it; waits for the core."""
        return self._operations.explanations.explain(application_id, key)

    def waiting(self) -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size, the largest sums first.

        The time it takes hardly grows with the number of asks. Those that wait for `CLUSTER_FULL`
        or `NO_NODE` would run on more nodes.
        """
        self._operations.session.check()
        return self.core.waiting(partition=self._options.full_partition)

    def simulate(
        self,
        *changes: Change | Request | Reconfigure,
        until: float | None = None,
        compare: bool = True,
    ) -> Answer:
        """Say what would happen from here with these changes, as `SchedulerCore.simulate` does."""
        self._operations.session.check()
        return simulating(self.core, SchedulerCore).simulate(*changes, until=until, compare=compare)

    def configure(self, queues: Queues) -> None:
        """Load another configuration; if it is refused nothing has changed."""
        text = read_queues(queues, self._policies)
        self._operations.session.check()
        self.core.update_configuration(
            si.UpdateConfigurationRequest(rm_id=self._options.rm_id, config=text)
        )
        self._operations.configured(text)


class _ThreadCalls:
    """Asks the program on the thread that asks, as the core itself does."""

    def __init__(
        self, fits_of: Callable[[str], Fits | None], callback: si.ResourceManagerCallback | None
    ) -> None:
        self._fits_of = fits_of
        self._callback = callback
        self._methods: dict[str, Callable[..., Any]] = {}
        if callback is not None:
            self._methods = {
                name: getattr(callback, name) for name in CALLED if overrides(callback, name)
            }

    def answers(self, method: str) -> bool:
        return method in self._methods

    def ask(self, method: str, *arguments: Any, otherwise: Any) -> Any:  # noqa: ANN401, ARG002 - as ProgramCalls
        # The condition of the ask counts before the callback of the program.
        if method == "predicates" and (objection := self._objection(*arguments)):
            return objection
        answer = self._methods.get(method)
        # Only methods that the callback overrides are called: the others say what the core does
        # anyway.
        return None if answer is None else answer(*arguments)

    def _objection(self, args: si.PredicatesArgs) -> str | None:
        fits = self._fits_of(args.allocation_key)
        if fits is None:
            return None
        fit = fits(args.node_id)
        if isinstance(fit, Coroutine):
            # It cannot be awaited here, and as a value it would pass for a yes.
            fit.close()
            raise InvalidRequest(ASYNC_FITS)
        return arguments.objection_to(fit)

    def notify(self, method: str, content: object) -> None:
        if method in self._methods:
            self._methods[method](content)

    def end(self) -> None:
        pass


CALLED: Final = tuple(name for name in vars(si.ResourceManagerCallback) if not name.startswith("_"))
