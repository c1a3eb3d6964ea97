"""The front door for programs on an event loop.

The records are kept as for programs on threads, by the same operations. Only the place differs
where the program hears of things: futures, events and `wanted_back` are set on its loop, where
`fits` is called.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from inspect import isawaitable
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from yunikorn_actors import si
from yunikorn_actors.errors import CoreStopped, InvalidRequest, SchedulerClosed
from yunikorn_actors.front import arguments
from yunikorn_actors.front.aio_executor import AsyncLeasedExecutor
from yunikorn_actors.front.aio_futures import (
    SENT,
    AsyncEvent,
    AsyncEvents,
    AsyncLease,
    CoreLoopFuture,
    LoopFuture,
    LoopPromise,
    running_loop,
)
from yunikorn_actors.front.application import (
    BaseApplication,
    Made,
    Submission,
    add_application,
)
from yunikorn_actors.front.arguments import Options, Queues, WrittenNode, read_queues
from yunikorn_actors.front.asks import AskStatus
from yunikorn_actors.front.base_scheduler import BaseScheduler
from yunikorn_actors.front.executor import LeasedCalls, executor_name, executor_size
from yunikorn_actors.front.operations import Operations
from yunikorn_actors.front.records import ApplicationRecord, Fits
from yunikorn_actors.front.session import undone
from yunikorn_actors.front.subscriptions import Kind
from yunikorn_actors.front.workers import DaskClient, dask_workers, workers_of
from yunikorn_actors.front.workers import Kind as WorkerKind
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.runtime.aio import AsyncCore, AsyncSchedulerCore
from yunikorn_actors.runtime.async_callback import (
    Answerer,
    AnyCallback,
    AsyncResourceManagerCallback,
    check_callback,
    has_own,
)
from yunikorn_actors.runtime.core_arguments import read_timeout
from yunikorn_actors.runtime.scheduler_core import REPLY_TIMEOUT_S, STOP_TIMEOUT_S
from yunikorn_actors.what_if.answer import Answer
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request

T = TypeVar("T")
E = TypeVar("E")


class AsyncApplication(BaseApplication["asyncio.Future[AsyncLease]", AsyncLease]):
    """As `Application`; its futures are those of `asyncio`, to be awaited."""

    async def explain(self, key: str) -> AskStatus:
        """Say why an ask waits, where it runs, or what became of it."""
        self._operations.session.check_may_wait("explain")
        return await asyncio.to_thread(self._operations.explanations.explain, self.id, key)

    async def expected(self, key: str) -> Expected | None:
        """Say when an ask that waits will start, as `Application` does."""
        self._operations.session.check_may_wait("expected")
        return await asyncio.to_thread(self._operations.explanations.expected, self.id, key)

    def close(self) -> Awaitable[None]:  # type: ignore[override]
        """End it, as `Application` does; the call does not wait."""
        super().close()
        return SENT

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncScheduler(
    BaseScheduler[
        AsyncLease,
        AsyncApplication,
        Coroutine[Any, Any, AsyncApplication],
        Coroutine[Any, Any, list[AsyncLease]],
    ]
):
    """As `Scheduler`, for a program on an event loop; make all calls on that loop.

    ```python
    async with AsyncScheduler(queues="queues.yaml") as s:
        await s.add_node("node-1", vcore=16, memory="64Gi")
        app = await s.application("etl-1", queue="root.batch", user="ann")
        async with await app.ask("task-1", vcore="500m", memory="2Gi") as lease:
            print(f"run it on {lease.node_id}")
    ```

    What waits for the core is to be awaited; `ask`, `drain`, `resume`, `remove_node`, `release` and
    `close` of an application return at once, and may be awaited as well. `fits` and the callback
    run on the loop and may be `async`; awaiting `application` or `add_node` in them raises
    `WouldBlock`.
    """

    def __init__(
        self,
        queues: Queues | None = None,
        *,
        grace: float = arguments.GRACE_S,
        callback: AnyCallback | None = None,
        core: AsyncCore[Any] | None = None,
        policies: Mapping[str, Policy] | None = None,
        rm_id: str = "rm-1",
        partition: str = "",
    ) -> None:
        """Make a scheduler, as `Scheduler` is made; the callback answers, and runs on the loop."""
        # Before anything is made: a callback that is none would be noticed at its first call.
        if callback is not None:
            check_callback(callback)
        # The core that runs inside the asynchronous one: policies are asked of that.
        inner = None if core is None else getattr(core, "_core", None)
        self._policies = arguments.policies_of(inner, policies)
        self._options = Options.read(queues, rm_id, partition, grace, self._policies)
        given: object = core
        if given is not None and not isinstance(given, AsyncCore):
            raise InvalidRequest(
                "core: must be an AsyncSchedulerCore or an AsyncRemoteCore, "
                f"not {type(given).__name__}"
            )
        self._callback = callback
        self.core: Final[AsyncCore[Any]] = core or AsyncSchedulerCore(
            settings=arguments.patient_settings(), policies=policies
        )
        """The core below, for whatever the front does not offer."""
        make_lease = partial(AsyncLease, self._on_loop)
        self._operations: Operations[AsyncLease] = Operations(
            self.core._core, self._options, make_lease
        )
        # A core that ends by itself must not leave futures behind that wait for ever.
        self._operations.session.core.when_over.append(self._operations.core_is_over)
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- life

    async def start(self) -> Self:
        """Start the core and register with it; the loop that runs now is the one of all calls."""
        # Known only now: a scheduler may be made before its loop runs.
        self._loop = asyncio.get_running_loop()
        calls = _LoopCalls(self._operations.fits_of, self._callback, self._loop)
        self._operations.callback.program = calls
        self._operations.session.is_inside = lambda: calls.is_answering
        self._operations.session.outbox.loop_thread = threading.get_ident()
        try:
            await self.core.start()
        except CoreStopped:
            self._operations.refused_by_core()
            raise
        try:
            self._operations.open()
            register = self._operations.session.core.register_resource_manager
            # On a thread, as registering waits for the core and the loop is to go on.
            await asyncio.to_thread(register, self._options.registration, self._operations.callback)
        except BaseException:
            # Half started it would keep its threads: everything ends.
            await self.close()
            raise
        return self

    async def close(self, timeout: float = STOP_TIMEOUT_S) -> None:  # noqa: ASYNC109 - the core's
        """End everything: futures raise `SchedulerClosed`, leases are lost, the core is stopped."""
        timeout = read_timeout("close", timeout)
        # First the records, so that nothing waits for a core that is about to stop.
        self._operations.end(SchedulerClosed("the scheduler was closed"))
        if self._operations.owns_core:
            await self.core.stop(timeout)
        await asyncio.to_thread(self._operations.join, timeout)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
        # After an error of the program that error is what it should see.
        if error is None:
            self._operations.session.core.check_sound()

    # -- nodes

    async def _add_node(self, written: WrittenNode) -> list[AsyncLease]:
        self._check_may_wait("add_node")
        accepted: LoopPromise[list[AsyncLease]] = self._promise()
        self._operations.add_node(*arguments.node(self._options, written), accepted)
        # If the program gives up the wait, the node is taken back.
        with undone(self._operations.node(written.node_id).remove):
            return await self._answer(accepted.future, "add_node")

    def drain(self, node_id: str) -> Awaitable[None]:
        """Place nothing new on a node; what runs there goes on."""
        self._operations.node(node_id).drain()
        return SENT

    def resume(self, node_id: str) -> Awaitable[None]:
        """Place work on a drained node again."""
        self._operations.node(node_id).resume()
        return SENT

    def remove_node(self, node_id: str) -> Awaitable[None]:
        """Take a node away; the leases there are lost."""
        self._operations.node(node_id).remove()
        return SENT

    # -- applications

    async def _submit(self, submission: Submission) -> AsyncApplication:
        self._check_may_wait("application")
        accepted: LoopPromise[ApplicationRecord[AsyncLease]] = self._promise()
        app = add_application(self._operations, submission, accepted)
        with undone(partial(self._operations.close_application, app)):
            await self._answer(accepted.future, "application")
        # Only now: an application that was refused has no handle, and is not listed.
        made = app.handle = AsyncApplication(self._operations, app, submission.user, self._make)
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
    ) -> AsyncLeasedExecutor:
        """Make an executor: each function runs under a lease, and the loop goes on meanwhile.

        ```python
        async with s.executor(user="ann", vcore=1) as pool:
            print(await pool.submit(pow, 2, 10))
        ```

        The arguments are those of `Scheduler.executor`.
        """
        size = executor_size(vcore, memory, resources)
        places = workers_of(kind, workers)

        async def start() -> LeasedCalls[AsyncLease]:
            fits: Fits | None = None
            if workers is not None:
                cluster = await asyncio.to_thread(dask_workers, workers)
                for address in cluster.keys() - {*self.nodes}:
                    await self.add_node(address, resources=cluster[address])
                fits = cluster.__contains__
            app = await self.application(executor_name(name), queue=queue, user=user, stays=True)
            return LeasedCalls(self._operations, app, places, size, fits)

        return AsyncLeasedExecutor(start, self._promise)

    def _make(self) -> "Made[asyncio.Future[AsyncLease], AsyncLease]":
        promise: LoopPromise[AsyncLease] = self._promise()
        return Made(promise.future, promise, promise.attach)

    # -- what there is to see

    def events(self, *kinds: Kind) -> AsyncEvents[AsyncEvent]:
        """Hear what happens from now on: all of it, or the kinds that are named."""
        check_may_wait = self._operations.session.check_may_wait
        reader: AsyncEvents[AsyncEvent] = AsyncEvents(
            kinds, self._operations.leave, check_may_wait, self._on_loop
        )
        self._operations.subscribe(reader)
        return reader

    async def explain(self, application_id: str, key: str) -> AskStatus:
        """Say why an ask waits, where it runs, or what became of it."""
        self._check_may_wait("explain")
        return await asyncio.to_thread(self._operations.explanations.explain, application_id, key)

    async def waiting(self) -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size, as `Scheduler` does."""
        self._check_may_wait("waiting")
        return await self.core.waiting(partition=self._options.full_partition)

    async def simulate(
        self,
        *changes: Change | Request | Reconfigure,
        until: float | None = None,
        compare: bool = True,
    ) -> Answer:
        """Say what would happen from here with these changes, as `Scheduler` does."""
        self._check_may_wait("simulate")
        core = arguments.simulating(self.core, AsyncSchedulerCore)
        return await core.simulate(*changes, until=until, compare=compare)

    async def configure(self, queues: Queues) -> None:
        """Load another configuration; if it is refused nothing has changed."""
        text = read_queues(queues, self._policies)
        self._check_may_wait("configure")
        await self.core.update_configuration(
            si.UpdateConfigurationRequest(rm_id=self._options.rm_id, config=text)
        )
        self._operations.configured(text)

    # -- parts

    def _on_loop(self, function: Callable[..., object], *arguments: object) -> None:
        assert self._loop is not None, "the core speaks after the start only"
        # The loop may have been closed already; then nobody is left to notice.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _promise(self, kind: type[CoreLoopFuture[Any]] = LoopFuture) -> "LoopPromise[Any]":
        # A future of another loop would be kept without waking that loop. Before the start there is
        # none; then the session refuses.
        if self._loop not in {None, running_loop()}:
            raise RuntimeError(
                "an AsyncScheduler takes calls on the event loop that started it alone: from "
                "another thread use asyncio.run_coroutine_threadsafe"
            )
        return LoopPromise(self._on_loop, partial(self._check_may_wait, "an ask"), kind)

    def _check_may_wait(self, what: str) -> None:
        self._operations.session.check()
        self._operations.session.check_may_wait(what)

    async def _answer(self, future: "asyncio.Future[T]", what: str) -> T:
        try:
            # Bounded: a core that hangs must not hold the program for ever.
            return await asyncio.wait_for(future, REPLY_TIMEOUT_S)
        except TimeoutError:
            raise self._operations.session.no_reply(what) from None


