"""A service on a free port; what a test leaves open is seen to."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from yunikorn_actors import SchedulerCore
from yunikorn_actors.service.serving import Serving


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Start services that end with the test."""
    started: list[Serving] = []

    def start(core: SchedulerCore | None = None, **options: Any) -> Serving:
        serving = Serving(core or SchedulerCore(), {"grpc": "127.0.0.1:0"}, **options)
        started.append(serving.start())
        return serving

    yield start
    for serving in started:
        serving.stop()
