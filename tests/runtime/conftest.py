"""Every test in here leaves the process as it was: no thread, no actor, no open file."""

import threading
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pykka
import pytest
from probes import wait_until

from yunikorn_actors import enable_logs


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    threads, files = set(threading.enumerate()), _open_files()
    actors = set(pykka.ActorRegistry.get_all())
    yield
    # A callback that was left behind ends when the test lets it go; that takes a moment.
    wait_until(lambda: set(threading.enumerate()) <= threads)
    assert actors == set(pykka.ActorRegistry.get_all())
    # Fewer are well: connections of a test before this one close when they come to it.
    assert _open_files() <= files


@pytest.fixture
def ours() -> Callable[[], list[str]]:
    """Names of the core's threads that were started since the test began."""
    before = threading.enumerate()

    def names() -> list[str]:
        new = [thread.name for thread in threading.enumerate() if thread not in before]
        return [name for name in new if name.startswith("yunikorn-actors")]

    return names


@pytest.fixture
def log() -> Iterator[StringIO]:
    sink = StringIO()
    end = enable_logs(sink)
    yield sink
    end()