def _current_task() -> "asyncio.Task[Any] | None":
    """Return the task that runs; None outside of a loop, where nothing answers the core."""
    return asyncio.current_task() if running_loop() is not None else None


class _LoopCalls:
    """Asks the program on its loop; the asking thread waits for the answer, or for the end."""

    def __init__(
        self,
        fits_of: Callable[[str], Fits | None],
        callback: AnyCallback | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._callback = callback
        self._program = _Program(fits_of, callback)
        self._answerer = Answerer(self._program, loop)

    @property
    def is_answering(self) -> bool:
        """Whether the task that runs is one in which the program answers the core."""
        # By task, as one loop has many: only the task that answers may not wait.
        return _current_task() in self._program.answering

    def answers(self, method: str) -> bool:
        return self._callback is not None and has_own(self._callback, method)

    # The thread of the core waits here, so an answer always comes: `otherwise` at the end.
    def ask(self, method: str, *arguments: object, otherwise: Any) -> Any:  # noqa: ANN401 - its own
        return self._answerer.ask(method, *arguments, otherwise=otherwise)

    def notify(self, method: str, content: object) -> None:
        """An asynchronous callback is not notified: iterators are."""

    def end(self) -> None:
        self._answerer.end()


class _Program(AsyncResourceManagerCallback):
    """The conditions of asks and the program's callback, as one that the core may ask."""

    def __init__(self, fits_of: Callable[[str], Fits | None], callback: AnyCallback | None) -> None:
        self._fits_of = fits_of
        self._callback = callback or AsyncResourceManagerCallback()
        self.answering: set[asyncio.Task[Any] | None] = set()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        task = asyncio.current_task()
        self.answering.add(task)
        try:
            yield
        finally:
            self.answering.discard(task)

    async def _ask(self, method: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
        with self._noted():
            answer = method(*arguments)
            return await answer if isawaitable(answer) else answer

    async def predicates(self, args: si.PredicatesArgs) -> str | None:
        fits = self._fits_of(args.allocation_key)
        # The condition of the ask first: it is narrower than a callback for all of them.
        if fits is not None:
            objection = arguments.objection_to(await self._ask(fits, args.node_id))
            if objection is not None:
                return objection
        answer: str | None = await self._ask(self._callback.predicates, args)
        return answer

    async def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        answer: si.PreemptionPredicatesResponse | None = await self._ask(
            self._callback.preemption_predicates, args
        )
        return answer

    async def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        await self._ask(self._callback.update_container_scheduling_state, request)

    async def get_state_dump(self) -> str:
        answer: str = await self._ask(self._callback.get_state_dump)
        return answer
