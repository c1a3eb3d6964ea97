"""Every test in here leaves no thread behind but those that it blocked itself."""

import threading
from collections.abc import Iterator

import pytest
from probes import wait_until


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    threads = set(threading.enumerate())
    yield
    wait_until(lambda: set(threading.enumerate()) <= threads)
