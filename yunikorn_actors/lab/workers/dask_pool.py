"""A cluster of Dask as a pool of workers: the workers of `distributed`, on any machines."""

import re
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from importlib import import_module
from typing import Any, Final

from yunikorn_actors.errors import CoreError
from yunikorn_actors.version import extra_command

_ADDRESS: Final = re.compile(r"dask://(\S+:\d+)")


class NoExecutor(CoreError, ValueError):
    """What is to do the work is not understood, or not installed."""


class DaskPool:
    """Dask itself gives what a lost worker had to another one, and says when it gives that up."""

    losses_max = 1

    def __init__(self, url: str) -> None:
        found = _ADDRESS.fullmatch(url)
        if found is None:
            raise NoExecutor(f"{url!r:.80} is no executor: write dask://HOST:PORT")
        self._address = f"tcp://{found[1]}"
        try:
            self._distributed: Any = import_module("distributed")
        except ImportError:
            raise NoExecutor(
                "an executor of Dask needs the package distributed, which is not installed; "
                f"{extra_command('dask')}"
            ) from None
        self._client: Any = None
        self.size = 1
        self.lost: tuple[type[BaseException], ...] = (
            BrokenExecutor,
            CancelledError,
            self._distributed.KilledWorker,
        )

    def gather(self) -> Executor:
        self._client = self._distributed.Client(self._address, set_as_default=False)
        self.size = max(1, sum(self._client.nthreads().values()))
        # Not pure: what is done again is to be done, and not looked up by its name.
        executor: Executor = self._client.get_executor(pure=False)
        return executor

    def dismiss(self, executor: Executor) -> None:
        executor.shutdown(wait=False)
        self._client.close()
