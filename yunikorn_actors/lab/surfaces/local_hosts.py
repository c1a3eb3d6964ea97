"""Hosts of partitions in this process, which end and begin anew as those of an engine do."""

import asyncio
import pickle
import threading
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, Final

from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.service.cluster.manager_channel import HostAway
from yunikorn_actors.service.cluster.partition_host import Host


class _NearHost(Host):
    """A host that can be asked whether anything is under way."""

    def is_settled(self) -> bool:
        """Whether all is done, and who follows it has it all."""
        channels = [it.channel for it in self._seats.values()]
        channels += [it.channel for it in self._followers.values()]
        is_done = self._core.is_settled() and not any(it.waiting for it in channels)
        return is_done and bool(self._followers)

    @property
    def managers(self) -> frozenset[str]:
        return frozenset(self._by_manager)

    def clock_was_moved(self) -> None:
        self._core.clock_was_moved()


class NearHost:
    """What a portal calls; arguments and answers are copied as on their way to another process."""

    def __init__(self, partition: str, journal: Path | None, **words: Any) -> None:  # noqa: ANN401 - of a core
        """`words` are for its core, beside the journal."""
        self._partition, self._journal, self._words = partition, journal, words
        self._loop: Final = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._lives = 0
        self._host: _NearHost | None = None
        self.begin()

    @property
    def host(self) -> _NearHost | None:
        """None while it is away."""
        return self._host

    def begin(self) -> None:
        self._lives += 1
        journal = None if self._journal is None else str(self._journal)
        self._host = _NearHost(self._partition, journal, make=self._core)

    def _core(self, **words: Any) -> SchedulerCore:  # noqa: ANN401 - those of a host
        return SchedulerCore(**words, **self._words, instance=f"{self._partition}{self._lives}")

    def end(self) -> None:
        """End it: what it has not journaled is lost, and whoever waits at it is let go."""
        host, self._host = self._host, None
        if host is not None:
            host.close()
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()

    def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - of any method
        host = self._host
        if host is None:
            raise HostAway("it is away")
        copied = _copied(arguments)
        try:
            work = asyncio.run_coroutine_threadsafe(getattr(host, method)(*copied), self._loop)
            answer = work.result()
        except CancelledError:
            raise HostAway("it has ended") from None
        if host is not self._host:
            raise HostAway("it has ended, and its answer with it")
        return _copied(answer)

    def close(self) -> None:
        self.end()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _copied(value: Any) -> Any:  # noqa: ANN401 - whatever is sent
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


async def _cancel_all() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
