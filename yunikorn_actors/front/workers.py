"""Workers: where the functions of an executor run, on threads, in processes or on Dask.

Each call is made on a thread of the front that has nothing else to do. It runs the function, or
waits for it.
"""

import multiprocessing
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextvars import ContextVar
from typing import Any, Final, Literal, Protocol, get_args

from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.arguments import shown
from yunikorn_actors.front.function_process import serve
from yunikorn_actors.front.lease import Lease

Kind = Literal["threads", "processes"]
_CURRENT: ContextVar[Lease | None] = ContextVar("lease", default=None)


def current_lease() -> Lease | None:
    """Return the lease of the function that runs on this thread; None outside of an executor.

    A thread cannot be ended. So a function that takes long looks at `wanted_back` now and then.
    """
    return _CURRENT.get()


class Workers(Protocol):
    def run(self, lease: Lease, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - of the function
        """Return or raise what the call does."""
        ...

    def stop(self, lease: Lease) -> None:
        """End the work under a lease if possible, gently while the lease is not lost."""
        ...

    def close(self) -> None:
        """Nothing runs any more."""
        ...


class Threads:
    """The function runs on the thread that waits for it, and cannot be ended."""

    def run(self, lease: Lease, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        token = _CURRENT.set(lease)
        try:
            return call()
        finally:
            _CURRENT.reset(token)

    def stop(self, lease: Lease) -> None:
        pass

    def close(self) -> None:
        pass


class _Process:
    """A process that makes one call after the other."""

    def __init__(self) -> None:
        # Not forked: the threads of the core would be missing there, and its locks held.
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self.process: Final = context.Process(target=serve, args=(there,), daemon=True)
        self.process.start()
        # Closed here: otherwise the end of the process would not be seen at our end.
        there.close()

    def run(self, data: bytes) -> Any:  # noqa: ANN401
        try:
            self._here.send_bytes(data)
            is_result, value = pickle.loads(self._here.recv_bytes())  # noqa: S301 - of our own process
        except (EOFError, OSError):
            # It has gone without an answer: what it was doing is not known.
            self.process.join()
            raise BrokenExecutor(
                f"the process of the function has ended with {self.process.exitcode}"
            ) from None
        if is_result:
            return value
        raise value

    def close(self) -> None:
        self._here.close()
        self.process.join()
        self.process.close()


class Processes:
    """Each call has a process for itself; one that has ended its call is used again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: dict[Lease, _Process] = {}

    def run(self, lease: Lease, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        # First: what cannot be pickled needs no process.
        data = pickle.dumps(call)
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Process()
        with self._lock:
            self._busy[lease] = worker
        try:
            # Asked back before it ran: the process is ended as soon as it runs.
            if lease.state != "held":
                self.stop(lease)
            return worker.run(data)
        finally:
            with self._lock:
                del self._busy[lease]
                # Ended, or ended for its lease: a process in such a state is not used again.
                is_fit = worker.process.is_alive() and lease.state == "held"
                if is_fit:
                    self._idle.append(worker)
            if not is_fit:
                worker.process.kill()
                worker.close()

    def stop(self, lease: Lease) -> None:
        with self._lock:
            worker = self._busy.get(lease)
            if worker is not None:
                # Killed only if the lease is lost: until then the function may end by itself.
                (worker.process.kill if lease.lost else worker.process.terminate)()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()


class DaskClient(Protocol):
    """What is used of a `distributed.Client`."""

    def submit(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Run it on one of the `workers`."""
        ...

    def scheduler_info(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Return all that is known of the cluster."""
        ...


class Dask:
    """The function runs on the Dask worker whose address is the id of the node."""

    def __init__(self, client: DaskClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._busy: dict[Lease, Any] = {}

    def run(self, lease: Lease, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        # Pinned to its worker: the room that it has is there and nowhere else.
        future = self._client.submit(call, workers=[lease.node_id], pure=False)
        with self._lock:
            self._busy[lease] = future
        try:
            if lease.state != "held":
                self.stop(lease)
            return future.result()
        finally:
            with self._lock:
                del self._busy[lease]

    def stop(self, lease: Lease) -> None:
        """Dask forgets what has not begun; what runs is on a thread there, and cannot be ended."""
        with self._lock:
            future = self._busy.get(lease)
        if future is not None and lease.lost:
            future.cancel()

    def close(self) -> None:
        pass


def workers_of(kind: Kind, client: DaskClient | None) -> Workers:
    if kind not in get_args(Kind):
        raise InvalidRequest(f"executor: kind: must be 'threads' or 'processes', not {shown(kind)}")
    if client is not None and not hasattr(client, "scheduler_info"):
        raise InvalidRequest(
            "executor: workers: must be a client of Dask, as distributed.Client(address), not "
            f"{shown(client)}"
        )
    if client is not None and kind != "threads":
        raise InvalidRequest(f"executor: {kind!r} are of this computer: leave that out for Dask")
    if client is not None:
        return Dask(client)
    return Processes() if kind == "processes" else Threads()


def dask_workers(client: DaskClient) -> dict[str, dict[str, int]]:
    """Return the workers of a cluster by their addresses, with what each has."""
    found = client.scheduler_info(n_workers=-1)["workers"]
    return {
        address: {"vcore": it["nthreads"], "memory": it["memory_limit"]}
        for address, it in found.items()
    }
